//! The flags of the decoding strategy.

mod adaptive;
mod beam;
mod class;
mod contrast;
mod dry;
mod truncation;

use clap::Args;
use f2_lm::decode::{ContrastiveSearch, ProtocolName, Strategy, Truncations};
use f2_lm::run::SavedModel;
use f2_report::results::Decoding;

use self::adaptive::AdaptiveFlags;
use self::beam::BeamFlags;
use self::class::ClassFlags;
use self::contrast::ContrastFlags;
use self::dry::DryFlags;
use self::truncation::TruncationFlags;
use super::protocol::Rule;
use crate::failure::Failure;

#[derive(Args, Debug)]
#[command(next_help_heading = "Strategy")]
pub(super) struct StrategyFlags {
    /// Always the most likely: the best class, and the best token in it.
    #[arg(long, conflicts_with_all = excluded_by_greedy())]
    greedy: bool,
    /// Flatten (above 1) or sharpen (below 1) the probabilities; 0 is greedy.
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    #[command(flatten)]
    truncations: TruncationFlags,
    /// Multiply the log-probability of tokens that occurred before; 1 does nothing
    /// [default: 1].
    #[arg(long, value_name = "X")]
    repetition_penalty: Option<f64>,
    /// Block n-grams of N tokens from occurring twice; 0 blocks nothing [default: 0].
    #[arg(long, value_name = "N")]
    block_ngrams: Option<usize>,
    #[command(flatten)]
    dry: DryFlags,
    #[command(flatten)]
    adaptive: AdaptiveFlags,
    /// Choose tokens by error diffusion instead of random numbers. Each prompt has one text, or
    /// several with -n.
    #[arg(long, conflicts_with_all = ["greedy", "beam", "seed"])]
    deterministic: bool,
    #[command(flatten)]
    beam: BeamFlags,
    /// Contrastive search: how much similarity to the text counts against each of the --top-k
    /// likeliest tokens (4 if not given); 0.6 is usual.
    #[arg(long, value_name = "ALPHA")]
    penalty_alpha: Option<f64>,
    #[command(flatten)]
    pub(super) contrast: ContrastFlags,
    #[command(flatten)]
    classes: ClassFlags,
}

/// The flags of sampling and of beam search, which contradict `--greedy`.
fn excluded_by_greedy() -> impl Iterator<Item = &'static str> {
    ["temperature"].into_iter().chain(TruncationFlags::ids()).chain(["beam"])
}

impl StrategyFlags {
    /// The flags for a decoding of the paper's tables. A plain softmax has no classes to draw from.
    pub(super) fn of_decoding(decoding: Decoding, factorised: bool) -> Self {
        let top_k = match decoding {
            Decoding::Given | Decoding::Greedy => None,
            Decoding::TopK { k }
            | Decoding::Joint { k }
            | Decoding::ClassNucleus { k, p: _ }
            | Decoding::AuthorsProgram { k } => Some(k),
        };
        let classes =
            if factorised { ClassFlags::of_decoding(decoding) } else { ClassFlags::default() };
        Self {
            greedy: decoding == Decoding::Greedy,
            temperature: None,
            truncations: TruncationFlags(Truncations::default().with_top_k(top_k)),
            repetition_penalty: None,
            block_ngrams: None,
            dry: DryFlags::default(),
            adaptive: AdaptiveFlags::default(),
            deterministic: false,
            beam: BeamFlags::default(),
            penalty_alpha: None,
            contrast: ContrastFlags::default(),
            classes,
        }
    }

    /// The strategy, checked against the model. What flags leave open is as in `usual`, or without
    /// that as in the paper's main table for the protocol.
    pub(super) fn resolve(
        &self,
        model: &SavedModel,
        protocol: Option<Rule>,
        usual: Option<Strategy>,
    ) -> Result<Strategy, Failure> {
        if model.shape.class_ends.is_empty() {
            self.classes.refuse(model)?;
        }
        let usual_k = match protocol {
            Some(Rule::Paper(name)) => name.top_k(),
            Some(Rule::Pairs) | None => ProtocolName::Paper.top_k(),
        };
        let mut strategy = match usual {
            Some(usual) => self.over(usual),
            None => self.strategy(usual_k.min(model.shape.vocabulary)),
        };
        strategy.dry = self.dry.penalty(&model.vocabulary)?;
        strategy.check(&model.shape)?;
        Ok(strategy)
    }

    /// The strategy of the flags alone.
    fn strategy(&self, usual_k: usize) -> Strategy {
        let mut strategy = self.over(Strategy::default());
        let chosen = self.is_greedy()
            || self.beam.is_given()
            || self.temperature.is_some()
            || self.adaptive.is_given()
            || self.penalty_alpha.is_some();
        if !chosen && strategy.truncations == Truncations::default() {
            strategy.truncations = Truncations::default().with_top_k(usual_k);
        }
        strategy
    }

    fn is_greedy(&self) -> bool {
        // Contrastive decoding is greedy unless something else is requested.
        let draws = self.beam.is_given()
            || self.temperature.is_some()
            || self.adaptive.is_given()
            || self.penalty_alpha.is_some()
            || self.truncates();
        self.greedy || self.temperature == Some(0.0) || (self.contrast.is_given() && !draws)
    }

    /// Whether a truncation is given.
    fn truncates(&self) -> bool {
        self.truncations(Truncations::default()) != Truncations::default()
    }

    /// The strategy `usual`, changed by the flags.
    fn over(&self, usual: Strategy) -> Strategy {
        let greedy = self.is_greedy();
        let base = self.base(usual, greedy);
        let truncations = self.truncations(base.truncations);
        let factorisation = self.classes.factorisation(base.factorisation.beside(&truncations));
        Strategy {
            temperature: if greedy { 0.0 } else { self.temperature.unwrap_or(base.temperature) },
            truncations,
            repetition_penalty: self.repetition_penalty.unwrap_or(base.repetition_penalty),
            block_ngrams: self.block_ngrams.unwrap_or(base.block_ngrams),
            dry: None,
            xtc: self.adaptive.xtc().or(base.xtc),
            mirostat: self.adaptive.mirostat().or(base.mirostat),
            factorisation,
            deterministic: self.deterministic || base.deterministic,
            beam: self.beam.search().or(base.beam),
            contrastive_search: self.contrastive_search(),
            contrast: self.contrast.contrast(),
        }
    }

    /// The part of a strategy that is compatible with the flags: a search for the likeliest text
    /// keeps only the penalties, and a rule that excludes others drops those.
    fn base(&self, usual: Strategy, greedy: bool) -> Strategy {
        if greedy {
            return Strategy::greedy().with_penalties_of(usual);
        }
        if self.penalty_alpha.is_some() {
            let likeliest = Strategy { temperature: 1.0, ..Strategy::greedy() };
            return likeliest.with_penalties_of(usual);
        }
        let adapts = self.adaptive.is_given();
        let draws = self.temperature.is_some()
            || adapts
            || self.truncates()
            || self.classes.draws()
            || self.deterministic;
        if self.beam.is_given() || (usual.beam.is_some() && draws) {
            return Strategy::default().with_penalties_of(usual);
        }
        let mut base = usual;
        if self.adaptive.mirostat().is_some() {
            (base.truncations, base.xtc) = (Truncations::default(), None);
        } else if adapts || self.truncates() {
            base.mirostat = None;
        }
        if self.deterministic {
            base.xtc = None;
        }
        base
    }

    fn contrastive_search(&self) -> Option<ContrastiveSearch> {
        let k = self.truncations.0.top_k().unwrap_or(ContrastiveSearch::default().k);
        self.penalty_alpha.map(|alpha| ContrastiveSearch { alpha, k })
    }

    fn truncations(&self, base: Truncations) -> Truncations {
        let given = self.truncations.0;
        // Contrastive search uses top-k in its own way.
        let given = if self.penalty_alpha.is_some() { given.with_top_k(None) } else { given };
        given.or(base)
    }
}
