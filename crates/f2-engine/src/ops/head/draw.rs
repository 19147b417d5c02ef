//! Drawing the next token from a head, on devices that do so themselves.

use super::{F2Head, SoftmaxHead};

/// What tokens are drawn from.
#[derive(Clone, Copy, Debug)]
pub enum DrawHead<'a> {
    /// The plain softmax over all tokens.
    Plain(SoftmaxHead),
    /// F²'s full posterior.
    Joint(&'a F2Head),
    /// A class first, then a token in it.
    Decoupled(&'a F2Head, ClassLaw),
}

/// How a class is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassLaw {
    /// Divides the logarithms of probabilities; 0 takes the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes up to this mass, never beyond it, but at least one.
    pub top_p: f64,
}

/// How a token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLaw {
    /// As for classes.
    pub temperature: f64,
    /// Keeps the k most likely tokens, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps tokens at least this share as likely as the most likely.
    pub min_p: Option<f64>,
}

/// A token that was drawn, with what the model says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The token; nothing where the model's numbers are not numbers.
    pub id: Option<u32>,
    /// The logarithm of its probability, its class's included.
    pub log_probability: f32,
    /// Its class and the logarithm of the class's probability; nothing with a plain softmax.
    pub class: Option<(u32, f32)>,
}
