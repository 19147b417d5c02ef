//! Configurations that come with the program.

use std::fmt;

/// The settings that come with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Minutes on two cores.
    Demo,
    /// The paper's English experiment.
    Wikitext103,
    /// The paper's lyrics experiment.
    Lyrics,
}

impl Preset {
    /// Every preset, in the order they are listed to the user.
    pub const ALL: [Self; 3] = [Self::Demo, Self::Wikitext103, Self::Lyrics];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Wikitext103 => "wikitext103",
            Self::Lyrics => "lyrics",
        }
    }

    /// A one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Demo => "Minutes on two cores",
            Self::Wikitext103 => "The paper's English experiment",
            Self::Lyrics => "The paper's lyrics experiment",
        }
    }

    /// The preset as TOML, the text of `presets/NAME.toml`.
    pub fn text(self) -> &'static str {
        match self {
            Self::Demo => include_str!("../../presets/demo.toml"),
            Self::Wikitext103 => include_str!("../../presets/wikitext103.toml"),
            Self::Lyrics => include_str!("../../presets/lyrics.toml"),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
