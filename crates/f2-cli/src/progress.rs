//! Progress on standard error: a live bar with rate and time left on a terminal, a plain line
//! every few seconds where there is none.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a line is printed where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// What the position of a job counts.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Items(&'static str),
}

/// One job with a known or unknown end. Finished when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    label: String,
    unit: Unit,
    /// When the last plain line was printed; `None` on a terminal, where the bar draws itself.
    printed: Option<Mutex<Instant>>,
}

impl Progress {
    pub(crate) fn new(label: &str, total: Option<u64>, unit: Unit) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target)
            .with_style(style(total.is_some(), unit))
            .with_prefix(label.to_owned());
        let printed = (!terminal).then(|| Mutex::new(Instant::now()));
        Self { bar, label: label.to_owned(), unit, printed }
    }

    /// Moves on by `amount`.
    pub(crate) fn advance(&self, amount: u64) {
        self.bar.inc(amount);
        let Some(printed) = &self.printed else { return };
        let Ok(mut last) = printed.try_lock() else { return };
        if last.elapsed() >= PLAIN_INTERVAL {
            *last = Instant::now();
            eprintln!("{}", self.plain_line());
        }
    }

    /// The amount with its unit, as a person reads it.
    fn amount(&self, amount: u64) -> String {
        match self.unit {
            Unit::Bytes => HumanBytes(amount).to_string(),
            Unit::Items(name) => format!("{amount} {name}"),
        }
    }

    fn plain_line(&self) -> String {
        let position = self.amount(self.bar.position());
        let rate = self.amount(self.bar.per_sec() as u64);
        match self.bar.length() {
            Some(total) => format!(
                "{}: {position} of {}, {rate}/s, {} left",
                self.label,
                self.amount(total),
                HumanDuration(self.bar.eta())
            ),
            None => format!("{}: {position}, {rate}/s", self.label),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let elapsed = self.bar.elapsed();
        if elapsed >= Duration::from_secs(2) {
            let done = self.amount(self.bar.position());
            eprintln!("{}: {done} in {:.1} s", self.label, elapsed.as_secs_f64());
        }
    }
}

fn style(bounded: bool, unit: Unit) -> ProgressStyle {
    let template = match (bounded, unit) {
        (true, Unit::Bytes) => {
            "{prefix:<22} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta} left"
        }
        (true, Unit::Items(_)) => "{prefix:<22} {bar:24} {pos}/{len} {per_sec} {eta} left",
        (false, Unit::Bytes) => "{prefix:<22} {spinner} {bytes} {bytes_per_sec}",
        (false, Unit::Items(_)) => "{prefix:<22} {spinner} {pos} {per_sec}",
    };
    ProgressStyle::with_template(template).expect("the templates above are well formed")
}
