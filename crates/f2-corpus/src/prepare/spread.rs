//! How the documents of one text are spread over the splits.

use super::inputs::{Measured, Planned};
use super::observer::Observer;
use super::options::Options;
use crate::error::{Error, Result};
use crate::input::DocumentReader;
use crate::pairs::Pairs;
use crate::split::{Fractions, Split};

/// Assigns documents to splits.
#[derive(Clone, Debug)]
pub(crate) struct Spreading {
    fractions: Fractions,
    /// Bytes of the whole text, if a document's position determines its split.
    total: Option<u64>,
    /// If documents are pairs, pairs with the same source stay together.
    pairs: Option<Pairs>,
}

impl Spreading {
    /// Spreads by a hash of each document, or by its position in the text, which is then measured.
    pub(crate) fn of(
        options: &Options,
        plan: &mut [Planned],
        observer: &dyn Observer,
    ) -> Result<Self> {
        let fractions = options.inputs.fractions().unwrap_or_default();
        let in_order = options.in_order && options.inputs.fractions().is_some();
        let total = in_order.then(|| measure(options, plan, observer)).transpose()?;
        Ok(Self { fractions, total, pairs: options.pairs.clone() })
    }

    /// The split of a document that begins at byte `at` of the whole text.
    pub(crate) fn place(&self, document: &str, at: u64) -> Split {
        match self.total {
            None => {
                let source = self.pairs.as_ref().map(|pairs| pairs.sides(document)[0]);
                self.fractions.place(source.unwrap_or(document))
            }
            Some(total) => {
                // By its middle: a long chapter goes to the split that contains most of it.
                let middle = at as f64 + document.len() as f64 / 2.0;
                self.fractions.at((middle / total as f64).min(1.0 - f64::EPSILON))
            }
        }
    }
}

/// Measures the text of every file; returns the total in bytes.
fn measure(options: &Options, plan: &mut [Planned], observer: &dyn Observer) -> Result<u64> {
    observer.stage("measuring the text", super::encode::total_bytes(plan)?);
    let mut before = 0;
    for planned in plan {
        let length = length(options, planned, observer)?;
        planned.measured = Some(Measured { before, length });
        before += length;
    }
    Ok(before)
}

/// Bytes of all documents of a file.
pub(crate) fn length(options: &Options, planned: &Planned, observer: &dyn Observer) -> Result<u64> {
    let mut reader = DocumentReader::open(&planned.source, &options.reading())?;
    let mut length = 0;
    while let Some(document) = reader.next_document()? {
        length += document.len() as u64;
        observer.advance(reader.newly_read());
        if observer.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok(length)
}
