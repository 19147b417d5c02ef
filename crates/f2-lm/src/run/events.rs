//! `events.jsonl`: the log of a run.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use f2_files::OutputFile;
use serde::{Deserialize, Deserializer, Serialize};

/// More bytes than the line of any event has.
const LONGEST_LINE: u64 = 1 << 20;

/// One line of `events.jsonl`: what happened, in the order it did.
///
/// After an interruption a step can appear twice; the later line is the one that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Training started or resumed before step `step`.
    Started {
        /// Steps done.
        step: u64,
        /// The step the run ends at, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_step: Option<u64>,
    },
    /// A step was made.
    Step {
        /// Steps done, this one included.
        step: u64,
        /// Mean loss over the step's targets, in nats.
        loss: f64,
        /// The global norm of the gradient before clipping.
        gradient_norm: f64,
        /// The learning rate used.
        learning_rate: f64,
        /// Targets predicted so far.
        tokens: u64,
        /// Seconds of training so far.
        seconds: f64,
        /// Seconds the step took.
        step_seconds: f64,
        /// Floating-point operations the step needed.
        operations: f64,
        /// The part of the run that is done, 0 to 1.
        progress: f64,
    },
    /// A step's loss or gradient was not finite; the parameters did not change.
    Skipped {
        /// Steps done, this one included.
        step: u64,
        /// The loss as text, since JSON has only finite numbers.
        loss: String,
        /// How many in a row now.
        in_a_row: u32,
    },
    /// The validation split was scored.
    Evaluated {
        /// Steps done.
        step: u64,
        /// Mean negative log-likelihood of the full posterior, in nats; `null` if it is not
        /// finite.
        #[serde(deserialize_with = "number_or_null")]
        loss: f64,
        /// Its exponential, or `null`.
        #[serde(deserialize_with = "number_or_null")]
        perplexity: f64,
        /// Targets scored.
        tokens: u64,
        /// Whether it is the best of the run.
        best: bool,
    },
    /// A checkpoint was written.
    Saved {
        /// Steps done.
        step: u64,
    },
    /// A checkpoint could not be written; training continues and the previous one stays.
    SaveFailed {
        /// Steps done.
        step: u64,
        /// Why.
        reason: String,
    },
    /// Training ended, or was stopped.
    Ended {
        /// Steps done.
        step: u64,
        /// Whether the run's limit was reached.
        complete: bool,
    },
}

/// JSON has no numbers that are not finite; they are written as `null`.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Appends events to `events.jsonl`.
#[derive(Debug)]
pub struct EventLog {
    file: OutputFile,
}

impl EventLog {
    /// Opens the log for appending. A truncated last line is ended, so that it does not spoil the
    /// next.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OutputFile::append(path)?;
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.file().read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file })
    }

    /// Appends one event as one line.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// The events of a log. Lines that are not events, such as one truncated by a crash or one longer
/// than any event, are skipped.
pub fn read_events(path: &Path) -> io::Result<Vec<Event>> {
    let path = f2_files::regular_file(path).map_err(|error| error.source)?;
    let mut log = BufReader::new(File::open(path)?);
    let (mut events, mut line) = (Vec::new(), Vec::new());
    while (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
        if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            log.skip_until(b'\n')?;
        } else {
            events.extend(serde_json::from_slice(&line).ok());
        }
        line.clear();
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cut_off_by_a_crash_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (first, second) = (Event::Saved { step: 1 }, Event::Ended { step: 2, complete: true });
        EventLog::open(&path).unwrap().append(&first).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"event\":\"sav").unwrap();
        EventLog::open(&path).unwrap().append(&second).unwrap();
        assert_eq!(read_events(&path).unwrap(), [first, second]);
    }

    #[test]
    fn a_line_longer_than_any_event_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let fits =
            |line: &str, length: u64| format!("{line}{}", " ".repeat(length as usize - line.len()));
        let saved = |step| serde_json::to_string(&Event::Saved { step }).unwrap();
        let (whole, over) = (fits(&saved(1), LONGEST_LINE - 1), fits(&saved(2), LONGEST_LINE));
        std::fs::write(&path, format!("{whole}\n{over}\n{}\n{over}", saved(3))).unwrap();
        assert_eq!(read_events(&path).unwrap(), [1, 3].map(|step| Event::Saved { step }));
    }

    #[test]
    fn an_event_is_one_readable_line() {
        let event =
            Event::Evaluated { step: 3, loss: 1.5, perplexity: 4.48, tokens: 9, best: true };
        insta::assert_snapshot!(serde_json::to_string(&event).unwrap());
    }
}
