//! The display of training in progress: on a terminal a live line, otherwise a plain one every few
//! seconds.

use std::time::{Duration, Instant};

use f2_lm::run::Event;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use unicode_width::UnicodeWidthStr as _;

use crate::output::{draws_progress, progress_width};

/// How often the line is updated: live, and as plain lines.
const LIVE_INTERVAL: Duration = Duration::from_millis(250);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// The number of steps into which the bar divides a run, and its smallest width next to the words.
const BAR_STEPS: u64 = 1000;
const SHORTEST_BAR: usize = 8;

/// Turns events into lines.
pub(super) struct Watch {
    /// The live line; `None` without a terminal.
    line: Option<ProgressBar>,
    /// The device's floating-point operations per second.
    peak: f64,
    /// Whether the loss is a log-likelihood, whose exponential is a perplexity.
    likelihood: bool,
    /// Steps over which the learning rate rises.
    warmup_steps: u64,
    began: Instant,
    printed: Instant,
    /// Progress of the run at the first step seen here.
    first_progress: Option<f64>,
    last_step: Option<u64>,
    recent: Recent,
}

/// Sums since the line was last updated.
#[derive(Default)]
struct Recent {
    steps: u32,
    loss: f64,
    tokens: u64,
    tokens_before: u64,
    seconds: f64,
    operations: f64,
}

impl Watch {
    pub(super) fn new(peak: f64, likelihood: bool, warmup_steps: u64) -> Self {
        let line = draws_progress().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {msg}").expect("well formed");
            ProgressBar::new(BAR_STEPS).with_style(style)
        });
        let now = Instant::now();
        Self {
            line,
            peak,
            likelihood,
            warmup_steps,
            began: now,
            printed: now,
            first_progress: None,
            last_step: None,
            recent: Recent::default(),
        }
    }

    /// Records an event, and shows it if it matters.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::Started { step, last_step } => {
                self.last_step = *last_step;
                self.recent.tokens_before = u64::MAX;
                self.say(&format!(
                    "peak: {:.0} billion operations a second, the fastest matrix products in a \
                     short test of this device",
                    self.peak / 1e9
                ));
                if *step > 0 {
                    self.say(&format!("resuming after step {step}"));
                }
                if let Some(words) = long_warmup(self.warmup_steps, *last_step) {
                    self.say(&words);
                }
            }
            Event::Step { .. } => self.see_step(event),
            Event::Skipped { step, loss, in_a_row } => self.say(&format!(
                "warning: step {step} skipped, its loss is {loss} or its gradient not finite \
                 ({in_a_row} in a row)"
            )),
            Event::Evaluated { step, perplexity, best, .. } => {
                let best = if *best { ", the best so far" } else { "" };
                self.say(&format!("step {step}: validation perplexity {perplexity:.2}{best}"));
            }
            Event::SaveFailed { step, reason } => self.say(&format!(
                "warning: step {step} was not saved: {reason}; training continues, the previous \
                 checkpoint stays"
            )),
            Event::Saved { .. } | Event::Ended { .. } => {}
        }
    }

    /// Prints a line that stays.
    pub(super) fn say(&self, words: &str) {
        match &self.line {
            Some(line) => line.suspend(|| remark!("{words}")),
            None => remark!("{words}"),
        }
    }

    /// Clears the live line.
    pub(super) fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    fn see_step(&mut self, event: &Event) {
        let &Event::Step { loss, step_seconds, operations, progress, tokens, .. } = event else {
            return;
        };
        let first = *self.first_progress.get_or_insert(progress);
        let recent = &mut self.recent;
        recent.tokens_before = recent.tokens_before.min(tokens);
        recent.steps += 1;
        recent.loss += loss;
        recent.tokens = tokens;
        recent.seconds += step_seconds;
        recent.operations += operations;
        let interval = if self.line.is_some() { LIVE_INTERVAL } else { PLAIN_INTERVAL };
        if self.printed.elapsed() >= interval {
            let words = self.words(event, first);
            match &self.line {
                Some(line) => {
                    let width = progress_width().saturating_sub(SHORTEST_BAR + 1);
                    line.set_message(fitting(&words, width));
                    line.set_position((progress * BAR_STEPS as f64) as u64);
                    line.tick();
                }
                None => remark!("{}", fitting(&words, usize::MAX)),
            }
            self.printed = Instant::now();
            self.recent = Recent { tokens_before: tokens, ..Recent::default() };
        }
    }

    /// The parts of a step's line, each with its priority: the lowest number matters most.
    fn words(&self, event: &Event, first_progress: f64) -> Vec<(u8, String)> {
        let &Event::Step { step, learning_rate, progress, .. } = event else {
            return Vec::new();
        };
        let recent = &self.recent;
        let loss = recent.loss / f64::from(recent.steps);
        let of = self.last_step.map_or_else(String::new, |last| format!("/{last}"));
        let rate = recent.tokens.saturating_sub(recent.tokens_before) as f64 / recent.seconds;
        let share = 100.0 * recent.operations / recent.seconds / self.peak;
        let mut words = vec![(0, format!("step {step}{of}")), (1, format!("loss {loss:.3}"))];
        if self.likelihood {
            words.push((3, format!("perplexity {:.1}", loss.exp())));
        }
        words.extend([
            (4, format!("{rate:.0} tokens/s")),
            (5, format!("{share:.0} % of peak")),
            (6, format!("learning rate {learning_rate:.1e}")),
            (2, format!("{} left", self.time_left(progress, first_progress))),
        ]);
        words
    }

    fn time_left(&self, progress: f64, first: f64) -> String {
        if progress <= first {
            return "unknown time".to_owned();
        }
        let seconds = self.began.elapsed().as_secs_f64() * (1.0 - progress) / (progress - first);
        HumanDuration(Duration::from_secs_f64(seconds.min(1e9))).to_string()
    }
}

/// As many of the words as fit into `width` columns, those that matter most.
fn fitting(words: &[(u8, String)], width: usize) -> String {
    let least = words.iter().map(|(matters, _)| *matters).max().unwrap_or(0);
    let line = |least: u8| {
        let kept = words.iter().filter(|(matters, _)| *matters <= least);
        kept.map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(", ")
    };
    let lines = (0..=least).rev().map(line);
    lines.into_iter().find(|line| line.width() <= width).unwrap_or_default()
}

/// A warning if the learning rate never reaches its top.
pub(super) fn long_warmup(warmup: u64, steps: Option<u64>) -> Option<String> {
    let steps = steps.filter(|steps| warmup > *steps)?;
    Some(format!(
        "warning: the warm-up takes {warmup} steps, the whole run {steps}: the learning rate never \
         reaches its top; shorten it with `--set schedule.warmup_steps={}`",
        steps / 10
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_keeps_what_matters_most() {
        let words =
            [(0, "step 9/600"), (1, "loss 8.273"), (3, "12 % of peak"), (2, "6 minutes left")];
        let words = words.map(|(matters, words)| (matters, words.to_owned()));
        let all = "step 9/600, loss 8.273, 12 % of peak, 6 minutes left";
        assert_eq!(fitting(&words, usize::MAX), all);
        assert_eq!(fitting(&words, all.len() - 1), "step 9/600, loss 8.273, 6 minutes left");
        assert_eq!(fitting(&words, 30), "step 9/600, loss 8.273");
        assert_eq!(fitting(&words, 9), "");
    }
}
