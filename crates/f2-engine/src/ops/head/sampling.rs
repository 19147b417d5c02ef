//! How a device samples tokens, and the result.

/// How the next token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Draws a class first, then a token within it; `None` draws a token from the full posterior.
    /// Only for a head with classes.
    pub class: Option<ClassSampling>,
    /// How the token is drawn, within its class or from all tokens.
    pub token: TokenSampling,
}

/// How a class is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassSampling {
    /// Divides the log-probabilities; 0 selects the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes and any that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes whose total probability does not exceed this, at least one.
    pub top_p: f64,
}

/// How a token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSampling {
    /// Divides the log-probabilities; 0 selects the most likely token.
    pub temperature: f64,
    /// Keeps the k most likely tokens and any that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps tokens with at least this fraction of the highest probability.
    pub min_p: Option<f64>,
}

/// A drawn token, with its probability under the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The token; `None` if the model's logits are NaN.
    pub id: Option<u32>,
    /// The logarithm of its probability, including that of its class.
    pub log_probability: f32,
    /// Its class and the logarithm of the class's probability; `None` for the plain softmax.
    pub class: Option<(u32, f32)>,
}
