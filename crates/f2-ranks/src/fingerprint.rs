//! Values that must be the same on all ranks, compared at the start.

use crate::{Control, Error};

/// Named values that must be the same on all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(Vec<(String, String)>);

impl Fingerprint {
    /// Adds a value.
    pub fn add(&mut self, what: impl Into<String>, value: &impl ToString) {
        self.0.push((what.into(), value.to_string()));
    }

    /// Compares the values of all ranks; the error names the first rank and value that differ.
    pub fn compare(&self, control: &mut Control) -> Result<(), Error> {
        let all = control.all_gather(&self.to_bytes())?;
        let expected = Self::from_bytes(&all[0]);
        for (rank, found) in all.iter().enumerate().skip(1) {
            if let Some(error) = expected.difference(rank, &Self::from_bytes(found)) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn difference(&self, rank: usize, other: &Self) -> Option<Error> {
        let value = |of: &Self, what: &str| {
            let found = of.0.iter().find(|(name, _)| name == what);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
        };
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name.clone());
        names
            .map(|what| (value(other, &what), value(self, &what), what))
            .find(|(found, expected, _)| found != expected)
            .map(|(found, expected, what)| Error::Different { rank, what, found, expected })
    }

    /// Names and values are text without NUL, which separates them.
    fn to_bytes(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(what, value)| format!("{what}\0{value}"));
        lines.collect::<Vec<_>>().join("\0").into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let fields: Vec<&str> = text.split('\0').collect();
        let pairs = fields.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
        Self(pairs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let mut one = Fingerprint::default();
        one.add("version", &"0.2.0");
        one.add("the setting model.layers", &4);
        let mut other = one.clone();
        assert_eq!(one.difference(2, &Fingerprint::from_bytes(&other.to_bytes())), None);
        other.0[1].1 = "5".to_owned();
        let error = one.difference(2, &other).unwrap().to_string();
        let expected = "rank 2 differs from rank 0 in the setting model.layers: 5 instead of 4";
        assert_eq!(error, expected);
        other.0.pop();
        let error = one.difference(1, &other).unwrap().to_string();
        assert!(error.ends_with("nothing instead of 4"), "{error}");
    }
}
