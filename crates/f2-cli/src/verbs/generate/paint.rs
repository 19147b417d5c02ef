//! The colours of frequency bands.

use f2_lm::run::SavedModel;
use f2_metrics::Bands;

/// How each band looks, the most frequent first: an escape sequence, or nothing.
const LOOKS: [&str; 4] = ["", "\x1b[36m", "\x1b[33m", "\x1b[1;31m"];
const PLAIN: &str = "\x1b[0m";

/// Colours tokens by how frequent they were in the training text.
pub(super) struct Paint {
    /// The first ranks of all bands but the first; none where nothing is coloured.
    bounds: Option<[u32; 3]>,
}

impl Paint {
    /// Colours where `colour` says so and the model knows its counts.
    pub(super) fn new(model: &SavedModel, colour: bool) -> Self {
        let bands = model.counts.as_ref().and_then(|counts| Bands::from_counts(counts).ok());
        Self { bounds: bands.filter(|_| colour).map(|bands| bands.bounds()) }
    }

    /// A token's text in its band's colour.
    pub(super) fn token(&self, id: u32, text: &str) -> String {
        let band = self.bounds.map(|bounds| bounds.iter().filter(|bound| id >= **bound).count());
        match LOOKS[band.unwrap_or(0)] {
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
        let paint = Paint { bounds: Some([2, 5, 9]) };
        let painted: String = [0, 2, 5, 9].map(|id| paint.token(id, "x")).concat();
        assert_eq!(painted, "x\x1b[36mx\x1b[0m\x1b[33mx\x1b[0m\x1b[1;31mx\x1b[0m");
        assert_eq!(paint.token(9, ""), "");
        assert_eq!(Paint { bounds: None }.token(9, "x"), "x");
    }
}
