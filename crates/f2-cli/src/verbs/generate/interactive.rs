//! Prompts that are answered one by one: from a terminal, or line by line from a file or pipe.

use std::io::{self, IsTerminal as _, stdin, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use f2_engine::Device;
use f2_lm::decode::Generator;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::paint::Paint;
use super::prompts::Prompts;
use super::writing::Writing;
use super::{Generate, Inquiry};
use crate::bounded::BoundedLines;
use crate::failure::{Failure, Kind, Outcome};
use crate::verbs::device::DeviceTask;
use crate::{interrupt, output};

/// An interactive session, on whichever device.
pub(super) struct Conversation<'a> {
    pub(super) verb: &'a Generate,
    pub(super) inquiry: Inquiry<'a>,
}

impl DeviceTask for Conversation<'_> {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Outcome {
        let loaded = self.inquiry.model.load(device)?;
        let generator = Generator { model: &loaded };
        let paint = Paint::new(self.inquiry.model);
        let mut lines = Lines::open()?;
        if let Some(legend) = paint.legend().filter(|_| !self.verb.json) {
            output::print_styled(&legend)?;
        }
        let mut earlier = Vec::new();
        while let Some(line) = lines.next()? {
            if line.trim().is_empty() {
                continue;
            }
            let mut prompts = match self.verb.read_line(line, self.inquiry.model) {
                Ok(prompts) => prompts,
                // The next prompt may be better.
                Err(failure) => {
                    let _ = failure.report();
                    continue;
                }
            };
            self.answer(&generator, &paint, &prompts, &earlier)?;
            lines.end_answer()?;
            if !self.verb.json {
                output::print_styled("\n")?;
            }
            earlier.append(&mut prompts.ids);
            if output::reader_left() {
                break;
            }
        }
        Ok(())
    }
}

impl Conversation<'_> {
    /// Continues a prompt until it is done or Ctrl-C stops it.
    fn answer<D: Device>(
        &self,
        generator: &Generator<'_, D>,
        paint: &Paint,
        prompts: &Prompts,
        earlier: &[Vec<u32>],
    ) -> Outcome {
        let Self { verb, inquiry } = *self;
        let request = verb.request(&inquiry, prompts, earlier);
        let writing = Writing { verb, inquiry, amateur: None, prompts, request: &request };
        let (generated, _) = writing.write(generator, paint)?;
        if !generated.complete && !verb.json {
            output::print_styled("\n")?;
        }
        Ok(())
    }
}

/// How often a wait for a line checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Where prompts come from.
enum Lines {
    /// A terminal, with line editing and history.
    Terminal(Box<DefaultEditor>),
    /// A file or another program. Its lines are read in a separate thread, because a signal does
    /// not end the wait for a line.
    Other(Receiver<io::Result<String>>),
}

impl Lines {
    fn open() -> Result<Self, Failure> {
        if !(stdin().is_terminal() && stdout().is_terminal()) {
            interrupt::listen();
            return Ok(Self::Other(lines_of_input()?));
        }
        let editor = DefaultEditor::new().map_err(|error| no_terminal(&error))?;
        interrupt::listen_to_keys();
        remark!("Ctrl-C stops an answer, Ctrl-D ends; the arrow keys bring earlier prompts back");
        Ok(Self::Terminal(Box::new(editor)))
    }

    /// The next line; `None` at the end.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Self::Terminal(editor) => loop {
                match editor.readline("> ") {
                    Ok(line) => {
                        editor.add_history_entry(&line).map_err(|error| no_terminal(&error))?;
                        return Ok(Some(line));
                    }
                    // Ctrl-C discards the line, not the session.
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(no_terminal(&error)),
                }
            },
            Self::Other(lines) => loop {
                check_interrupt()?;
                match lines.recv_timeout(POLL_INTERVAL) {
                    Ok(Ok(line)) => return Ok(Some(line)),
                    Ok(Err(error)) => {
                        return Err(Failure::data(format!("standard input: {error}")));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                }
            },
        }
    }

    /// After an answer: a person who stopped it wants to ask again, a script wants to end.
    fn end_answer(&self) -> Outcome {
        match self {
            Self::Terminal(_) => {
                interrupt::forget();
                Ok(())
            }
            Self::Other(_) => check_interrupt(),
        }
    }
}

/// The lines of standard input as they come, without line breaks.
fn lines_of_input() -> Result<Receiver<io::Result<String>>, Failure> {
    let (sender, receiver) = sync_channel(1);
    let reading = Builder::new().spawn(move || {
        for line in BoundedLines::endless(stdin().lock()) {
            let failed = line.is_err();
            if sender.send(line).is_err() || failed {
                break;
            }
        }
    });
    match reading {
        Ok(_) => Ok(receiver),
        Err(error) => Err(Failure::without_thread("to read standard input", &error)),
    }
}

fn check_interrupt() -> Outcome {
    if interrupt::asked() {
        return Err(Failure::new(Kind::Interrupted, "stopped before the end of standard input"));
    }
    Ok(())
}

fn no_terminal(error: &ReadlineError) -> Failure {
    Failure::new(Kind::Device, format!("cannot read from the terminal: {error}"))
}
