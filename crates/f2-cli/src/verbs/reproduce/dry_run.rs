//! `f2 reproduce --dry-run`: the stages and their cost.

use std::path::Path;
use std::time::Duration;

use f2_experiment::{DeviceFlags, Stage};
use f2_report::{Align, Table};
use indicatif::{HumanBytes, HumanDuration};
use serde_json::json;

use super::experiment::LaidOut;
use super::study::Study;
use crate::failure::Outcome;
use crate::machine::free_disk;
use crate::output;
use crate::verbs::speed::{ASSUMED_SHARE, Peak};

/// One stage that would run, or is done.
struct Line {
    stage: Stage,
    /// The corpus, where there are several.
    corpus: Option<String>,
    done: bool,
    seconds: f64,
    bytes: u64,
}

impl Study {
    pub(in crate::verbs) fn print_stages(&self, json: bool) -> Outcome {
        self.note_left_out();
        let speed = self.speed(Peak::Steady)?;
        let mut lines = Vec::new();
        let mut flags = DeviceFlags::default();
        for experiment in &self.experiments {
            flags = experiment.device.flags();
            let laid = experiment.lay_out(speed)?;
            lines.extend(needed(laid, self.corpus_of(experiment).as_deref()));
        }
        output::print(&if json {
            to_json(&lines, speed, &flags)
        } else {
            self.to_text(&lines, speed)
        })
    }

    fn to_text(&self, lines: &[Line], speed: f64) -> String {
        let mut table =
            Table::new([("stage", Align::Left), ("time", Align::Right), ("disk", Align::Right)]);
        for line in lines {
            let time = if line.done { "done".to_owned() } else { time(line.seconds) };
            table.row([line.name().into(), time.into(), HumanBytes(line.bytes).to_string().into()]);
        }
        let to_do = || lines.iter().filter(|line| !line.done);
        let (seconds, bytes): (f64, u64) =
            (to_do().map(|line| line.seconds).sum(), to_do().map(|line| line.bytes).sum());
        // A relative path ends in an empty one, which is this folder.
        let existing = self.out.ancestors().find(|folder| folder.exists());
        let free = free_disk(existing.unwrap_or(Path::new(".")))
            .map_or_else(String::new, |free| format!("; {} free", HumanBytes(free)));
        format!(
            "{}\nto do: {} of {} stages, about {}, about {} of disk{free}\n\
             times: guessed from this machine's peak, the best of several short tries; training is \
             taken to reach {:.0} % of it, {:.0} billion operations a second\n",
            table.to_terminal(false),
            to_do().count(),
            lines.len(),
            time(seconds),
            HumanBytes(bytes),
            100.0 * ASSUMED_SHARE,
            speed / 1e9
        )
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

fn to_json(lines: &[Line], speed: f64, flags: &DeviceFlags) -> String {
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
    format!("{:#}\n", json!({ "stages": stages, "assumed_operations_per_second": speed }))
}
