//! The distribution a device draws from, and what it draws.

/// How the next token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Draws a class first, then a token in it; none draws from the full posterior at once. Only
    /// for a head with classes.
    pub class: Option<ClassSampling>,
    /// The token, within its class or among all.
    pub token: TokenSampling,
}

/// How a class is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassSampling {
    /// Divides log-probabilities; 0 takes the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes up to this mass, never beyond it, but at least one.
    pub top_p: f64,
}

/// How a token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSampling {
    /// Divides log-probabilities; 0 takes the most likely token.
    pub temperature: f64,
    /// Keeps the k most likely tokens, and all that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps tokens at least this share as likely as the most likely.
    pub min_p: Option<f64>,
}

/// A token that was drawn, with its probability under the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The token; none where the model's logits are NaN.
    pub id: Option<u32>,
    /// The logarithm of its probability, its class's included.
    pub log_probability: f32,
    /// Its class and the logarithm of the class's probability; none with a plain softmax.
    pub class: Option<(u32, f32)>,
}
