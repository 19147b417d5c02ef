//! The colours of frequency bands.

use std::borrow::Cow;
use std::io::{IsTerminal as _, stdout};

use f2_lm::run::SavedModel;
use f2_metrics::{BAND_NAMES, Bands};
use f2_report::printable;

use crate::output::takes_colour;

/// How each band looks, the most frequent first: an escape sequence, or nothing.
const LOOKS: [&str; 4] = ["", "\x1b[36m", "\x1b[33m", "\x1b[1;31m"];
const PLAIN: &str = "\x1b[0m";

/// Colours tokens by how frequent they were in the training text.
pub(super) struct Paint {
    /// `None` if nothing is coloured.
    bands: Option<Bands>,
    /// Whether the output is a terminal, which would obey the control characters of a text.
    terminal: bool,
}

impl Paint {
    /// Colours for standard output, if it takes any and the model has its counts.
    pub(super) fn new(model: &SavedModel) -> Self {
        let bands = model.counts.as_ref().and_then(|counts| Bands::from_counts(counts).ok());
        Self { bands: bands.filter(|_| takes_colour()), terminal: stdout().is_terminal() }
    }

    /// The legend of the colours; `None` if nothing is coloured.
    pub(super) fn legend(&self) -> Option<String> {
        self.bands.as_ref()?;
        let names = BAND_NAMES.map(|name| name.replace('_', " "));
        let names = names.iter().zip(LOOKS).map(|(name, look)| paint(look, name));
        Some(format!("tokens: {}\n\n", names.collect::<Vec<_>>().join(", ")))
    }

    /// A token's text in its band's colour.
    pub(super) fn token(&self, id: u32, text: &str) -> String {
        let text = self.plain(text);
        paint(LOOKS[self.bands.as_ref().map_or(0, |bands| bands.band(id))], &text)
    }

    /// Text without a colour.
    pub(super) fn plain<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.terminal { printable(text) } else { Cow::Borrowed(text) }
    }
}

fn paint(look: &str, text: &str) -> String {
    if look.is_empty() || text.is_empty() {
        return text.to_owned();
    }
    format!("{look}{text}{PLAIN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_band_has_its_look() {
        let bands = Bands::from_counts(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).unwrap();
        let paint = Paint { bands: Some(bands), terminal: true };
        let painted: String = [0, 2, 4, 9].map(|id| paint.token(id, "x")).concat();
        assert_eq!(painted, "x\x1b[36mx\x1b[0m\x1b[33mx\x1b[0m\x1b[1;31mx\x1b[0m");
        assert_eq!(paint.token(9, ""), "");
        let legend = "tokens: frequent, \x1b[36mmedium\x1b[0m, \x1b[33mrare\x1b[0m, \
                      \x1b[1;31mvery rare\x1b[0m\n\n";
        assert_eq!(paint.legend().as_deref(), Some(legend));
        assert_eq!(paint.token(9, "\x1b[2J"), "\x1b[1;31m␛[2J\x1b[0m");
        assert_eq!(Paint { bands: None, terminal: false }.token(9, "\x1b[2J"), "\x1b[2J");
    }
}
