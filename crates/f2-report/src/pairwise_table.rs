//! The tables of a comparison.

use std::cmp::Ordering;

use f2_metrics::Metric;
use f2_metrics::pairwise::{Match, Tally};

use crate::comparison::{Comparison, Pairing};
use crate::table::{Align, Table};

impl Comparison {
    /// All matches: winner, loser and points.
    pub fn pairwise_table(&self) -> Table {
        let named = self.pairings.iter().any(|pairing| !pairing.set.is_empty());
        let set = named.then_some(("set", Align::Left));
        let columns = set.into_iter().chain([
            ("winner", Align::Left),
            ("loser", Align::Left),
            ("points", Align::Right),
            ("by bigrams", Align::Right),
            ("level", Align::Left),
        ]);
        let drawn = self.is_drawn();
        let mut table =
            Table::new(columns.chain(drawn.then_some(("not significant", Align::Left))));
        for pairing in &self.pairings {
            let level: Vec<&str> = pairing.fitted.level().map(Metric::name).collect();
            let set = named.then(|| pairing.set.clone().into());
            let not_significant = pairing.not_significant().unwrap_or_default();
            let names: Vec<&str> = not_significant.into_iter().map(Metric::name).collect();
            let cells = [
                pairing.winner.name.clone().into(),
                pairing.loser.name.clone().into(),
                points(&pairing.fitted).into(),
                points(&pairing.bigram).into(),
                level.join(", ").into(),
            ];
            let cells = set.into_iter().chain(cells);
            table.row(cells.chain(drawn.then(|| names.join(", ").into())));
        }
        table
    }

    /// The models ranked by matches won and lost.
    pub fn ranking_table(&self) -> Table {
        let mut table = Table::new([
            ("place", Align::Right),
            ("model", Align::Left),
            ("matches", Align::Right),
            ("by bigrams", Align::Right),
        ]);
        for standing in &self.standings {
            table.row([
                standing.place.to_string().into(),
                standing.name.clone().into(),
                matches(&standing.fitted).into(),
                matches(&standing.bigram).into(),
            ]);
        }
        table
    }

    /// Remarks on the tables: tied values, matches that these leave undecided, and missing metrics.
    pub fn remarks(&self) -> Vec<String> {
        let level = self.pairings.iter().filter_map(level_remark);
        level.chain(self.missing_remark()).collect()
    }

    fn missing_remark(&self) -> Option<String> {
        let missing = |metric: usize| {
            self.pairings.iter().filter(|pairing| pairing.fitted.points[metric].is_none()).count()
        };
        let names: Vec<String> = (0..Metric::ALL.len())
            .filter(|&metric| missing(metric) > 0)
            .map(|metric| {
                format!(
                    "{} in {} of {} matches",
                    Metric::ALL[metric].name(),
                    missing(metric),
                    self.pairings.len()
                )
            })
            .collect();
        (!names.is_empty())
            .then(|| format!("not compared, as a value is missing: {}", names.join(", ")))
    }
}

fn level_remark(pairing: &Pairing) -> Option<String> {
    let Pairing { winner, loser, fitted, .. } = pairing;
    let level: Vec<&str> = fitted.level().map(Metric::name).collect();
    if level.is_empty() && !fitted.needs_all_orders() {
        return None;
    }
    let place = if pairing.set.is_empty() { String::new() } else { format!("{}: ", pairing.set) };
    let levels = match level.len() {
        0 => String::new(),
        _ => format!(" are level in {} at the precision given and", level.join(" and ")),
    };
    let (won, lost) = fitted.all_orders;
    let verdict = match (fitted.needs_all_orders(), fitted.winner()) {
        (true, Ordering::Equal) => {
            format!("draw, {} and over all orders {won}-{lost}", points(fitted))
        }
        (true, _) => format!(
            "have {} points; all orders of all metrics, {won}-{lost}, decide for {}",
            points(fitted),
            winner.name
        ),
        // Even if the loser won the points of all tied metrics.
        (false, _) if fitted.won() > fitted.lost() + level.len() => {
            format!("have {} points: {} wins in any case", points(fitted), winner.name)
        }
        (false, _) => {
            format!(
                "have {} points: {} wins, more digits might turn it",
                points(fitted),
                winner.name
            )
        }
    };
    Some(format!("{place}{} and {}{levels} {verdict}", winner.name, loser.name))
}

fn points(outcome: &Match) -> String {
    format!("{}-{}", outcome.won(), outcome.lost())
}

fn matches(tally: &Tally) -> String {
    match tally.drawn {
        0 => format!("{}-{}", tally.won, tally.lost),
        drawn => format!("{}-{} and {drawn} drawn", tally.won, tally.lost),
    }
}
