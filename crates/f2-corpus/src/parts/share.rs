//! The documents that a part works on.
//!
//! The concatenated files of the text are cut into equal pieces by their bytes on disk, one for
//! each part. A file inside one piece belongs to that part alone. A file that is cut is read by
//! several parts, each of which takes the documents that begin in its share of the file's text.

use std::ops::Range;

use super::Part;
use crate::error::Result;
use crate::prepare::encode::total_bytes;
use crate::prepare::inputs::Planned;
use crate::prepare::spread::length;
use crate::{Observer, Options};

/// The `wanted` files that a part reads, each with the range of the part's documents.
pub(super) fn share(
    options: &Options,
    plan: &[Planned],
    part: Part,
    wanted: fn(&Planned) -> bool,
    observer: &dyn Observer,
) -> Result<Vec<Planned>> {
    let sizes = plan.iter().map(|file| file.source.size()).collect::<Result<Vec<_>>>()?;
    let pieces = plan.iter().zip(pieces(&sizes, part));
    let own: Vec<(Planned, Piece)> = pieces
        .filter(|(file, piece)| wanted(file) && !piece.is_empty())
        .map(|(file, piece)| (file.clone(), piece))
        .collect();
    let to_measure = own.iter().filter(|(file, piece)| piece.is_cut() && file.measured.is_none());
    let to_measure: Vec<Planned> = to_measure.map(|(file, _)| file.clone()).collect();
    if !to_measure.is_empty() {
        observer.stage("measuring the text", total_bytes(&to_measure)?);
    }
    let narrowed = |(mut file, piece): (Planned, Piece)| {
        if piece.is_cut() {
            let text = match file.measured {
                Some(measured) => measured.length,
                None => length(options, &file, observer)?,
            };
            file.range = piece.of_text(text);
        }
        Ok(file)
    };
    own.into_iter().map(narrowed).collect()
}

/// The piece of a file that belongs to a part; the whole file is `0..whole`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    within: Range<u64>,
    whole: u64,
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.within.is_empty()
    }

    fn is_cut(&self) -> bool {
        !self.is_empty() && self.within != (0..self.whole)
    }

    /// The same piece of a text of this length: the pieces of all parts have no gap or overlap.
    fn of_text(&self, length: u64) -> Range<u64> {
        let at =
            |point: u64| (u128::from(point) * u128::from(length) / u128::from(self.whole)) as u64;
        at(self.within.start)..at(self.within.end)
    }
}

/// The pieces of all files that belong to a part.
fn pieces(sizes: &[u64], part: Part) -> Vec<Piece> {
    // One more than its bytes, so that an empty file belongs to a part, too.
    let wholes: Vec<u64> = sizes.iter().map(|bytes| bytes + 1).collect();
    let total: u128 = wholes.iter().map(|whole| u128::from(*whole)).sum();
    let cut = |number: usize| total * number as u128 / part.of as u128;
    let (start, end) = (cut(part.number - 1), cut(part.number));
    let mut before = 0_u128;
    let piece = |whole: u64| {
        let clamp = |point: u128| point.clamp(before, before + u128::from(whole)) - before;
        let within = clamp(start) as u64..clamp(end) as u64;
        before += u128::from(whole);
        Piece { within, whole }
    };
    wholes.into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_of_text_belongs_to_exactly_one_part(
            files in prop::collection::vec((0_u64..50, 0_u64..200), 1..8),
            of in 1_usize..12,
        ) {
            let sizes: Vec<u64> = files.iter().map(|(size, _)| *size).collect();
            let shares: Vec<Vec<Piece>> = Part::all(of).map(|part| pieces(&sizes, part)).collect();
            for (file, (_, text)) in files.iter().enumerate() {
                let touching = shares.iter().map(|share| &share[file]).filter(|piece| !piece.is_empty());
                let ranges: Vec<Range<u64>> = touching.map(|piece| piece.of_text(*text)).collect();
                prop_assert!(!ranges.is_empty(), "somebody reads every file");
                prop_assert_eq!(ranges[0].start, 0);
                prop_assert_eq!(ranges.last().unwrap().end, *text);
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }

    #[test]
    fn many_files_are_dealt_out_whole() {
        let part = |number| Part { number, of: 2 };
        let touched = |number| -> Vec<bool> {
            pieces(&[9; 4], part(number)).iter().map(|piece| !piece.is_empty()).collect()
        };
        assert_eq!(touched(1), [true, true, false, false]);
        assert_eq!(touched(2), [false, false, true, true]);
        assert!(pieces(&[9; 4], part(1)).iter().all(|piece| !piece.is_cut()));
    }
}
