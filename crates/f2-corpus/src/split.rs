//! The splits of a corpus, and the assignment of documents to them.

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// The three parts of a corpus.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The training split, the only one whose tokens are counted.
    Train,
    /// The validation split.
    Valid,
    /// The test split.
    Test,
}

impl Split {
    /// All three, in order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// `train`, `valid` or `test`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }
}

/// How much of the documents goes into each split.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fractions {
    /// Share of the training split.
    pub train: f64,
    /// Share of the validation split.
    pub valid: f64,
    /// Share of the test split.
    pub test: f64,
}

impl Default for Fractions {
    fn default() -> Self {
        Self { train: 0.9, valid: 0.05, test: 0.05 }
    }
}

impl Fractions {
    pub(crate) fn check(self) -> Result<()> {
        let Self { train, valid, test } = self;
        let sound = train > 0.0 && valid >= 0.0 && test >= 0.0;
        if sound && (train + valid + test - 1.0).abs() < 1e-6 {
            Ok(())
        } else {
            Err(Error::Fractions { train, valid, test })
        }
    }

    /// The share of a split.
    pub(crate) fn of(self, split: Split) -> f64 {
        match split {
            Split::Train => self.train,
            Split::Valid => self.valid,
            Split::Test => self.test,
        }
    }

    /// The split of a document, which depends on its text alone: neither the order of files nor
    /// other documents change it, and a duplicate never leaks into another split.
    pub(crate) fn place(self, document: &str) -> Split {
        let hash = Sha256::digest(document.as_bytes());
        let bytes = hash[..8].try_into().expect("a SHA-256 hash has 32 bytes");
        self.at(u64::from_le_bytes(bytes) as f64 / 2_f64.powi(64))
    }

    /// The split that a point of [0, 1) lies in.
    pub(crate) fn at(self, point: f64) -> Split {
        if point < self.train {
            Split::Train
        } else if point < self.train + self.valid || self.test == 0.0 {
            if self.valid == 0.0 { Split::Train } else { Split::Valid }
        } else {
            Split::Test
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_as_requested() {
        let fractions = Fractions { train: 0.8, valid: 0.15, test: 0.05 };
        let mut found = [0_u32; 3];
        for number in 0..20_000 {
            found[fractions.place(&format!("document {number}")) as usize] += 1;
        }
        // Four standard deviations of a binomial share of 20,000 are below 230.
        for (found, expected) in found.into_iter().zip([16_000_u32, 3_000, 1_000]) {
            assert!(found.abs_diff(expected) < 230, "{found} for {expected}");
        }
    }

    #[test]
    fn nothing_goes_where_nothing_should() {
        let all = Fractions { train: 1.0, valid: 0.0, test: 0.0 };
        assert!((0..1000).all(|number| all.place(&number.to_string()) == Split::Train));
    }

    #[test]
    fn fractions_must_describe_a_split() {
        assert!(Fractions::default().check().is_ok());
        for (train, valid, test) in
            [(0.0, 0.5, 0.5), (0.5, 0.6, -0.1), (0.9, 0.2, 0.1), (f64::NAN, 0.5, 0.5)]
        {
            assert!(Fractions { train, valid, test }.check().is_err());
        }
    }
}
