//! The built-in plans.

use super::Plan;

/// The built-in plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPreset {
    /// Two models on the built-in text, as in `f2 demo`.
    Demo,
    /// All parts in minutes on a CPU, to see that they run.
    Tiny,
    /// All parts at a size that shows the paper's effects: a day on two cores, minutes on a GPU.
    Small,
    /// The paper's Wikitext-103 half with its full settings, for a GPU.
    Paper,
    /// The paper's lyrics half with its full settings, for a GPU.
    Lyrics,
    /// The Wikitext-103 half at the paper's size, in less than 25 minutes on one H200.
    H200,
    /// The lyrics half at the paper's size, in about 10 minutes on one H200.
    LyricsH200,
}

impl PlanPreset {
    /// Every preset, in the order of listings.
    pub const ALL: [Self; 7] = [
        Self::Demo,
        Self::Tiny,
        Self::Small,
        Self::Paper,
        Self::Lyrics,
        Self::H200,
        Self::LyricsH200,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Paper => "paper",
            Self::Lyrics => "lyrics",
            Self::H200 => "h200",
            Self::LyricsH200 => "lyrics-h200",
        }
    }

    /// A one-line description, for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Self::Demo => "two models, minutes on two cores",
            Self::Tiny => "everything, in minutes: to see it work",
            Self::Small => {
                "everything, at a size that shows the effects: a day on two cores, minutes on a GPU"
            }
            Self::Paper => "the paper's Wikitext-103 half with its full settings, for a GPU",
            Self::Lyrics => "the paper's lyrics half with its full settings, for a GPU",
            Self::H200 => {
                "the Wikitext-103 half at the paper's size, in less than 25 minutes on one H200"
            }
            Self::LyricsH200 => {
                "the lyrics half at the paper's size, in about 10 minutes on one H200"
            }
        }
    }

    /// The plan as TOML, the text of `plans/NAME.toml`.
    pub fn text(self) -> &'static str {
        match self {
            Self::Demo => include_str!("../../plans/demo.toml"),
            Self::Tiny => include_str!("../../plans/tiny.toml"),
            Self::Small => include_str!("../../plans/small.toml"),
            Self::Paper => include_str!("../../plans/paper.toml"),
            Self::Lyrics => include_str!("../../plans/lyrics.toml"),
            Self::H200 => include_str!("../../plans/h200.toml"),
            Self::LyricsH200 => include_str!("../../plans/lyrics-h200.toml"),
        }
    }

    /// The plan.
    pub fn plan(self) -> Plan {
        Plan::parse(self.text(), self.name()).expect("the plans that come with it are sound")
    }
}
