use super::Table;

impl Table {
    /// Comma separated values as RFC 4180 has them. Emphasis is left out, and so is the dash
    /// that stands for a missing value.
    pub fn to_csv(&self) -> String {
        self.lines()
            .map(|cells| cells.into_iter().map(quote).collect::<Vec<_>>().join(",") + "\n")
            .collect()
    }
}

fn quote(text: &str) -> String {
    if text == "–" {
        String::new()
    } else if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;

    #[test]
    fn a_missing_value_is_an_empty_field() {
        let mut table = example();
        table.row(["Human".into(), "–".into(), "a – b".into()]);
        assert!(table.to_csv().ends_with("Human,,a – b\n"));
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
}
