//! A study: an experiment on one corpus, or one on each of several, and its report.

use std::path::{Path, PathBuf};

use f2_experiment::Speed;
use f2_files::Lock;
use f2_report::{MetricTable, Report, Results, printable};
use serde_json::json;

use super::conduct::Runner;
use super::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::verbs::speed::{ASSUMED_SHARE, Peak};
use crate::{interrupt, output};

/// Experiments and the folder for the report of all of them.
pub(in crate::verbs) struct Study {
    /// On one corpus each, in the order they were named.
    pub(super) experiments: Vec<Experiment>,
    pub(super) out: PathBuf,
}

impl Study {
    /// A study of one experiment, in the experiment's own folder.
    pub(in crate::verbs) fn of(experiment: Experiment) -> Self {
        Self { out: experiment.out.clone(), experiments: vec![experiment] }
    }

    /// The speed that training is expected to reach, for an estimate that is corrected by what
    /// the first stages take.
    fn speed(&self) -> Result<Speed, Failure> {
        let first = self.experiments.first().ok_or_else(|| Failure::usage("there is no corpus"))?;
        Ok(Speed::assumed(ASSUMED_SHARE * first.device.run(Peak)?))
    }

    /// The name of an experiment's corpus, where there are several.
    pub(super) fn corpus_of(&self, experiment: &Experiment) -> Option<String> {
        (self.experiments.len() > 1).then(|| experiment.corpora.main.name())
    }

    /// Tells which parts will be missing before anything takes time.
    pub(super) fn note_left_out(&self) {
        if self.experiments.iter().any(Experiment::lacks_pretraining) {
            remark!("note: transfer is left out; name a text to pretrain on with `--pretrain`");
        }
    }

    /// Does what is not done yet, and writes results and report.
    pub(in crate::verbs) fn run(&self, json: bool) -> Outcome {
        interrupt::listen();
        self.note_left_out();
        let results = self.perform(&self.speed()?)?;
        let page = write(&results, &self.out)?;
        if json {
            return output::print(&format!("{:#}\n", summary(&results, &self.out, &page)));
        }
        output::print_styled(&tables(&results))?;
        remark!("report: {}", page.display());
        Ok(())
    }

    fn perform(&self, speed: &Speed) -> Result<Results, Failure> {
        // What is wrong with any corpus is said before the first is worked on.
        let seconds: Vec<f64> = self
            .experiments
            .iter()
            .map(|experiment| Ok(experiment.lay_out(speed)?.seconds()))
            .collect::<Result<_, Failure>>()?;
        let device = |experiment: &Experiment| Runner::new(experiment.device, &self.out);
        if let [only] = self.experiments.as_slice() {
            return only.perform(speed, &mut device(only));
        }
        let _lock = Lock::inside(&self.out)?;
        let mut studies = Vec::new();
        for (number, experiment) in self.experiments.iter().enumerate() {
            let name = self.corpus_of(experiment);
            let after = seconds[number + 1..].iter().sum();
            let mut runner = device(experiment).on(name.as_deref(), after);
            let mut results = experiment.perform(speed, &mut runner)?;
            name_set(&mut results, name.as_deref());
            write_results(&results, &experiment.out)?;
            studies.push(results);
        }
        let names = self.experiments.iter().map(|each| each.corpora.main.name());
        let title = format!("F² on {}", names.collect::<Vec<_>>().join(" and "));
        Ok(Results { studies, ..Results::new(title) })
    }
}

/// Names the corpus in every score: models are compared on the same one only.
fn name_set(results: &mut Results, name: Option<&str>) {
    for set in &mut results.scores {
        let other = set.other_seeds.iter_mut().flat_map(|seed| &mut seed.records);
        for record in set.records.iter_mut().chain(other) {
            record.set = name.map(str::to_owned);
        }
    }
}

fn write_results(results: &Results, out: &Path) -> Outcome {
    Ok(f2_files::write_text_atomically(&out.join("results.json"), &results.to_json())?)
}

/// Writes `results.json` and the report, and returns the page.
fn write(results: &Results, out: &Path) -> Result<PathBuf, Failure> {
    write_results(results, out)?;
    Ok(Report::new(results).write(out)?)
}

/// The results of each corpus.
fn of_each_corpus(results: &Results) -> &[Results] {
    if results.studies.is_empty() { std::slice::from_ref(results) } else { &results.studies }
}

/// The main tables, that of transfer, and what they say in a sentence.
fn tables(results: &Results) -> String {
    let of_one = |results: &Results| {
        let report = Report::new(results);
        let main = results.scores.first().map(|set| MetricTable::new(&set.records).build());
        let transfer = report.tables().find(|named| named.name == "transfer");
        let tables = main.iter().chain(transfer.map(|named| &named.table));
        let lead = report.lead.iter().map(|line| format!("{}\n", printable(line))).collect();
        let parts: Vec<String> =
            tables.map(|table| table.to_terminal(output::takes_colour())).chain([lead]).collect();
        parts.join("\n")
    };
    of_each_corpus(results).iter().map(of_one).collect::<Vec<_>>().join("\n")
}

fn summary(results: &Results, out: &Path, page: &Path) -> serde_json::Value {
    let of_one = |results: &Results| {
        json!({
            "lead": Report::new(results).lead,
            "scores": results.scores,
            "transfer": results.transfer,
        })
    };
    let mut summary = match results.studies.as_slice() {
        [] => of_one(results),
        studies => json!({ "studies": studies.iter().map(of_one).collect::<Vec<_>>() }),
    };
    summary["results"] = out.join("results.json").display().to_string().into();
    summary["report"] = page.display().to_string().into();
    summary
}
