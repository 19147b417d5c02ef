//! `f2 reproduce --dry-run`: the stages, their time, disk and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use f2_engine::Device;
use f2_experiment::{DeviceFlags, Speed, Stage, StepProbe, training_bytes};
use f2_lm::config::ObjectiveName;
use f2_report::{Align, Table};
use indicatif::{HumanBytes, HumanDuration};
use serde_json::json;

use super::experiment::{Experiment, LaidOut};
use super::study::Study;
use crate::failure::{Failure, Outcome};
use crate::machine::{self, free_disk};
use crate::output;
use crate::verbs::device::DeviceTask;
use crate::verbs::speed::{ASSUMED_SHARE, Peak};

/// A machine is busy if other programs slow this one down by more than this factor.
const BUSY: f64 = 1.3;

/// One stage that would run, or is done.
struct Line {
    stage: Stage,
    /// The corpus, if there are several.
    corpus: Option<String>,
    done: bool,
    seconds: f64,
    bytes: u64,
}

/// Measurements of a dry run.
#[derive(Default)]
struct Measured {
    /// Bytes that the largest training needs, and that are available now.
    training_bytes: u64,
    available_bytes: Option<u64>,
    /// How many times slower other programs make this one.
    slowdown: f64,
    /// Whether steps of every model could be timed.
    timed: bool,
}

/// The memory of a training, on whichever device.
struct Memory<'a>(&'a Experiment);

impl DeviceTask for Memory<'_> {
    type Output = (u64, Option<u64>);

    fn run<D: Device>(self, device: D) -> Result<Self::Output, Failure> {
        Ok(training_bytes(&device, &self.0.plan, &self.0.corpora)?)
    }
}

impl DeviceTask for &StepProbe {
    type Output = Option<f64>;

    fn run<D: Device>(self, device: D) -> Result<Option<f64>, Failure> {
        Ok(self.seconds(device)?)
    }
}

impl Study {
    pub(in crate::verbs) fn print_stages(&self, json: bool) -> Outcome {
        self.note_left_out();
        let mut measured =
            Measured { timed: true, slowdown: self.slowdown(), ..Measured::default() };
        let mut lines = Vec::new();
        let mut flags = DeviceFlags::default();
        for experiment in &self.experiments {
            flags = experiment.device.flags();
            let speed = experiment.timed_speed(&mut measured)?;
            let laid = experiment.lay_out(&speed)?;
            lines.extend(needed(laid, self.corpus_of(experiment).as_deref()));
        }
        output::print(&if json {
            to_json(&lines, &measured, &flags)
        } else {
            self.to_text(&lines, &measured)
        })
    }

    /// How many times slower other programs make this one, if all share the processor evenly. A GPU
    /// is not shared in this way.
    fn slowdown(&self) -> f64 {
        let on_cpu = self.experiments.iter().all(|each| !each.device.is_gpu());
        let load = machine::load().filter(|_| on_cpu);
        load.map_or(1.0, |load| 1.0 + load / machine::cores() as f64)
    }

    fn to_text(&self, lines: &[Line], measured: &Measured) -> String {
        let mut table =
            Table::new([("stage", Align::Left), ("time", Align::Right), ("disk", Align::Right)]);
        for line in lines {
            let time = if line.done { "done".to_owned() } else { time(line.seconds) };
            table.row([line.name().into(), time.into(), HumanBytes(line.bytes).to_string().into()]);
        }
        let to_do = || lines.iter().filter(|line| !line.done);
        let (seconds, bytes): (f64, u64) =
            (to_do().map(|line| line.seconds).sum(), to_do().map(|line| line.bytes).sum());
        // The last ancestor of a relative path is empty, which means the current folder.
        let existing = self.out.ancestors().find(|folder| folder.exists());
        let free = free_disk(existing.unwrap_or(Path::new(".")))
            .map_or_else(String::new, |free| format!("; {} free", HumanBytes(free)));
        format!(
            "{}\nto do: {} of {} stages, about {}{}, about {} of disk{free}\n{}{}",
            table.to_terminal(output::terminal()),
            to_do().count(),
            lines.len(),
            time(seconds),
            self.side_by_side(seconds),
            HumanBytes(bytes),
            measured.memory(),
            measured.times(seconds),
        )
    }
}

impl Study {
    /// The time if several devices share the stages and no stage waits for another.
    fn side_by_side(&self, seconds: f64) -> String {
        match self.devices.len() {
            0 | 1 => String::new(),
            count => format!(" (at best {} on {count} GPUs)", time(seconds / count as f64)),
        }
    }
}

impl Experiment {
    /// The current speed of this machine, from steps of the plan's own models.
    fn timed_speed(&self, measured: &mut Measured) -> Result<Speed, Failure> {
        let began = Instant::now();
        let (needed, available) = self.device.run(Memory(self))?;
        let start = began.elapsed().as_secs_f64();
        measured.training_bytes = measured.training_bytes.max(needed);
        measured.available_bytes = available;
        let operations = ASSUMED_SHARE * self.device.run(Peak)?;
        let mut speed = Speed { start, ..Speed::assumed(operations) };
        for model in self.timed_models() {
            let probe = StepProbe::new(&self.plan, &self.corpora, model)?;
            match self.device.run(&probe)? {
                Some(seconds) => speed.add(&probe, seconds),
                None => measured.timed = false,
            }
        }
        Ok(speed)
    }

    /// The models whose steps are timed: MLE, those of the plan, and those they start from.
    fn timed_models(&self) -> Vec<ObjectiveName> {
        let mut models = vec![ObjectiveName::Mle];
        for model in &self.plan.models {
            for each in [Some(*model), model.starts_from()].into_iter().flatten() {
                if !models.contains(&each) {
                    models.push(each);
                }
            }
        }
        // Last, because its steps are partly those of `Unlikelihood`, which is timed before.
        models.sort_by_key(|model| *model == ObjectiveName::UnlikelihoodSequence);
        models
    }
}

impl Measured {
    fn memory(&self) -> String {
        let available = self
            .available_bytes
            .map_or_else(String::new, |bytes| format!(" of {} available", HumanBytes(bytes)));
        let short = self.available_bytes.is_some_and(|bytes| bytes < self.training_bytes);
        let short = if short { ": too little" } else { "" };
        format!(
            "memory: training needs about {}{available}{short}\n",
            HumanBytes(self.training_bytes)
        )
    }

    fn times(&self, seconds: f64) -> String {
        if !self.timed {
            return format!(
                "times: estimated from this machine's peak, of which training is assumed to reach \
                 {:.0} %; no step fits into its memory to be timed\n",
                100.0 * ASSUMED_SHARE
            );
        }
        let busy = if self.slowdown > BUSY {
            format!(
                "; other programs keep it busy, and without them it may take about {}",
                time(seconds / self.slowdown)
            )
        } else {
            String::new()
        };
        format!("times: from a few steps of each model, made just now on this machine{busy}\n")
    }
}

/// The stages that are needed.
fn needed(laid: LaidOut, corpus: Option<&str>) -> Vec<Line> {
    let LaidOut { stages, keys, needed, estimates, store } = laid;
    let all = stages.0.into_iter().zip(&keys).zip(&estimates).zip(&needed);
    all.filter(|(_, needed)| **needed)
        .map(|(((stage, key), estimate), _)| Line {
            done: store.done(&stage, key).is_some(),
            stage,
            corpus: corpus.map(str::to_owned),
            seconds: estimate.seconds,
            bytes: estimate.bytes,
        })
        .collect()
}

impl Line {
    fn name(&self) -> String {
        let corpus = self.corpus.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        format!("{corpus}{}", self.stage.name)
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1.0 => "< 1 second".to_owned(),
        _ => HumanDuration(Duration::from_secs_f64(seconds.min(1e9))).to_string(),
    }
}

fn to_json(lines: &[Line], measured: &Measured, flags: &DeviceFlags) -> String {
    let stages = lines.iter().map(|line| {
        json!({
            "stage": line.stage.name,
            "corpus": line.corpus,
            "command": line.stage.shown(flags),
            "done": line.done,
            "estimated_seconds": line.seconds,
            "estimated_bytes": line.bytes,
        })
    });
    let stages: Vec<_> = stages.collect();
    let report = json!({
        "stages": stages,
        "training_bytes": measured.training_bytes,
        "available_bytes": measured.available_bytes,
        "timed": measured.timed,
        "slowdown": measured.slowdown,
    });
    format!("{report:#}\n")
}
