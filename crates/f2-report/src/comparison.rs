//! Every model against every other, and the ranking that follows.

use std::cmp::Ordering;

use f2_metrics::pairwise::{Match, Rule, Tally, play, ranking};
use f2_metrics::{FurtherMetrics, Interval, Measure, Metric, Metrics};
use thiserror::Error;

use crate::record::{HumanRecord, ResultRecord};

/// Explanations of the last three columns of the pairwise table.
const COLUMNS: [&str; 3] = [
    "by bigrams: the points with Distinct-2 instead of Distinct-3",
    "level: metrics in which both are equally good at the precision given; neither gets the point",
    "not significant: metrics whose difference may be chance, where it was drawn (`f2 eval \
     --bootstrap` of both models together)",
];

/// Every model against every other, on every set that both were evaluated on.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The matches, set by set.
    pub pairings: Vec<Pairing>,
    /// The models, from first to last place.
    pub standings: Vec<Standing>,
}

/// One match of two models.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairing {
    /// The set both were evaluated on.
    pub set: String,
    /// The winner; in a draw, the one named first.
    pub winner: ResultRecord,
    /// The other model.
    pub loser: ResultRecord,
    /// The match by [`Rule::FITTED`], from the winner's perspective.
    pub fitted: Match,
    /// The match by [`Rule::BIGRAM`], from the winner's perspective.
    pub bigram: Match,
}

/// A model's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The place, from 1; models with equal tallies share a place.
    pub place: usize,
    /// The model.
    pub name: String,
    /// Matches won, lost and drawn by [`Rule::FITTED`].
    pub fitted: Tally,
    /// Matches won, lost and drawn by [`Rule::BIGRAM`].
    pub bigram: Tally,
}

/// Why results cannot be compared.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ComparisonError {
    /// A comparison needs two results.
    #[error("there is only one result{}: a comparison needs two", of_set(.0))]
    Alone(String),
    /// Two results have the same name.
    #[error("there are two results of {name}{}", of_set(set))]
    Twice {
        /// The model.
        name: String,
        /// The set.
        set: String,
    },
    /// The values of human text are missing; four of the seven metrics are compared by their
    /// distance to them.
    #[error("the result of {0} has no values of human text, which four of the metrics need")]
    NoHuman(String),
    /// The results follow different conventions.
    #[error("{first} was scored by the {one} convention and {second} by the {other} convention")]
    Conventions {
        /// A model.
        first: String,
        /// Its convention.
        one: String,
        /// Another model.
        second: String,
        /// Its convention.
        other: String,
    },
    /// The results have different references.
    #[error("{first} and {second} were scored against different human texts{}", of_set(set))]
    Humans {
        /// A model.
        first: String,
        /// Another model.
        second: String,
        /// The set.
        set: String,
    },
}

/// " in the set …", or an empty string if it has no name.
fn of_set(set: &str) -> String {
    if set.is_empty() { String::new() } else { format!(" in the set {set}") }
}

impl Comparison {
    /// Explanations of columns of the tables.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let shown = if self.is_drawn() { 3 } else { 2 };
        COLUMNS.into_iter().take(shown)
    }

    /// Whether any difference between models has a bootstrap interval.
    pub(crate) fn is_drawn(&self) -> bool {
        self.pairings.iter().any(|pairing| pairing.not_significant().is_some())
    }

    /// Compares all pairs of models of each set.
    pub fn new(records: &[ResultRecord]) -> Result<Self, ComparisonError> {
        let mut pairings = Vec::new();
        for (set, records) in by_set(records) {
            check(&set, &records)?;
            for (number, first) in records.iter().enumerate() {
                for second in &records[number + 1..] {
                    pairings.push(Pairing::new(&set, first, second));
                }
            }
        }
        let standings = standings(records, &pairings);
        Ok(Self { pairings, standings })
    }
}

impl Pairing {
    /// The metrics whose difference between the two is not significant by paired bootstrap; `None`
    /// if there are no intervals. Perplexity has none.
    pub fn not_significant(&self) -> Option<Vec<Metric>> {
        let intervals: Vec<(Metric, Interval)> = Metric::ALL
            .into_iter()
            .filter_map(|metric| {
                let measure = Measure::Metric(metric, Rule::FITTED.order(metric)?);
                Some((metric, self.winner.difference(&self.loser, measure)?.1))
            })
            .collect();
        let level = intervals.iter().filter(|(_, interval)| interval.holds(0.0));
        (!intervals.is_empty()).then(|| level.map(|(metric, _)| *metric).collect())
    }

    fn new(set: &str, first: &ResultRecord, second: &ResultRecord) -> Self {
        let human = first.human.as_ref().map(|human| human.metrics.clone()).unwrap_or_default();
        let play = |one: &ResultRecord, other: &ResultRecord, rule| {
            play(&one.metrics, &other.metrics, &human, rule)
        };
        let (winner, loser) = match play(first, second, Rule::FITTED).winner() {
            Ordering::Less => (second, first),
            _ => (first, second),
        };
        Self {
            set: set.to_owned(),
            winner: winner.clone(),
            loser: loser.clone(),
            fitted: play(winner, loser, Rule::FITTED),
            bigram: play(winner, loser, Rule::BIGRAM),
        }
    }
}

/// The results of each set, in the order of first occurrence.
fn by_set(records: &[ResultRecord]) -> Vec<(String, Vec<&ResultRecord>)> {
    let mut sets: Vec<(String, Vec<&ResultRecord>)> = Vec::new();
    for record in records {
        let name = record.set.clone().unwrap_or_default();
        match sets.iter_mut().find(|(set, _)| *set == name) {
            Some((_, members)) => members.push(record),
            None => sets.push((name, vec![record])),
        }
    }
    sets
}

fn check(set: &str, records: &[&ResultRecord]) -> Result<(), ComparisonError> {
    let first = records[0];
    if records.len() < 2 {
        return Err(ComparisonError::Alone(set.to_owned()));
    }
    for (number, record) in records.iter().enumerate() {
        if records[..number].iter().any(|earlier| earlier.name == record.name) {
            let (name, set) = (record.name.clone(), set.to_owned());
            return Err(ComparisonError::Twice { name, set });
        }
        if record.human.is_none() {
            return Err(ComparisonError::NoHuman(record.name.clone()));
        }
        if record.convention != first.convention {
            return Err(ComparisonError::Conventions {
                first: first.name.clone(),
                one: first.convention.clone(),
                second: record.name.clone(),
                other: record.convention.clone(),
            });
        }
        if human_metrics(record) != human_metrics(first) {
            let (first, second) = (first.name.clone(), record.name.clone());
            return Err(ComparisonError::Humans { first, second, set: set.to_owned() });
        }
    }
    Ok(())
}

/// The values of human text, which show whether two results have the same references. Bands and
/// further metrics are left out, as they also depend on other inputs.
fn human_metrics(record: &ResultRecord) -> Option<Metrics> {
    let human: &HumanRecord = record.human.as_ref()?;
    Some(Metrics { bands: None, further: FurtherMetrics::default(), ..human.metrics.clone() })
}

fn standings(records: &[ResultRecord], pairings: &[Pairing]) -> Vec<Standing> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.name.as_str()) {
            names.push(&record.name);
        }
    }
    let tally = |outcome: fn(&Pairing) -> Ordering| -> Vec<Tally> {
        let mut tallies = vec![Tally::default(); names.len()];
        for pairing in pairings {
            let place = |name: &str| names.iter().position(|each| *each == name);
            for (record, outcome) in
                [(&pairing.winner, outcome(pairing)), (&pairing.loser, outcome(pairing).reverse())]
            {
                tallies[place(&record.name).expect("every model has a name")].add(outcome);
            }
        }
        tallies
    };
    let fitted = tally(|pairing| pairing.fitted.winner());
    let bigram = tally(|pairing| pairing.bigram.winner());
    let order = ranking(&fitted);
    let place = |model: usize| {
        1 + order.iter().take_while(|&&other| fitted[other] != fitted[model]).count()
    };
    let standing = |&model: &usize| Standing {
        place: place(model),
        name: names[model].to_owned(),
        fitted: fitted[model].clone(),
        bigram: bigram[model].clone(),
    };
    order.iter().map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, set: &str, kld: f64) -> ResultRecord {
        ResultRecord {
            name: name.to_owned(),
            set: Some(set.to_owned()),
            convention: "paper".to_owned(),
            metrics: Metrics { kld: Some(kld), ..Metrics::default() },
            human: Some(HumanRecord::default()),
            ..ResultRecord::default()
        }
    }

    #[test]
    fn equal_records_share_a_place() {
        let results = [
            result("a", "x", 1.0),
            result("b", "x", 2.0),
            result("a", "y", 2.0),
            result("b", "y", 1.0),
            result("c", "x", 9.0),
            result("c", "y", 9.0),
        ];
        let standings = Comparison::new(&results).unwrap().standings;
        let places: Vec<_> = standings
            .iter()
            .map(|each| (each.place, each.name.as_str(), each.fitted.won))
            .collect();
        assert_eq!(places, [(1, "a", 3), (1, "b", 3), (3, "c", 0)]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (a, b) = (result("a", "x", 1.0), result("b", "x", 2.0));
        let refusal = |results: &[ResultRecord]| Comparison::new(results).unwrap_err();
        assert_eq!(refusal(std::slice::from_ref(&a)), ComparisonError::Alone("x".into()));
        let twice = ComparisonError::Twice { name: "a".into(), set: "x".into() };
        assert_eq!(refusal(&[a.clone(), a.clone()]), twice);
        let without = ResultRecord { human: None, ..b.clone() };
        assert_eq!(refusal(&[a.clone(), without]), ComparisonError::NoHuman("b".into()));
        let textbook = ResultRecord { convention: "textbook".into(), ..b.clone() };
        assert!(matches!(refusal(&[a.clone(), textbook]), ComparisonError::Conventions { .. }));
        let metrics = Metrics { rep: Some(0.5), ..Metrics::default() };
        let human = HumanRecord { metrics, ..HumanRecord::default() };
        let other = ResultRecord { human: Some(human), ..b };
        assert!(matches!(refusal(&[a, other]), ComparisonError::Humans { .. }));
    }
}
