//! The metrics that `--metrics` selects.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use f2_metrics::{Further, Metric, Need};

/// One name in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The paper's seven.
    Paper,
    /// The further ones that need the texts alone.
    Texts,
    /// Those that need the training text.
    Training,
    /// The paper's seven and the further ones.
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
        [Self::Paper, Self::Texts, Self::Training, Self::All]
            .into_iter()
            .chain(metrics)
            .chain(Further::ALL.into_iter().map(Self::Further))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Texts => "texts",
            Self::Training => "training",
            Self::All => "all",
            Self::Metric(metric) => metric.key(),
            Self::Further(metric) => metric.key(),
        }
    }

    /// The group that a further metric is in, besides `all`.
    fn group(metric: Further) -> Option<Self> {
        match metric.needs() {
            None | Some(Need::Strings) => Some(Self::Texts),
            Some(Need::Training) => Some(Self::Training),
            Some(Need::Likelihood | Need::References | Need::HumanStates | Need::PromptStates) => {
                None
            }
        }
    }

    /// Parses a name.
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
        let asked = |group: Option<Choice>, one| {
            let names = [Some(Choice::All), group, Some(one)];
            choices.iter().any(|choice| names.contains(&Some(*choice)))
        };
        let (metrics, further) = (Metric::ALL.into_iter(), Further::ALL.into_iter());
        Self {
            paper: metrics
                .filter(|metric| asked(Some(Choice::Paper), Choice::Metric(*metric)))
                .collect(),
            further: further
                .filter(|metric| asked(Choice::group(*metric), Choice::Further(*metric)))
                .collect(),
        }
    }

    /// Whether any of the chosen further metrics needs one of these.
    pub(super) fn need(&self, needs: &[Need]) -> bool {
        self.further.iter().filter_map(|metric| metric.needs()).any(|need| needs.contains(&need))
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
        let of = |group| Chosen::new(&[group]).further;
        assert_eq!(of(Choice::Training), [Further::Novelty, Further::LongestMatch]);
        let states = Further::ALL.len() - of(Choice::Texts).len() - of(Choice::Training).len();
        assert!(of(Choice::Texts).contains(&Further::CompressionRatio) && states == 2);
        let chosen = Chosen::new(&[Choice::Further(Further::Zipf), Choice::Metric(Metric::Rep)]);
        assert_eq!((chosen.paper, chosen.further), (vec![Metric::Rep], vec![Further::Zipf]));
    }
}
