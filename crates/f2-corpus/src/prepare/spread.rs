//! How the documents of one text are spread over the splits.

use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use crate::error::{Error, Result};
use crate::input::DocumentReader;
use crate::split::{Fractions, Split};

/// Assigns documents, in order, to splits.
#[derive(Clone, Debug)]
pub(crate) struct Spreading {
    fractions: Fractions,
    order: Option<Order>,
}

/// Where in the text a document lies, in bytes.
#[derive(Clone, Debug)]
struct Order {
    before: u64,
    total: u64,
}

impl Spreading {
    /// By a hash of each document, or by its place in the text, which must then be measured.
    pub(crate) fn of(options: &Options, plan: &[Planned], observer: &dyn Observer) -> Result<Self> {
        let fractions = options.inputs.fractions().unwrap_or_default();
        let measured = options.in_order && options.inputs.fractions().is_some();
        let total = measured.then(|| length(options, plan, observer)).transpose()?;
        Ok(Self { fractions, order: total.map(|total| Order { before: 0, total }) })
    }

    /// The split of the next document.
    pub(crate) fn place(&mut self, document: &str) -> Split {
        match &mut self.order {
            None => self.fractions.place(document),
            Some(Order { before, total }) => {
                let length = document.len() as u64;
                // Its middle decides: a long chapter goes where most of it lies.
                let middle = *before as f64 + length as f64 / 2.0;
                *before += length;
                self.fractions.at((middle / *total as f64).min(1.0 - f64::EPSILON))
            }
        }
    }
}

/// Bytes of all documents.
fn length(options: &Options, plan: &[Planned], observer: &dyn Observer) -> Result<u64> {
    observer.stage("measuring the text", super::encode::total_bytes(plan)?);
    let mut total = 0;
    for planned in plan {
        let mut reader = DocumentReader::open(&planned.source, &options.reading())?;
        while let Some(document) = reader.next_document()? {
            total += document.len() as u64;
            observer.advance(reader.newly_read());
            if observer.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
    Ok(total)
}
