/// A token as it was chosen. Log-probabilities are the model's own, in nats, whatever the
/// strategy made of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Its frequency rank.
    pub id: u32,
    /// Of the full posterior: class and token together.
    pub log_probability: f32,
    /// Its class and that class's log-probability; none with a plain model.
    pub class: Option<(u32, f32)>,
}

/// What a model wrote after a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// Which prompt, from 0.
    pub prompt: usize,
    /// Which of its samples, from 0; with beam search the best first.
    pub sample: usize,
    /// The tokens, without one that ended the text.
    pub tokens: Vec<Token>,
}

impl Continuation {
    /// The tokens' ids.
    pub fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.id).collect()
    }

    /// The log-probability of the whole, in nats.
    pub fn log_probability(&self) -> f64 {
        self.tokens.iter().map(|token| f64::from(token.log_probability)).sum()
    }
}

/// What an observer of generation sees.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The memory is there; the first pass comes next.
    Ready,
    /// A token more of a text that is not finished: its number is `prompt · samples + sample`.
    /// Beam search has none: it does not know before the end.
    Token {
        /// Which text.
        text: usize,
        /// What came.
        token: &'a Token,
    },
    /// A pass over all texts in progress, `tokens` of which it made longer.
    Step {
        /// How many.
        tokens: usize,
    },
    /// A text is complete.
    Finished(&'a Continuation),
}
