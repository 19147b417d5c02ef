//! The job that a request gives to a model's thread, and the pieces of its result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use f2_lm::decode::{Continuation, RandomStream, Scored, Strategy, Token};
use tokio::sync::mpsc::UnboundedSender;

use crate::Served;

/// The jobs of one model, for the thread that runs [`work`](crate::work).
pub struct Jobs {
    pub(crate) served: Arc<Served>,
    pub(crate) receiver: Receiver<Job>,
}

/// Texts to generate, numbered `prompt · samples + sample`.
pub(crate) struct Job {
    pub(crate) prompts: Vec<Vec<u32>>,
    pub(crate) samples: usize,
    pub(crate) new_tokens: usize,
    pub(crate) strategy: Arc<Strategy>,
    pub(crate) seed: u64,
    /// The random numbers of each text.
    pub(crate) streams: Vec<RandomStream>,
    pub(crate) end: Option<u32>,
    /// The number of alternatives reported with each token; `None` without log-probabilities.
    pub(crate) alternatives: Option<usize>,
    pub(crate) score_prompts: bool,
    pub(crate) stopped: Stopped,
    /// Unbounded, but at most one piece is sent for each token of the job.
    pub(crate) pieces: UnboundedSender<Piece>,
}

impl Job {
    pub(crate) fn texts(&self) -> usize {
        self.prompts.len() * self.samples
    }

    /// Whether a text is over: it reached a stop sequence, or its client has disconnected.
    pub(crate) fn is_over(&self, text: usize) -> bool {
        self.stopped.is_set(text) || self.pieces.is_closed()
    }

    /// Sends a piece; if the client has disconnected, it is dropped.
    pub(crate) fn send(&self, piece: Piece) {
        let _ = self.pieces.send(piece);
    }
}

/// Texts that reached a stop sequence, by number.
#[derive(Clone)]
pub(crate) struct Stopped(Arc<[AtomicBool]>);

impl Stopped {
    pub(crate) fn new(texts: usize) -> Self {
        Self((0..texts).map(|_| AtomicBool::new(false)).collect())
    }

    pub(crate) fn set(&self, text: usize) {
        self.0[text].store(true, Ordering::SeqCst);
    }

    fn is_set(&self, text: usize) -> bool {
        self.0[text].load(Ordering::SeqCst)
    }
}

/// A part of the result of a job.
pub(crate) enum Piece {
    /// Scores of the next tokens of a text's prompt.
    Prompt { text: usize, scores: Vec<Scored> },
    /// The next token of a text.
    Token { text: usize, token: Token, alternatives: Vec<(u32, f32)>, is_end: bool },
    /// A text has all its tokens.
    Finished { text: usize },
    /// The texts of a beam search, known at its end.
    Beams(Vec<Continuation>),
    /// The model could not continue.
    Failed(String),
}
