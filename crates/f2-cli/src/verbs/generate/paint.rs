//! The colours of frequency bands.

use f2_lm::run::SavedModel;
use f2_metrics::Bands;

/// How each band looks, the most frequent first: an escape sequence, or nothing.
const LOOKS: [&str; 4] = ["", "\x1b[36m", "\x1b[33m", "\x1b[1;31m"];
const PLAIN: &str = "\x1b[0m";

/// Colours tokens by how frequent they were in the training text.
pub(super) struct Paint {
    /// None where nothing is coloured.
    bands: Option<Bands>,
}

impl Paint {
    /// Colours where `colour` says so and the model knows its counts.
    pub(super) fn new(model: &SavedModel, colour: bool) -> Self {
        let bands = model.counts.as_ref().and_then(|counts| Bands::from_counts(counts).ok());
        Self { bands: bands.filter(|_| colour) }
    }

    /// A token's text in its band's colour.
    pub(super) fn token(&self, id: u32, text: &str) -> String {
        match LOOKS[self.bands.as_ref().map_or(0, |bands| bands.band(id))] {
            "" => text.to_owned(),
            _ if text.is_empty() => String::new(),
            look => format!("{look}{text}{PLAIN}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_band_has_its_look() {
        let bands = Bands::from_counts(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).unwrap();
        let paint = Paint { bands: Some(bands) };
        let painted: String = [0, 2, 4, 9].map(|id| paint.token(id, "x")).concat();
        assert_eq!(painted, "x\x1b[36mx\x1b[0m\x1b[33mx\x1b[0m\x1b[1;31mx\x1b[0m");
        assert_eq!(paint.token(9, ""), "");
        assert_eq!(Paint { bands: None }.token(9, "x"), "x");
    }
}
