//! A study: an experiment on one corpus, or one on each of several, and its report.

use std::path::{Path, PathBuf};

use f2_experiment::Speed;
use f2_files::Lock;
use f2_report::{MetricTable, Report, Results, printable};
use serde_json::json;

use super::conduct::Runner;
use super::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;
use crate::verbs::speed::{ASSUMED_SHARE, Peak};
use crate::{interrupt, output};

/// Experiments and the folder for the report of all of them.
pub(in crate::verbs) struct Study {
    /// On one corpus each, in the order they were named.
    pub(super) experiments: Vec<Experiment>,
    pub(super) out: PathBuf,
    /// The devices that stages run on, one on each at a time.
    pub(super) devices: Vec<DeviceChoice>,
}

impl Study {
    /// A study of one experiment, in the experiment's own folder.
    pub(in crate::verbs) fn of(experiment: Experiment) -> Self {
        let (out, devices) = (experiment.out.clone(), vec![experiment.device]);
        Self { experiments: vec![experiment], out, devices }
    }

    /// The speed that training is expected to reach, for an estimate that the time of the first
    /// stages corrects.
    fn speed(&self) -> Result<Speed, Failure> {
        let first = self.experiments.first().ok_or_else(|| Failure::usage("there is no corpus"))?;
        Ok(Speed::assumed(ASSUMED_SHARE * first.device.run(Peak)?))
    }

    /// The name of an experiment's corpus, if there are several.
    pub(super) fn corpus_of(&self, experiment: &Experiment) -> Option<String> {
        (self.experiments.len() > 1).then(|| experiment.corpora.main.name())
    }

    /// Reports parts that will be left out, before anything takes time.
    pub(super) fn note_left_out(&self) {
        if self.experiments.iter().any(Experiment::lacks_pretraining) {
            remark!("note: transfer is left out; name a text to pretrain on with `--pretrain`");
        }
    }

    /// Runs the stages that are not done yet, and writes results and report.
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
        // Errors in any corpus are reported before work on the first begins.
        let seconds: Vec<f64> = self
            .experiments
            .iter()
            .map(|experiment| Ok(experiment.lay_out(speed)?.seconds()))
            .collect::<Result<_, Failure>>()?;
        let runner = || Runner::new(&self.devices, &self.out);
        if let [only] = self.experiments.as_slice() {
            return only.perform(speed, &runner());
        }
        let _lock = Lock::inside(&self.out)?;
        let mut studies = Vec::new();
        for (number, experiment) in self.experiments.iter().enumerate() {
            let name = self.corpus_of(experiment);
            let after: f64 = seconds[number + 1..].iter().sum();
            let after = after / self.devices.len() as f64;
            let mut results = experiment.perform(speed, &runner().on(name.as_deref(), after))?;
            name_set(&mut results, name.as_deref());
            write_results(&results, &experiment.out)?;
            studies.push(results);
        }
        let names = self.experiments.iter().map(|each| each.corpora.main.name());
        let title = format!("F² on {}", names.collect::<Vec<_>>().join(" and "));
        Ok(Results { studies, ..Results::new(title) })
    }
}

/// Names the corpus in every score, as only models on the same one are compared.
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

/// The main tables, the one of transfer, and a sentence on the result.
fn tables(results: &Results) -> String {
    let of_one = |results: &Results| {
        let report = Report::new(results);
        let main = results.scores.first().map(|set| MetricTable::new(&set.records).build());
        let transfer = report.tables().find(|named| named.name == "transfer");
        let tables = main.iter().chain(transfer.map(|named| &named.table));
        let lead = report.lead.iter().map(|line| format!("{}\n", printable(line))).collect();
        let parts: Vec<String> =
            tables.map(|table| table.to_terminal(output::terminal())).chain([lead]).collect();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use clap::Parser as _;
    use f2_experiment::{Corpora, CorpusSource, Plan};

    use super::*;
    use crate::verbs::{Program, Verb};

    const PLAN: &str = r#"
        paper = "wikitext103"
        documents = "lines"
        vocabulary = 300
        models = ["mle", "f2"]
        [training]
        preset = "demo"
        steps = 3
        [training.settings]
        "model.layers" = 1
        "model.width" = 16
        "model.heads" = 2
        "model.feed_forward" = 32
        "batch.sequence" = 64
        "batch.size" = 2
        [generation]
        k = 3
        greedy = true
        streams = 4
        prefix = 8
        continuation = 16
        [evaluation]
        samples = 2
    "#;

    /// A study of the beginning of the built-in text, on the given number of CPUs.
    fn study(folder: &Path, devices: usize) -> Study {
        let words = ["f2", "reproduce", "x", "--out", "y", "--device", "cpu", "--threads", "1"];
        let Verb::Reproduce(verb) = Program::try_parse_from(words).unwrap().verb else {
            panic!("it is f2 reproduce");
        };
        let text = folder.join("text.txt");
        fs::write(&text, f2_corpus::builtin_text().get(..40_000).unwrap()).unwrap();
        let plan = folder.join("plan.toml");
        fs::write(&plan, PLAN).unwrap();
        let experiment = Experiment {
            plan: Plan::load(&plan).unwrap(),
            corpora: Corpora::new(CorpusSource::find(&[text]).unwrap(), None).unwrap(),
            out: folder.join("study"),
            only: Vec::new(),
            device: verb.device,
        };
        Study { devices: vec![verb.device; devices], ..Study::of(experiment) }
    }

    /// The results of stages: texts, scores, perplexities, parameters.
    fn made(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>, root: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let is_result = ["texts.jsonl", "scores.json", "perplexity.json", "model.safetensors"];
            if path.is_dir() {
                made(&path, found, root);
            } else if is_result.contains(&&*name) {
                let relative = path.strip_prefix(root).unwrap().to_path_buf();
                found.insert(relative, fs::read(&path).unwrap());
            }
        }
    }

    #[test]
    fn stages_that_run_side_by_side_make_the_bytes_of_those_in_a_row() {
        let results = [1, 3].map(|devices| {
            let folder = tempfile::tempdir().unwrap();
            let study = study(folder.path(), devices);
            study.perform(&Speed::assumed(1e9)).map_err(|failure| format!("{failure:?}")).unwrap();
            let mut found = BTreeMap::new();
            made(&study.out.join("stages"), &mut found, &study.out);
            found
        });
        assert!(results[0].len() >= 10, "{:?}", results[0].keys());
        assert_eq!(results[0], results[1]);
    }
}
