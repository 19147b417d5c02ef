//! Built-in configurations.

use std::fmt;

/// A built-in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Minutes on two cores.
    Demo,
    /// The paper's English experiment.
    Wikitext103,
    /// The paper's lyrics experiment.
    Lyrics,
    /// The shape of GPT-2 with 124 million parameters.
    Gpt2Small,
    /// The shape of GPT-2 with 355 million parameters.
    Gpt2Medium,
}

impl Preset {
    /// Every preset, in the order they are listed to the user.
    pub const ALL: [Self; 5] =
        [Self::Demo, Self::Wikitext103, Self::Lyrics, Self::Gpt2Small, Self::Gpt2Medium];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Wikitext103 => "wikitext103",
            Self::Lyrics => "lyrics",
            Self::Gpt2Small => "gpt2-small",
            Self::Gpt2Medium => "gpt2-medium",
        }
    }

    /// A one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Demo => "Minutes on two cores",
            Self::Wikitext103 => "The paper's English experiment",
            Self::Lyrics => "The paper's lyrics experiment",
            Self::Gpt2Small => "The shape of GPT-2, 124 million parameters",
            Self::Gpt2Medium => "The shape of GPT-2, 355 million parameters",
        }
    }

    /// The preset as TOML, the text of `presets/NAME.toml`.
    pub fn text(self) -> &'static str {
        match self {
            Self::Demo => include_str!("../../presets/demo.toml"),
            Self::Wikitext103 => include_str!("../../presets/wikitext103.toml"),
            Self::Lyrics => include_str!("../../presets/lyrics.toml"),
            Self::Gpt2Small => include_str!("../../presets/gpt2-small.toml"),
            Self::Gpt2Medium => include_str!("../../presets/gpt2-medium.toml"),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
