//! The parts of the paper that can be selected.

/// A part of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperPart {
    /// The main table, the bands and the samples.
    Main,
    /// The greedy table and the matches.
    Greedy,
    /// The tables for other values of k.
    TopK,
    /// Decoupled decoding on and off.
    Decoupling,
    /// Class nuclei.
    Nucleus,
    /// F² as trained and decoded by the authors' program.
    Authors,
    /// Classes of equal tokens and of equal frequency, over K.
    Classes,
    /// The MefMax methods side by side.
    Methods,
    /// The models trained from further seeds.
    Seeds,
    /// A pretrained model transferred to the text.
    Transfer,
}

impl PaperPart {
    /// Every part, in the order of the report.
    pub const ALL: [Self; 10] = [
        Self::Main,
        Self::Greedy,
        Self::TopK,
        Self::Decoupling,
        Self::Nucleus,
        Self::Authors,
        Self::Classes,
        Self::Methods,
        Self::Seeds,
        Self::Transfer,
    ];

    /// Whether it is compared with the main table.
    pub fn is_beside_main(self) -> bool {
        !matches!(self, Self::Main | Self::Greedy | Self::TopK | Self::Transfer)
    }

    /// A one-line description, for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Self::Main => "the main table, the bands and the samples",
            Self::Greedy => "the greedy table and the matches",
            Self::TopK => "the tables of other k",
            Self::Decoupling => "decoupled decoding on and off",
            Self::Nucleus => "nuclei of classes",
            Self::Authors => "F² as the authors' program trains and decodes it",
            Self::Classes => "classes of equal tokens and of equal frequency, over K",
            Self::Methods => "the MefMax methods side by side",
            Self::Seeds => "the models trained from further seeds",
            Self::Transfer => "a pretrained model transferred to the text",
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Greedy => "greedy",
            Self::TopK => "top-k",
            Self::Decoupling => "decoupling",
            Self::Nucleus => "nucleus",
            Self::Authors => "authors",
            Self::Classes => "classes",
            Self::Methods => "methods",
            Self::Seeds => "seeds",
            Self::Transfer => "transfer",
        }
    }
}
