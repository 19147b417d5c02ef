//! The output of `f2 eval`: tables with notes under them, or JSON; and remarks on metrics that were
//! requested and are not available.

use f2_metrics::{Metric, Need};
use f2_report::{ResultRecord, further_definitions, metric_tables_of};

use super::Eval;
use super::chosen::{Choice, Chosen};
use super::further::remedy;
use crate::failure::Outcome;
use crate::output;

impl Eval {
    /// Reports metrics whose inputs were not given, unless `--metrics` has its default.
    pub(super) fn remark_on_missing(&self, chosen: &Chosen) {
        if self.metrics == [Choice::Paper] {
            return;
        }
        let lacks = |need: &Need| match need {
            Need::Likelihood => self.ppl.is_empty() && self.models.models.is_empty(),
            Need::References => self.refs.is_none(),
            _ => false,
        };
        for metric in &chosen.paper {
            if let Some(need) = metric.needs().filter(lacks) {
                remark!("note: {} needs {need}: {}", metric.name(), remedy(need, false));
            }
        }
    }

    pub(super) fn print(&self, records: &[ResultRecord], words: bool) -> Outcome {
        if self.format.json {
            let json = match records {
                [record] => serde_json::to_string_pretty(record),
                _ => serde_json::to_string_pretty(records),
            };
            let json = json.expect("a result always has a JSON form");
            return output::print(&format!("{json}\n"));
        }
        let mut notes = vec![format!("convention: {}", self.convention)];
        let chosen = Chosen::new(&self.metrics).paper;
        let shown = |metric: &&Metric| match metric.needs() {
            Some(Need::Likelihood) => records.iter().any(|record| record.metrics.ppl.is_some()),
            Some(Need::References) => self.refs.is_some(),
            _ => true,
        };
        let definition =
            |metric: &Metric| format!("{}: {}", metric.name(), metric.definition(self.convention));
        notes.extend(chosen.iter().filter(shown).map(definition));
        let further = further_definitions(records).into_iter();
        notes.extend(further.map(|(name, line)| format!("{name}: {line}")));
        if words {
            notes.push("tokens: words between white space".to_owned());
        }
        if let Some(replicates) = self.bootstrap {
            notes.push(format!(
                "±: half of a 95 % interval, texts drawn {replicates} times; of Rep a Wilson \
                 interval, and ≤ its upper end where no text loops"
            ));
        }
        notes.extend(ceiling_note(records));
        self.format.print(&metric_tables_of(records, &chosen), &notes)
    }
}

/// Drops the metrics that were not requested.
pub(super) fn keep(record: &mut ResultRecord, chosen: &Chosen) {
    let Chosen { paper, .. } = chosen;
    record.metrics.keep(paper);
    record.differences.iter_mut().for_each(|each| each.metrics.keep(paper));
    let intervals = record.intervals.iter_mut();
    intervals.for_each(|each| each.metrics.keep(paper));
    let named = |name: &String| {
        let left_out = Metric::ALL.iter().filter(|metric| !paper.contains(metric));
        !left_out.into_iter().any(|metric| metric.name() == name)
    };
    record.definitions.retain(|name, _| named(name));
    record.half.iter_mut().for_each(|half| half.metrics.keep(paper));
    if let Some(human) = &mut record.human {
        human.metrics.keep(paper);
        human.intervals.iter_mut().for_each(|each| each.metrics.keep(paper));
        human.half.iter_mut().for_each(|half| half.metrics.keep(paper));
    }
}

/// One half of the references against the other, which no model needs to beat.
fn ceiling_note(records: &[ResultRecord]) -> Option<String> {
    let half = records.first()?.human.as_ref()?.half.as_ref()?;
    let kld = half.metrics.kld?;
    let jaccard =
        half.metrics.ms_jaccard.iter().flatten().map(|value| format!("{:.1}", 100.0 * value));
    Some(format!(
        "human, other half: KLD {kld:.2}, MS-Jaccard {} ({} texts against as many)",
        jaccard.collect::<Vec<_>>().join("/"),
        half.texts
    ))
}
