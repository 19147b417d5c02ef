//! Tables as JSON.

use serde_json::{Map, Value};

use super::Table;

impl Table {
    /// A JSON array with an object for each row. A cell is a number if possible, `null` if it is
    /// missing, and otherwise a string. A value with an interval has three fields, as in CSV.
    pub fn to_json(&self) -> String {
        let columns = self.number_columns();
        let row = |row: &super::Row| {
            let fields = columns.iter();
            let fields = fields.map(|column| (column.heading.clone(), value(column.of(row))));
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
    // JSON does not allow a plus sign.
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    serde_json::from_str::<serde_json::Number>(unsigned)
        .map_or_else(|_| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::Cell;
    use super::super::tests::example;

    #[test]
    fn numbers_are_numbers_and_what_is_missing_is_null() {
        let mut table = example();
        table.row(["Human".into(), "–".into(), "1.5 ±0.2".into()]);
        let rows: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!(rows[0]["KLD"], 1.51);
        assert_eq!(rows[2]["KLD"], serde_json::Value::Null);
        assert_eq!(rows[2]["note"], "1.5 ±0.2");
        let numbers = [("", "+1.5".to_owned()), ("low", "1.3".to_owned()), ("high", "1.7".into())];
        table.row(["x".into(), Cell::from("+1.5 ±0.2").with_numbers(numbers), "".into()]);
        let rows: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!((&rows[3]["KLD"], &rows[3]["KLD low"]), (&1.5.into(), &1.3.into()));
        assert_eq!(rows[0]["KLD high"], serde_json::Value::Null);
    }
}
