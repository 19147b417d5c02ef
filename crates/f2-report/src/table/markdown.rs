//! Tables as Markdown.

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

/// Escapes text so that it is not parsed as emphasis, links, code, HTML, mathematics or columns.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '$' | '|' => {
                out.extend(['\\', character]);
            }
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn pipes_are_escaped_and_strong_cells_starred() {
        let lines = "\
| model | KLD | note |
| --- | --: | --- |
| MLE | 1.51 | 50% off, \"plain\" |
| F²-Softmax | **0.62** | a\\|b \\& c\\_d |
";
        assert_eq!(example().to_markdown(), lines);
    }

    #[test]
    fn markup_in_a_name_is_shown_not_obeyed() {
        assert_eq!(
            escape("[x](https://example.org) <img> **b** `c` \\| $1$ &lt;\n# d"),
            "\\[x\\](https://example.org) \\<img\\> \\*\\*b\\*\\* \\`c\\` \\\\\\| \\$1\\$ \\&lt; # d"
        );
    }
}
