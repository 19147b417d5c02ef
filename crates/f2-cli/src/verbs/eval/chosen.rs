//! Which metrics `--metrics` asks for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use f2_metrics::{Further, Metric};

/// One name of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The paper's seven.
    Paper,
    /// These and the further ones.
    All,
    Metric(Metric),
    Further(Further),
}

/// All metrics that were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) paper: Vec<Metric>,
    pub(super) further: Vec<Further>,
}

impl Choice {
    fn every() -> impl Iterator<Item = Self> {
        let metrics = Metric::ALL.into_iter().map(Self::Metric);
        [Self::Paper, Self::All]
            .into_iter()
            .chain(metrics)
            .chain(Further::ALL.into_iter().map(Self::Further))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::All => "all",
            Self::Metric(metric) => metric.key(),
            Self::Further(metric) => metric.key(),
        }
    }

    /// Reads a name.
    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        let names = Self::every().map(|choice| PossibleValue::new(choice.name()));
        PossibleValuesParser::new(names).map(|name| {
            let named = Self::every().find(|choice| choice.name() == name);
            named.expect("clap lets no other name through")
        })
    }
}

impl Chosen {
    pub(super) fn new(choices: &[Choice]) -> Self {
        let asked = |whole: &[Choice], one| {
            choices.iter().any(|choice| whole.contains(choice) || *choice == one)
        };
        let metrics = Metric::ALL.into_iter();
        let further = Further::ALL.into_iter();
        Self {
            paper: metrics
                .filter(|metric| asked(&[Choice::Paper, Choice::All], Choice::Metric(*metric)))
                .collect(),
            further: further
                .filter(|metric| asked(&[Choice::All], Choice::Further(*metric)))
                .collect(),
        }
    }

    /// Whether any of these is among the chosen.
    pub(super) fn has(&self, metrics: &[Further]) -> bool {
        self.further.iter().any(|metric| metrics.contains(metric))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_add_up() {
        let chosen = Chosen::new(&[Choice::Paper]);
        assert_eq!((chosen.paper.len(), chosen.further.len()), (7, 0));
        let chosen = Chosen::new(&[Choice::All]);
        assert_eq!((chosen.paper.len(), chosen.further.len()), (7, Further::ALL.len()));
        let chosen = Chosen::new(&[Choice::Further(Further::Zipf), Choice::Metric(Metric::Rep)]);
        assert_eq!((chosen.paper, chosen.further), (vec![Metric::Rep], vec![Further::Zipf]));
    }
}
