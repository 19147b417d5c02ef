use super::{Align, Table};

impl Table {
    /// A pipe table, strong cells between double asterisks.
    pub fn to_markdown(&self) -> String {
        let rules = self.aligns.iter().map(|align| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "--:".to_owned(),
        });
        let mut out = line(self.headings.iter().map(|text| escape(text)));
        out += &line(rules);
        for row in &self.rows {
            out += &line(row.cells.iter().map(|cell| {
                if cell.strong { format!("**{}**", escape(&cell.text)) } else { escape(&cell.text) }
            }));
        }
        out
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;

    #[test]
    fn pipes_are_escaped_and_strong_cells_starred() {
        let lines = "\
| model | KLD | note |
| --- | --: | --- |
| MLE | 1.51 | 50% off, \"plain\" |
| F²-Softmax | **0.62** | a\\|b & c_d |
";
        assert_eq!(example().to_markdown(), lines);
    }
}
