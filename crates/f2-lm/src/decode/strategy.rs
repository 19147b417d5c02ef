use crate::Error;
use f2_engine::Head;

use crate::model::ModelShape;

/// How the next token is chosen.
///
/// Applied in this order: repetition penalty, blocked n-grams, temperature, top-k, typical,
/// nucleus, min-p; each truncation sees what the one before left.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// Divides the logarithms of probabilities; 0 takes the most likely token.
    pub temperature: f64,
    /// Keeps the k most likely tokens.
    pub top_k: Option<usize>,
    /// Keeps the fewest tokens that reach this mass.
    pub top_p: Option<f64>,
    /// Keeps tokens at least this share as likely as the most likely.
    pub min_p: Option<f64>,
    /// Keeps the most typical tokens that reach this mass.
    pub typical: Option<f64>,
    /// Multiplies the log-probability of every token that occurred before; 1 does nothing.
    pub repetition_penalty: f64,
    /// No sequence of this many tokens comes twice; 0 blocks nothing.
    pub block_ngrams: usize,
    /// What an F² model's two softmaxes are used for.
    pub factorisation: Factorisation,
    /// Searches for likely texts instead of drawing them.
    pub beam: Option<BeamSearch>,
}

/// What an F² model's two softmaxes are used for. A plain model has one, and is always joint.
#[derive(Clone, Debug, PartialEq)]
pub enum Factorisation {
    /// A class is chosen first, then a token in it.
    Decoupled(ClassDraw),
    /// Tokens are chosen from their full posterior.
    Joint,
}

/// How a class is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDraw {
    /// As for tokens; 0 takes the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes up to this mass, never beyond it: 1 is the paper's text, 0.9
    /// the authors' code.
    pub top_p: f64,
    /// What becomes of a class with fewer than k tokens.
    pub small: SmallClass,
}

/// What top-k does in a class with fewer than k tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallClass {
    /// Takes all of them (the paper's Eq. 7).
    #[default]
    Clamp,
    /// Draws further classes until there are k tokens (the authors' code).
    Fill,
}

/// Beam search, and diverse beam search with more than one group.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamSearch {
    /// Hypotheses kept.
    pub width: usize,
    /// Parts the beam is divided into; each avoids the tokens of those before it.
    pub groups: usize,
    /// What each use of a token by an earlier group costs a hypothesis, in nats.
    pub diversity: f64,
    /// A finished text's log-probability is divided by its length to this power.
    pub length_penalty: f64,
}

impl Default for ClassDraw {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: 1.0, small: SmallClass::Clamp }
    }
}

impl Default for BeamSearch {
    fn default() -> Self {
        Self { width: 4, groups: 1, diversity: 0.5, length_penalty: 1.0 }
    }
}

impl Default for Strategy {
    /// Draws from the model's own law, decoupled.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            min_p: None,
            typical: None,
            repetition_penalty: 1.0,
            block_ngrams: 0,
            factorisation: Factorisation::Decoupled(ClassDraw::default()),
            beam: None,
        }
    }
}

impl Strategy {
    /// The most likely class, and the most likely token in it.
    pub fn greedy() -> Self {
        let class = ClassDraw { temperature: 0.0, ..ClassDraw::default() };
        let factorisation = Factorisation::Decoupled(class);
        Self { temperature: 0.0, factorisation, ..Self::default() }
    }

    /// A class by its probability, then one of its k most likely tokens.
    pub fn top_k(k: usize) -> Self {
        Self { top_k: Some(k), ..Self::default() }
    }

    /// The same on the full posterior.
    #[must_use]
    pub fn joint(self) -> Self {
        Self { factorisation: Factorisation::Joint, ..self }
    }

    /// How classes are drawn with this head; none where tokens are chosen at once.
    pub(super) fn class_draw(&self, head: &Head) -> Option<&ClassDraw> {
        match (&self.factorisation, &head.classes) {
            (Factorisation::Decoupled(draw), Some(_)) => Some(draw),
            _ => None,
        }
    }

    /// Refuses what cannot be done with a model of this shape.
    pub fn check(&self, shape: &ModelShape) -> Result<(), Error> {
        self.check_tokens(shape.vocabulary)?;
        if let Factorisation::Decoupled(draw) = &self.factorisation
            && !shape.class_ends.is_empty()
        {
            draw.check(shape.class_ends.len())?;
            let fills = draw.small == SmallClass::Fill;
            require("small classes", !fills || self.top_k.is_some(), || {
                "filling them up needs a k".to_owned()
            })?;
        }
        self.beam.as_ref().map_or(Ok(()), |beam| beam.check(self, shape.vocabulary))
    }

    fn check_tokens(&self, vocabulary: usize) -> Result<(), Error> {
        check_temperature("temperature", self.temperature)?;
        check_k("top-k", self.top_k, vocabulary, "tokens")?;
        for (option, share) in
            [("top-p", self.top_p), ("min-p", self.min_p), ("typical", self.typical)]
        {
            check_share(option, share.unwrap_or(1.0))?;
        }
        let penalty = self.repetition_penalty;
        require("repetition penalty", penalty.is_finite() && penalty >= 1.0, || {
            format!("{penalty} is not a number from 1 up")
        })
    }
}

impl ClassDraw {
    fn check(&self, classes: usize) -> Result<(), Error> {
        check_temperature("class temperature", self.temperature)?;
        check_k("class top-k", self.top_k, classes, "classes")?;
        check_share("class top-p", self.top_p)
    }
}

impl BeamSearch {
    /// How many of `prompts` prompts are searched at a time, at about `batch` hypotheses.
    pub(super) fn at_a_time(&self, batch: usize, prompts: usize) -> usize {
        (batch / self.width).clamp(1, prompts.max(1))
    }

    fn check(&self, strategy: &Strategy, vocabulary: usize) -> Result<(), Error> {
        let Self { width, groups, diversity, length_penalty } = *self;
        require("beam width", (1..=vocabulary).contains(&width), || {
            format!("{width} is not from 1 to the model's {vocabulary} tokens")
        })?;
        require("beam groups", groups >= 1 && width.is_multiple_of(groups), || {
            format!("{groups} groups cannot share a beam of {width}")
        })?;
        require("diversity", diversity.is_finite() && diversity >= 0.0, || {
            format!("{diversity} is not a number from 0 up")
        })?;
        require("length penalty", length_penalty.is_finite(), || {
            format!("{length_penalty} is not a number")
        })?;
        let draws = strategy.top_k.is_some()
            || strategy.top_p.is_some()
            || strategy.min_p.is_some()
            || strategy.typical.is_some();
        let classes = match &strategy.factorisation {
            Factorisation::Decoupled(draw) => *draw == ClassDraw::default(),
            Factorisation::Joint => true,
        };
        require("beam", !draws && classes && strategy.temperature == 1.0, || {
            "it searches and does not draw: leave temperature, top-k, top-p, min-p, typical and \
             the classes' own out"
                .to_owned()
        })
    }
}

fn check_temperature(option: &'static str, temperature: f64) -> Result<(), Error> {
    require(option, temperature.is_finite() && temperature >= 0.0, || {
        format!("{temperature} is not a number from 0 up")
    })
}

fn check_k(option: &'static str, k: Option<usize>, most: usize, what: &str) -> Result<(), Error> {
    require(option, k.is_none_or(|k| (1..=most).contains(&k)), || {
        format!("{} is not from 1 to the model's {most} {what}", k.unwrap_or_default())
    })
}

fn check_share(option: &'static str, share: f64) -> Result<(), Error> {
    require(option, share > 0.0 && share <= 1.0, || {
        format!("{share} is not a share above 0 and up to 1")
    })
}

fn require(
    option: &'static str,
    holds: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Strategy { option, reason: reason() }) }
}
