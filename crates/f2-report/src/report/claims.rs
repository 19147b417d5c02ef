//! The claims in the paper's text, compared with our results.

use f2_metrics::{Measure, Metric};

use super::{Block, Section};
use crate::paper::{self, PaperSet};
use crate::record::ResultRecord;
use crate::results::Results;
use crate::table::{Align, Table};
use f2_classes::Method;

/// A claim about scores: the sentence, its name among the paper's claims, and the function that
/// computes the number from scores.
type Claim = (&'static str, &'static str, fn(&[ResultRecord]) -> Option<String>);

const CLAIMS: [Claim; 12] = [
    ("Self-BLEU of F² differs from human by", "self_bleu_gap", |all| {
        own_gap(all, Metric::SelfBleu)
    }),
    ("Self-BLEU of the next best model", "self_bleu_gap_second", |all| {
        next_gap(all, Metric::SelfBleu)
    }),
    ("Distinct of F² differs from human by", "distinct_gap", |all| own_gap(all, Metric::Distinct)),
    ("Distinct of the next best model", "distinct_gap_second", |all| {
        next_gap(all, Metric::Distinct)
    }),
    ("Rep of F² is below that of MLE by", "rep_gain", |all| gain(all, Metric::Rep, 1, -1.0)),
    ("KLD of F² is below that of MLE by", "kld_gain", |all| gain(all, Metric::Kld, 1, -1.0)),
    ("MS-Jaccard-2 of F² is above that of MLE by", "ms_jaccard_gain", |all| {
        gain(all, Metric::MsJaccard, 2, 1.0)
    }),
    ("Uniq of F² is above that of the next model by", "uniq_gain", uniq_gain),
    ("MLE: frequent tokens, relative to human", "mle_frequent", |all| bands(all, "MLE", &[0])),
    ("MLE: rare and very rare tokens, relative to human", "mle_rare", |all| {
        bands(all, "MLE", &[2, 3])
    }),
    ("F²: frequent and rare tokens, relative to human", "f2_bands", |all| bands(all, F2, &[0, 2])),
    ("UL-token+seq: share of frequent, medium, rare, very rare tokens", "sequence_bands", shares),
];

/// A claim about the number of classes, which the paper makes for lyrics.
type ClassClaim = (&'static str, &'static str, fn(&Results) -> Option<String>);

const CLASS_CLAIMS: [ClassClaim; 3] = [
    ("MS-Jaccard-2: equal frequency beats equal tokens", "equal_frequency", equal_frequency),
    ("MS-Jaccard-2 and Self-BLEU-2 over K", "best_k", best_k),
    ("PPL for K above MefMax's choice", "ppl_above", ppl_above),
];

const F2: &str = "F²-Softmax";

/// All claims for which we have results.
pub(super) fn section(results: &Results) -> Option<Section> {
    let set = results.paper?;
    let mut table = Table::new([
        ("claim", Align::Left),
        ("the paper's text", Align::Right),
        ("from its table", Align::Right),
        ("ours", Align::Right),
    ]);
    let mut add = |what: &str, name: &str, from_table: Option<String>, ours: Option<String>| {
        if let (Some(printed), Some(ours)) = (paper::claim(name), ours) {
            let from_table = from_table.unwrap_or_else(|| "–".to_owned());
            table.row([what.to_owned(), printed, from_table, ours].map(Into::into));
        }
    };
    if let Some(main) = results.scores.first().filter(|_| set == PaperSet::Wikitext103) {
        let printed = set.top_k(set.main_k());
        for (what, name, of) in CLAIMS {
            add(what, name, of(&printed), of(&main.records));
        }
    }
    for (what, name, of) in CLASS_CLAIMS {
        add(what, name, None, of(results));
    }
    let text = "The numbers that the text of the paper gives for Wikitext-103 with k = 3, and what \
                it says about the number of classes on Melo-Lyrics; next to them, the same computed \
                from its printed table and from our results. A gap is the mean over the orders of \
                |model − human| / human."
        .to_owned();
    (!table.is_empty()).then(|| Section {
        id: "claims",
        title: "Claims of the paper".to_owned(),
        text: vec![text],
        blocks: vec![Block::table("claims", "Claims of the paper's text", table)],
    })
}

fn find<'a>(all: &'a [ResultRecord], name: &str) -> Option<&'a ResultRecord> {
    all.iter().find(|record| record.name == name)
}

/// `None` if the share is not finite, after a division by 0.
fn percent(share: f64) -> Option<String> {
    share.is_finite().then(|| format!("{:.1} %", 100.0 * share))
}

/// The mean over the orders of |model − human| / human.
fn gap(record: &ResultRecord, metric: Metric) -> Option<f64> {
    let human = &record.human.as_ref()?.metrics;
    let orders = record.metrics.orders(metric).iter().zip(human.orders(metric));
    let gaps: Option<Vec<f64>> =
        orders.map(|(own, human)| Some((own.as_ref()? - (*human)?).abs() / (*human)?)).collect();
    let gaps = gaps.filter(|gaps| !gaps.is_empty())?;
    Some(gaps.iter().sum::<f64>() / gaps.len() as f64)
}

fn own_gap(all: &[ResultRecord], metric: Metric) -> Option<String> {
    gap(find(all, F2)?, metric).and_then(percent)
}

/// The smallest gap among the other models.
fn next_gap(all: &[ResultRecord], metric: Metric) -> Option<String> {
    let others = all.iter().filter(|record| record.name != F2);
    let gaps = others.filter_map(|record| Some((record, gap(record, metric)?)));
    let (record, gap) = gaps.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(format!("{} ({})", percent(gap)?, record.name))
}

/// The relative improvement of F² over maximum likelihood; `direction` is -1 if smaller values are
/// better.
fn gain(all: &[ResultRecord], metric: Metric, order: usize, direction: f64) -> Option<String> {
    let value = |name: &str| find(all, name)?.metrics.get(Measure::Metric(metric, order));
    let (f2, mle) = (value(F2)?, value("MLE")?);
    percent(direction * (f2 - mle) / mle)
}

fn uniq_gain(all: &[ResultRecord]) -> Option<String> {
    let f2 = find(all, F2)?.metrics.uniq?;
    let others = all.iter().filter(|record| record.name != F2);
    let next = others.filter_map(|record| record.metrics.uniq).max_by(f64::total_cmp)?;
    percent((f2 - next) / next)
}

/// (model − human) / human of some bands.
fn bands(all: &[ResultRecord], name: &str, which: &[usize]) -> Option<String> {
    let relative = find(all, name)?.metrics.bands?.relative_to_human?;
    let each = which.iter().map(|&band| Some(format!("{:+.0} %", 100.0 * relative[band]?)));
    Some(each.collect::<Option<Vec<_>>>()?.join(", "))
}

fn shares(all: &[ResultRecord]) -> Option<String> {
    let shares = find(all, "UL-token+seq")?.metrics.bands?.shares();
    Some(format!("{} %", shares.map(|share| format!("{:.1}", 100.0 * share)).join(" / ")))
}

/// The values of a measure by K, for the models with classes of one method.
fn over_k(results: &Results, method: Method, measure: Measure) -> Vec<(usize, f64)> {
    let trials = results.class_trials.iter().filter(|trial| trial.method == method);
    let mut points: Vec<(usize, f64)> =
        trials.filter_map(|trial| Some((trial.k, trial.record.metrics.get(measure)?))).collect();
    points.sort_by_key(|point| point.0);
    points
}

const MS_JACCARD_2: Measure = Measure::Metric(Metric::MsJaccard, 2);
const SELF_BLEU_2: Measure = Measure::Metric(Metric::SelfBleu, 2);

fn equal_frequency(results: &Results) -> Option<String> {
    let frequency = over_k(results, Method::EqualFrequency, MS_JACCARD_2);
    let tokens = over_k(results, Method::EqualTokens, MS_JACCARD_2);
    let pairs = frequency.iter().filter_map(|(k, own)| {
        tokens.iter().find(|(other, _)| other == k).map(|(_, other)| own > other)
    });
    let better: Vec<bool> = pairs.collect();
    let won = better.iter().filter(|better| **better).count();
    (!better.is_empty()).then(|| format!("at {won} of {} K", better.len()))
}

fn best_k(results: &Results) -> Option<String> {
    let (chosen, _) = *over_k(results, Method::Greedy, MS_JACCARD_2).first()?;
    let human = results.class_trials.iter().find_map(|trial| trial.record.human.as_ref());
    let best = |measure: Measure| {
        let human = human.and_then(|human| human.metrics.get(measure));
        let badness = |value: f64| measure.badness(Some(value), human);
        let points = over_k(results, Method::EqualFrequency, measure);
        let points = points.into_iter().filter_map(|(k, value)| Some((k, badness(value)?)));
        points.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(k, _)| k)
    };
    Some(format!(
        "best at K = {} and {}; MefMax's is {chosen}",
        best(MS_JACCARD_2)?,
        best(SELF_BLEU_2)?
    ))
}

fn ppl_above(results: &Results) -> Option<String> {
    let ppl = Measure::Metric(Metric::Ppl, 1);
    let (chosen, _) = *over_k(results, Method::Greedy, ppl).first()?;
    let points = over_k(results, Method::EqualFrequency, ppl);
    let below = points.iter().rev().find(|(k, _)| *k <= chosen)?;
    let largest = points.last().filter(|(k, _)| *k > chosen)?;
    let change = 100.0 * (largest.1 - below.1) / below.1;
    let told = format!("{change:+.1} % from K = {} to {}", below.0, largest.0);
    change.is_finite().then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's table agrees with the numbers of its text, except for Uniq.
    #[test]
    fn the_papers_numbers_follow_from_its_table() {
        let printed = PaperSet::Wikitext103.top_k(3);
        let derived: Vec<String> = CLAIMS.iter().filter_map(|(.., of)| of(&printed)).collect();
        let expected = [
            "3.5 %",
            "6.5 % (FACE)",
            "3.0 %",
            "8.1 % (UL-token+seq)",
            "50.7 %",
            "58.9 %",
            "19.1 %",
            "48.1 %",
        ];
        assert_eq!(derived, expected);
    }
}
