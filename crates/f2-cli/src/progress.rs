//! Progress on standard error: on a terminal a live bar with rate and time left, otherwise a plain
//! line every few seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use f2_engine::check_threads;
use f2_report::printable;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{draws_progress, progress_width};

/// How often a line is printed if there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// The unit of progress.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Tokens,
    /// Bootstrap replicates; without a total, a job that draws none.
    Draws,
    /// Decoding settings that were tried.
    Settings,
    /// Seconds of a time limit.
    Seconds,
    /// A job whose progress is unknown.
    Time,
}

/// The progress of a job, with a known or unknown total. Finished when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    label: String,
    unit: Unit,
    /// When the last plain line was printed; `None` on a terminal, where the bar draws itself.
    printed: Option<Mutex<Instant>>,
}

impl Progress {
    pub(crate) fn new(label: &str, total: Option<u64>, unit: Unit) -> Self {
        let (terminal, label) = (draws_progress(), printable(label));
        let target = if terminal {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target)
            .with_style(style(total.is_some(), unit, &label))
            .with_prefix(label.to_string());
        // If `advance` is called rarely or never, the bar redraws itself in its own thread, or a
        // line says that the job began.
        let ticks = matches!(unit, Unit::Time | Unit::Draws | Unit::Settings | Unit::Seconds);
        if terminal && ticks && check_threads(1).is_ok() {
            bar.enable_steady_tick(Duration::from_millis(125));
        } else if matches!(unit, Unit::Time) {
            remark!("{label} …");
        }
        let printed = (!terminal).then(|| Mutex::new(Instant::now()));
        Self { bar, label: label.into_owned(), unit, printed }
    }

    /// Advances by `amount`.
    pub(crate) fn advance(&self, amount: u64) {
        self.bar.inc(amount);
        let Some(printed) = &self.printed else { return };
        let Ok(mut last) = printed.try_lock() else { return };
        if last.elapsed() >= PLAIN_INTERVAL {
            *last = Instant::now();
            remark!("{}", self.plain_line());
        }
    }

    /// Runs `work`, which writes to the terminal, with the bar hidden.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    fn plain_line(&self) -> String {
        let (position, seconds) = (self.bar.position(), self.bar.elapsed().as_secs_f64());
        let rate = position as f64 / seconds.max(1e-9);
        let done = format!("{}: {}", self.label, self.unit.amount(position));
        match self.bar.length() {
            Some(total) => {
                let left = total.saturating_sub(position) as f64 / rate.max(1e-9);
                let left = HumanDuration(Duration::from_secs_f64(left.min(1e9)));
                let (total, rate) = (self.unit.amount(total), self.unit.amount(rate as u64));
                format!("{done} of {total}, {rate}/s, {left} left")
            }
            None => format!("{done}, {}/s", self.unit.amount(rate as u64)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let elapsed = self.bar.elapsed();
        if elapsed < Duration::from_secs(2) {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        match (self.unit, self.bar.length()) {
            (Unit::Time, _) | (Unit::Draws, None) => remark!("{}: {seconds:.1} s", self.label),
            _ => {
                let amount = self.unit.amount(self.bar.position());
                remark!("{}: {amount} in {seconds:.1} s", self.label);
            }
        }
    }
}

impl Unit {
    /// A number with its unit.
    fn amount(self, number: u64) -> String {
        match self {
            Self::Bytes => HumanBytes(number).to_string(),
            Self::Tokens => format!("{number} tokens"),
            Self::Draws => format!("{number} draws"),
            Self::Settings => format!("{number} settings"),
            Self::Seconds => format!("{number} s"),
            Self::Time => number.to_string(),
        }
    }
}

fn style(bounded: bool, unit: Unit, label: &str) -> ProgressStyle {
    let template = template(bounded, unit, label.chars().count(), progress_width());
    ProgressStyle::with_template(&template).expect("the templates are well formed")
}

/// The template of a line that fits into `width` characters: the narrower, the fewer numbers. The
/// bar fills the rest.
fn template(bounded: bool, unit: Unit, label: usize, width: usize) -> String {
    let most = width / 3;
    let name = format!("{{prefix:<{}!}}", label.clamp(most.min(24), most));
    let rest = match (unit, bounded, width) {
        (Unit::Draws, false, _) | (Unit::Time, ..) => "{spinner} {elapsed}",
        (_, true, ..60) => "{wide_bar} {percent:>3} % {eta}",
        (Unit::Bytes, true, 60..100) => "{wide_bar} {bytes}/{total_bytes} {eta} left",
        (_, true, 60..100) => "{wide_bar} {human_pos}/{human_len} {eta} left",
        (Unit::Bytes, true, _) => "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        (Unit::Tokens, true, _) => "{wide_bar} {human_pos}/{human_len} tokens {per_sec} {eta} left",
        (Unit::Draws, true, _) => "{wide_bar} {human_pos}/{human_len} draws {per_sec} {eta} left",
        (Unit::Settings, true, _) => "{wide_bar} {human_pos}/{human_len} settings {eta} left",
        (Unit::Seconds, true, _) => "{wide_bar} {human_pos}/{human_len} s",
        (Unit::Settings | Unit::Seconds, false, _) => "{spinner} {human_pos}",
        (Unit::Bytes, false, ..60) => "{spinner} {bytes}",
        (Unit::Bytes, false, _) => "{spinner} {bytes} {bytes_per_sec}",
        (Unit::Tokens, false, ..60) => "{spinner} {human_pos} tokens",
        (Unit::Tokens, false, _) => "{spinner} {human_pos} tokens {per_sec}",
    };
    format!("{name} {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_line_has_the_amount_and_the_time_left() {
        let progress = Progress::new("scoring f2.txt", Some(1000), Unit::Draws);
        progress.bar.inc(250);
        let line = progress.plain_line();
        assert!(line.starts_with("scoring f2.txt: 250 draws of 1000 draws, "), "{line}");
        assert!(line.ends_with(" left"), "{line}");
    }
}
