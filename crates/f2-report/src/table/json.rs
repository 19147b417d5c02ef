//! Tables as JSON.

use serde_json::{Map, Value};

use super::Table;

impl Table {
    /// A JSON array with an object for each row: numbers where a cell is one, `null` where it is
    /// missing, else text.
    pub fn to_json(&self) -> String {
        let row = |row: &super::Row| {
            let fields = self.headings.iter().zip(&row.cells);
            let fields = fields.map(|(heading, cell)| (heading.clone(), value(&cell.text)));
            Value::Object(fields.collect::<Map<_, _>>())
        };
        let rows = Value::Array(self.rows.iter().map(row).collect());
        format!("{rows:#}\n")
    }
}

fn value(text: &str) -> Value {
    if text == "–" {
        return Value::Null;
    }
    serde_json::from_str::<serde_json::Number>(text)
        .map_or_else(|_| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;

    #[test]
    fn numbers_are_numbers_and_what_is_missing_is_null() {
        let mut table = example();
        table.row(["Human".into(), "–".into(), "1.5 ±0.2".into()]);
        let rows: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!(rows[0]["KLD"], 1.51);
        assert_eq!(rows[2]["KLD"], serde_json::Value::Null);
        assert_eq!(rows[2]["note"], "1.5 ±0.2");
    }
}
