//! Tables as CSV.

use super::Table;

impl Table {
    /// Comma-separated values as in RFC 4180, without emphasis. A missing value is an empty field.
    /// Text that a spreadsheet would evaluate as a formula is prefixed with an apostrophe, which
    /// marks it as text. A value with an interval has three columns: the value, the lower and the
    /// upper end.
    pub fn to_csv(&self) -> String {
        let columns = self.number_columns();
        let headings = columns.iter().map(|column| column.heading.as_str()).collect();
        let rows =
            self.rows.iter().map(|row| columns.iter().map(|column| column.of(row)).collect());
        std::iter::once::<Vec<&str>>(headings)
            .chain(rows)
            .map(|cells| cells.into_iter().map(quote).collect::<Vec<_>>().join(",") + "\n")
            .collect()
    }
}

fn quote(text: &str) -> String {
    if text == "–" {
        return String::new();
    }
    let apostrophe = if is_formula(text) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

/// Whether a spreadsheet would evaluate the text as a formula. Some skip leading white space, and
/// East Asian ones also accept full-width signs.
fn is_formula(text: &str) -> bool {
    let signs = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    text.trim_start().starts_with(signs) && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::super::Cell;
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_missing_value_is_an_empty_field() {
        let mut table = example();
        table.row(["Human".into(), "–".into(), "a – b".into()]);
        assert!(table.to_csv().ends_with("Human,,a – b\n"));
    }

    #[test]
    fn every_number_has_a_column_of_its_own() {
        let mut table = example();
        let numbers = [("", "1.50".to_owned()), ("low", "1.40".to_owned()), ("high", "1.6".into())];
        table.row(["a".into(), Cell::from("1.50 ±0.10").with_numbers(numbers), "x".into()]);
        let csv = table.to_csv();
        assert!(csv.starts_with("model,KLD,KLD low,KLD high,note\nMLE,1.51,,,"), "{csv}");
        assert!(csv.ends_with("a,1.50,1.40,1.6,x\n"), "{csv}");
    }

    #[test]
    fn separators_and_quotes_are_quoted() {
        let lines = "\
model,KLD,note
MLE,1.51,\"50% off, \"\"plain\"\"\"
F²-Softmax,0.62,a|b & c_d
";
        assert_eq!(example().to_csv(), lines);
    }

    #[test]
    fn formulas_are_text_and_negative_numbers_stay_numbers() {
        let quoted =
            ["=1+1", "@SUM(A1)", "+x", "-2+3", "\t=1", "＝1", "-0.5", "+3e2", "a=b"].map(quote);
        let lines = ["'=1+1", "'@SUM(A1)", "'+x", "'-2+3", "'\t=1", "'＝1", "-0.5", "+3e2", "a=b"];
        assert_eq!(quoted, lines);
        assert_eq!(quote("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
    }
}
