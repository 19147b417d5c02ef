//! All settings of how the next token is chosen.

use super::checks::{check_temperature, require};
use super::{
    BeamSearch, ClassDraw, Contrast, ContrastiveSearch, Dry, Mirostat, SmallClass, Truncations, Xtc,
};
use crate::Error;
use crate::model::ModelShape;

/// How the next token is chosen.
///
/// Applied in this order: repetition penalty, DRY, blocked n-grams, contrastive decoding, mirostat,
/// temperature, truncations, XTC.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// Divides log-probabilities; 0 takes the most likely token.
    pub temperature: f64,
    /// The rules that decide which tokens may be drawn.
    pub truncations: Truncations,
    /// Multiplies the log-probability of every token that occurred before; 1 does nothing.
    pub repetition_penalty: f64,
    /// No n-gram of this many tokens occurs twice; 0 blocks nothing.
    pub block_ngrams: usize,
    /// A penalty on continuing a repetition.
    pub dry: Option<Dry>,
    /// Leaves out the likeliest tokens at random.
    pub xtc: Option<Xtc>,
    /// Truncates so that the text's surprise stays near a target; instead of other truncations.
    pub mirostat: Option<Mirostat>,
    /// How an F² model's two softmaxes are used.
    pub factorisation: Factorisation,
    /// Replaces random numbers by error diffusion: a prompt's text is the same with every seed.
    pub deterministic: bool,
    /// Searches for likely texts instead of drawing them.
    pub beam: Option<BeamSearch>,
    /// Searches for likely tokens that are unlike the text, instead of drawing them.
    pub contrastive_search: Option<ContrastiveSearch>,
    /// Contrastive decoding; the caller supplies the amateur model.
    pub contrast: Option<Contrast>,
}

/// How an F² model's two softmaxes are used. A plain model has one, and is always joint.
#[derive(Clone, Debug, PartialEq)]
pub enum Factorisation {
    /// A class is chosen first, then a token in it.
    Decoupled(ClassDraw),
    /// Tokens are chosen from their full posterior.
    Joint,
}

impl Factorisation {
    /// The same, with the settings that refine top-k reset unless `truncations` includes top-k.
    #[must_use]
    pub fn beside(self, truncations: &Truncations) -> Self {
        match self {
            Self::Decoupled(draw) if truncations.top_k().is_none() => {
                let small = SmallClass::default();
                Self::Decoupled(ClassDraw { small, top_k_growth: 0.0, ..draw })
            }
            factorisation => factorisation,
        }
    }
}

impl Default for Strategy {
    /// Draws from the model's own distribution, decoupled.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            truncations: Truncations::default(),
            repetition_penalty: 1.0,
            block_ngrams: 0,
            dry: None,
            xtc: None,
            mirostat: None,
            factorisation: Factorisation::Decoupled(ClassDraw::default()),
            deterministic: false,
            beam: None,
            contrastive_search: None,
            contrast: None,
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
        let truncations = Truncations::default().with_top_k(k);
        Self { truncations, ..Self::default() }
    }

    /// The same strategy on the full posterior.
    #[must_use]
    pub fn joint(self) -> Self {
        Self { factorisation: Factorisation::Joint, ..self }
    }

    /// This strategy with the penalties of another, which apply to searches as to sampling.
    #[must_use]
    pub fn with_penalties_of(self, other: Self) -> Self {
        let Self {
            temperature: _,
            truncations: _,
            repetition_penalty,
            block_ngrams,
            dry,
            xtc: _,
            mirostat: _,
            factorisation: _,
            deterministic: _,
            beam: _,
            contrastive_search: _,
            contrast: _,
        } = other;
        Self { repetition_penalty, block_ngrams, dry, ..self }
    }

    /// Whether texts are searched for, by beam or contrastive search, which a
    /// [`Scheduler`](super::Scheduler) does not support.
    pub fn is_search(&self) -> bool {
        self.beam.is_some() || self.contrastive_search.is_some()
    }

    /// Refuses settings that a model of this shape cannot follow.
    pub fn check(&self, shape: &ModelShape) -> Result<(), Error> {
        self.check_tokens(shape.vocabulary)?;
        if let Factorisation::Decoupled(draw) = &self.factorisation
            && !shape.class_ends.is_empty()
        {
            draw.check(shape.class_ends.len())?;
            let has_k = self.truncations.top_k().is_some();
            require("small classes", has_k || draw.small != SmallClass::Fill, || {
                "filling them up needs top-k".to_owned()
            })?;
            require("top-k growth", has_k || draw.top_k_growth == 0.0, || {
                "it needs top-k, which is off".to_owned()
            })?;
        }
        self.contrast.as_ref().map_or(Ok(()), |contrast| contrast.check(self))?;
        if let Some(search) = &self.contrastive_search {
            search.check(self, shape)?;
        }
        self.check_deterministic()?;
        self.beam.as_ref().map_or(Ok(()), |beam| beam.check(self, shape.vocabulary))
    }

    /// Error diffusion replaces random draws, so the strategy must draw.
    fn check_deterministic(&self) -> Result<(), Error> {
        let option = "deterministic";
        if !self.deterministic {
            return Ok(());
        }
        require(option, self.beam.is_none(), || "a beam searches and draws nothing".to_owned())?;
        require(option, self.contrastive_search.is_none(), || {
            "contrastive search draws nothing".to_owned()
        })?;
        require(option, self.xtc.is_none(), || "XTC draws at random".to_owned())?;
        require(option, self.temperature > 0.0, || {
            "at temperature 0 the most likely token is always chosen".to_owned()
        })?;
        let fills = match &self.factorisation {
            Factorisation::Decoupled(draw) => draw.small == SmallClass::Fill,
            Factorisation::Joint => false,
        };
        require(option, !fills, || "filling up small classes draws at random".to_owned())
    }

    fn check_tokens(&self, vocabulary: usize) -> Result<(), Error> {
        check_temperature("temperature", self.temperature)?;
        self.truncations.check(vocabulary)?;
        self.dry.as_ref().map_or(Ok(()), Dry::check)?;
        self.xtc.as_ref().map_or(Ok(()), Xtc::check)?;
        self.check_mirostat()?;
        require("XTC", self.xtc.is_none() || self.temperature != 0.0, || {
            "it needs a temperature above 0".to_owned()
        })?;
        let penalty = self.repetition_penalty;
        require("repetition penalty", penalty.is_finite() && penalty >= 1.0, || {
            format!("{penalty} is not a number from 1 up")
        })
    }

    fn check_mirostat(&self) -> Result<(), Error> {
        let Some(mirostat) = &self.mirostat else { return Ok(()) };
        mirostat.check()?;
        let alone = self.truncations == Truncations::default() && self.xtc.is_none();
        require("mirostat", alone, || {
            format!("it is the truncation itself: leave {} and XTC out", Truncations::names())
        })?;
        require("mirostat", self.temperature != 0.0, || "it needs a temperature above 0".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_keeps_only_the_penalties() {
        let penalties = Strategy {
            repetition_penalty: 1.2,
            block_ngrams: 3,
            dry: Some(Dry::default()),
            ..Strategy::default()
        };
        let sampling = Strategy {
            temperature: 0.7,
            truncations: Truncations::default().with_top_k(5),
            xtc: Some(Xtc::default()),
            mirostat: Some(Mirostat::default()),
            deterministic: true,
            beam: Some(BeamSearch::default()),
            contrastive_search: Some(ContrastiveSearch::default()),
            ..penalties.clone()
        }
        .joint();
        assert_eq!(Strategy::default().with_penalties_of(sampling.clone()), penalties);
        let greedy = Strategy::greedy().with_penalties_of(sampling);
        assert_eq!(greedy.with_penalties_of(Strategy::default()), Strategy::greedy());
    }
}
