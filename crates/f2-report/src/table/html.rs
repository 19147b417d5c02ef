//! Tables as HTML.

use std::fmt::Write as _;

use super::{Align, Cell, Table};
use crate::markup::escape;

impl Table {
    /// A `<table>`: row names are headers, strong cells are `<strong>`, and quiet rows have the
    /// class `quiet`, to be styled by the page.
    pub fn to_html(&self) -> String {
        let mut out = String::from("<table>\n<thead><tr>");
        for (heading, align) in self.headings.iter().zip(&self.aligns) {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(*align), escape(heading));
        }
        out += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            out += if row.quiet { "<tr class=\"quiet\">" } else { "<tr>" };
            for (place, (cell, align)) in row.cells.iter().zip(&self.aligns).enumerate() {
                let _ = match (place, align) {
                    (0, Align::Left) => write!(out, "<th scope=\"row\">{}</th>", content(cell)),
                    _ => write!(out, "<td{}>{}</td>", class(*align), content(cell)),
                };
            }
            out += "</tr>\n";
        }
        out + "</tbody>\n</table>\n"
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    }
}

/// The value, and below it in small type the interval.
fn content(cell: &Cell) -> String {
    let spread = cell.text.find(" ±").or_else(|| cell.text.find(" ≤"));
    let (value, spread) = cell.text.split_at(spread.unwrap_or(cell.text.len()));
    let interval = match spread.trim_start() {
        "" => String::new(),
        spread => format!("<small>{}</small>", escape(spread)),
    };
    let value = escape(value);
    if cell.strong { format!("<strong>{value}</strong>{interval}") } else { value + &interval }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;

    #[test]
    fn names_are_headers_and_text_is_escaped() {
        let mut table = example();
        table.quiet_row(["<b>".into(), "1 ±0.2".into(), "–".into()]);
        let html = table.to_html();
        assert!(html.contains("<tr><th scope=\"row\">F²-Softmax</th>"), "{html}");
        assert!(html.contains("<td class=\"number\"><strong>0.62</strong></td>"), "{html}");
        assert!(html.contains("<td class=\"number\">1<small>±0.2</small></td>"), "{html}");
        assert!(html.contains("<tr class=\"quiet\"><th scope=\"row\">&lt;b&gt;</th>"), "{html}");
    }
}
