//! Tables as LaTeX.

use super::{Align, Table};

impl Table {
    /// A `tabular` with booktabs rules, strong cells in `\textbf`.
    pub fn to_latex(&self) -> String {
        let spec: String = self
            .aligns
            .iter()
            .map(|align| match align {
                Align::Left => 'l',
                Align::Right => 'r',
            })
            .collect();
        let mut out = format!("\\begin{{tabular}}{{{spec}}}\n\\toprule\n");
        out += &line(self.headings.iter().map(|text| escape(text)));
        out += "\\midrule\n";
        for row in &self.rows {
            out += &line(row.cells.iter().map(|cell| {
                if cell.strong {
                    format!("\\textbf{{{}}}", escape(&cell.text))
                } else {
                    escape(&cell.text)
                }
            }));
        }
        out + "\\bottomrule\n\\end{tabular}\n"
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("{} \\\\\n", cells.collect::<Vec<_>>().join(" & "))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', character]),
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '²' => out += "$^2$",
            '±' => out += "$\\pm$",
            '–' => out += "--",
            '<' => out += "\\textless{}",
            '>' => out += "\\textgreater{}",
            '|' => out += "\\textbar{}",
            // At the start of a row they would be parsed as arguments of the \\ before it.
            '[' | '*' => out.extend(['{', character, '}']),
            control if control.is_control() => out.push(' '),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn booktabs_with_everything_special_escaped() {
        let lines = "\
\\begin{tabular}{lrl}
\\toprule
model & KLD & note \\\\
\\midrule
MLE & 1.51 & 50\\% off, \"plain\" \\\\
F$^2$-Softmax & \\textbf{0.62} & a\\textbar{}b \\& c\\_d \\\\
\\bottomrule
\\end{tabular}
";
        assert_eq!(example().to_latex(), lines);
    }

    #[test]
    fn commands_in_a_name_are_shown_not_obeyed() {
        assert_eq!(
            escape("\\input{x} [2em] <*>\n\u{1b}"),
            "\\textbackslash{}input\\{x\\} {[}2em] \\textless{}{*}\\textgreater{}  "
        );
    }
}
