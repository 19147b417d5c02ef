//! `f2 reproduce --dry-run`: the stages, and what they will take.

use std::path::Path;
use std::time::Duration;

use f2_experiment::Stage;
use f2_report::{Align, Table};
use indicatif::{HumanBytes, HumanDuration};
use serde_json::json;

use super::experiment::{Experiment, LaidOut};
use crate::failure::Outcome;
use crate::machine::free_disk;
use crate::output;
use crate::verbs::speed::{ASSUMED_SHARE, Peak};

/// One stage that would run, or is done.
struct Line<'a> {
    stage: &'a Stage,
    done: bool,
    seconds: f64,
    bytes: u64,
}

impl Experiment {
    pub(in crate::verbs) fn print_stages(&self, json: bool) -> Outcome {
        self.note_left_out();
        let speed = self.speed(Peak::Steady)?;
        let LaidOut { stages, keys, needed, estimates, store } = self.lay_out(speed)?;
        let all = stages.0.iter().zip(&keys).zip(&estimates).zip(&needed);
        let lines: Vec<Line<'_>> = all
            .filter(|(_, needed)| **needed)
            .map(|(((stage, key), estimate), _)| Line {
                stage,
                done: store.done(stage, key).is_some(),
                seconds: estimate.seconds,
                bytes: estimate.bytes,
            })
            .collect();
        output::print(&if json { to_json(&lines, speed) } else { self.to_text(&lines, speed) })
    }

    fn to_text(&self, lines: &[Line<'_>], speed: f64) -> String {
        let mut table =
            Table::new([("stage", Align::Left), ("time", Align::Right), ("disk", Align::Right)]);
        for line in lines {
            let time = if line.done { "done".to_owned() } else { time(line.seconds) };
            table.row([
                line.stage.name.clone().into(),
                time.into(),
                HumanBytes(line.bytes).to_string().into(),
            ]);
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

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1.0 => "< 1 second".to_owned(),
        _ => HumanDuration(Duration::from_secs_f64(seconds.min(1e9))).to_string(),
    }
}

fn to_json(lines: &[Line<'_>], speed: f64) -> String {
    let stages = lines.iter().map(|line| {
        json!({
            "stage": line.stage.name,
            "command": line.stage.shown(),
            "done": line.done,
            "estimated_seconds": line.seconds,
            "estimated_bytes": line.bytes,
        })
    });
    let stages: Vec<_> = stages.collect();
    format!("{:#}\n", json!({ "stages": stages, "assumed_operations_per_second": speed }))
}
