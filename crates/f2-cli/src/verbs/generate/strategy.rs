//! The flags of the decoding strategy.

mod adaptive;
mod contrast;
mod dry;

use clap::{Args, ValueEnum};
use f2_lm::decode::{
    BeamSearch, ClassDraw, ContrastiveSearch, Factorisation, ProtocolName, SmallClass, Strategy,
    Truncations,
};
use f2_lm::run::SavedModel;
use f2_report::results::Decoding;

use self::adaptive::AdaptiveFlags;
use self::contrast::ContrastFlags;
use self::dry::DryFlags;
use super::protocol::Rule;
use crate::failure::Failure;

#[derive(Args, Debug)]
#[command(next_help_heading = "Strategy")]
pub(super) struct StrategyFlags {
    /// Always the most likely: the best class, and the best token in it.
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "min_p", "typical",
        "top_n_sigma", "epsilon_cutoff", "eta_cutoff", "beam"])]
    greedy: bool,
    /// Flatten (above 1) or sharpen (below 1) the probabilities; 0 is greedy.
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Keep the k most likely tokens.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Keep the fewest tokens that reach this mass (nucleus sampling).
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Keep tokens at least this share as likely as the most likely.
    #[arg(long, value_name = "P")]
    min_p: Option<f64>,
    /// Keep the most typical tokens that reach this mass.
    #[arg(long, value_name = "P")]
    typical: Option<f64>,
    /// Keep tokens whose logit is within N standard deviations of the largest.
    #[arg(long, value_name = "N")]
    top_n_sigma: Option<f64>,
    /// Keep tokens of at least this probability.
    #[arg(long, value_name = "P")]
    epsilon_cutoff: Option<f64>,
    /// Keep tokens of at least this probability, or of less where the entropy is high.
    #[arg(long, value_name = "P")]
    eta_cutoff: Option<f64>,
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
    /// Let accounts decide instead of random numbers (error diffusion): neither loops nor luck. Each
    /// prompt has one text, with -n several.
    #[arg(long, conflicts_with_all = ["greedy", "beam", "seed"])]
    deterministic: bool,
    /// Search for likely texts with a beam this wide.
    #[arg(long, value_name = "WIDTH")]
    beam: Option<usize>,
    /// Search so many times, each time without the hypotheses of the times before (iterative beam search)
    /// [default: 1].
    #[arg(long, value_name = "N", requires = "beam")]
    beam_iterations: Option<usize>,
    /// Groups of the beam that avoid each other's tokens (diverse beam search).
    #[arg(long, value_name = "N", requires = "beam")]
    beam_groups: Option<usize>,
    /// The penalty on a token for each use by an earlier group, in nats [default: 0.5].
    #[arg(long, value_name = "X", requires = "beam_groups")]
    diversity: Option<f64>,
    /// Texts of a beam are ranked by log-probability over length to this power [default: 1].
    #[arg(long, value_name = "X", requires = "beam")]
    length_penalty: Option<f64>,
    /// Contrastive search: how much likeness to the text counts against each of the --top-k likeliest
    /// tokens (4 if not given); 0.6 is usual.
    #[arg(long, value_name = "ALPHA")]
    penalty_alpha: Option<f64>,
    #[command(flatten)]
    pub(super) contrast: ContrastFlags,
    /// F²: choose from the full posterior, not a class first.
    #[arg(long)]
    joint: bool,
    /// F²: flatten or sharpen the classes' probabilities; 0 takes the most likely class
    /// [default: 1, or 0 with --greedy and --penalty-alpha].
    #[arg(long, value_name = "T", conflicts_with = "joint")]
    class_temperature: Option<f64>,
    /// F²: keep the k most likely classes.
    #[arg(long, value_name = "K", conflicts_with = "joint")]
    class_top_k: Option<usize>,
    /// F²: keep the most likely classes up to this mass, never beyond it; 1 is the paper's text,
    /// 0.9 the authors' code [default: 1].
    #[arg(long, value_name = "P", conflicts_with = "joint")]
    class_top_p: Option<f64>,
    /// F²: what top-k does in a class with fewer than k tokens.
    #[arg(long, value_enum, conflicts_with = "joint")]
    small_class: Option<Small>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Small {
    /// Takes all of them, as the paper's Eq. 7 says (the default).
    Clamp,
    /// Draws further classes until there are k tokens, as the authors' code does.
    Fill,
}

impl StrategyFlags {
    /// The flags of a decoding of the tables. A plain softmax has no classes to draw from.
    pub(super) fn of_decoding(decoding: Decoding, factorised: bool) -> Self {
        let (top_k, joint, class_top_p, small_class) = match decoding {
            Decoding::Given | Decoding::Greedy => (None, false, None, None),
            Decoding::TopK { k } => (Some(k), false, None, None),
            Decoding::Joint { k } => (Some(k), true, None, None),
            Decoding::ClassNucleus { k, p } => (Some(k), false, Some(p), None),
            Decoding::AuthorsProgram { k } => {
                (Some(k), false, Some(Decoding::AUTHORS_CLASS_NUCLEUS), Some(Small::Fill))
            }
        };
        Self {
            greedy: decoding == Decoding::Greedy,
            temperature: None,
            top_k,
            top_p: None,
            min_p: None,
            typical: None,
            top_n_sigma: None,
            epsilon_cutoff: None,
            eta_cutoff: None,
            repetition_penalty: None,
            block_ngrams: None,
            dry: DryFlags::default(),
            adaptive: AdaptiveFlags::default(),
            deterministic: false,
            beam: None,
            beam_groups: None,
            beam_iterations: None,
            diversity: None,
            length_penalty: None,
            penalty_alpha: None,
            contrast: ContrastFlags::default(),
            joint: joint && factorised,
            class_temperature: None,
            class_top_k: None,
            class_top_p: class_top_p.filter(|_| factorised),
            small_class: small_class.filter(|_| factorised),
        }
    }

    /// The strategy, if the model can follow it. What is not given is as in `usual`; without that it
    /// is that of the paper's main table for the protocol.
    pub(super) fn resolve(
        &self,
        model: &SavedModel,
        protocol: Option<Rule>,
        usual: Option<Strategy>,
    ) -> Result<Strategy, Failure> {
        if model.shape.class_ends.is_empty() {
            self.refuse_classes(model)?;
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

    fn refuse_classes(&self, model: &SavedModel) -> Result<(), Failure> {
        let given = [
            ("--joint", self.joint),
            ("--class-temperature", self.class_temperature.is_some()),
            ("--class-top-k", self.class_top_k.is_some()),
            ("--class-top-p", self.class_top_p.is_some()),
            ("--small-class", self.small_class.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag} is for F² models; {} has a plain softmax",
                model.folder.display()
            ))
            .advise("leave it out: a plain softmax has no classes")),
            None => Ok(()),
        }
    }

    /// The strategy of the flags alone.
    fn strategy(&self, usual_k: usize) -> Strategy {
        let mut strategy = self.over(Strategy::default());
        let chosen = self.is_greedy()
            || self.beam.is_some()
            || self.temperature.is_some()
            || self.adaptive.is_given()
            || self.penalty_alpha.is_some();
        if !chosen && strategy.truncations == Truncations::default() {
            strategy.truncations.top_k = Some(usual_k);
        }
        strategy
    }

    fn is_greedy(&self) -> bool {
        // Contrastive decoding is greedy unless something else is asked for.
        let draws = self.beam.is_some()
            || self.temperature.is_some()
            || self.adaptive.is_given()
            || self.penalty_alpha.is_some()
            || self.truncates();
        self.greedy || self.temperature == Some(0.0) || (self.contrast.is_given() && !draws)
    }

    /// Whether a flag says which tokens are kept.
    fn truncates(&self) -> bool {
        self.truncations(Truncations::default()) != Truncations::default()
    }

    /// Whether a flag says how classes are drawn.
    fn draws_classes(&self) -> bool {
        self.class_temperature.is_some()
            || self.class_top_k.is_some()
            || self.class_top_p.is_some()
            || self.small_class.is_some()
    }

    /// A strategy with what the flags say changed.
    fn over(&self, usual: Strategy) -> Strategy {
        let Strategy { repetition_penalty, block_ngrams, .. } = usual;
        let greedy = self.is_greedy();
        let base = self.base(usual, greedy);
        Strategy {
            temperature: if greedy { 0.0 } else { self.temperature.unwrap_or(base.temperature) },
            truncations: self.truncations(base.truncations),
            repetition_penalty: self.repetition_penalty.unwrap_or(repetition_penalty),
            block_ngrams: self.block_ngrams.unwrap_or(block_ngrams),
            dry: None,
            xtc: self.adaptive.xtc().or(base.xtc),
            mirostat: self.adaptive.mirostat().or(base.mirostat),
            factorisation: self.factorisation(base.factorisation),
            deterministic: self.deterministic || base.deterministic,
            beam: self.beam.map(|width| self.beam_search(width)).or(base.beam),
            contrastive_search: self.contrastive_search(),
            contrast: self.contrast.contrast(),
        }
    }

    /// What of a strategy can go with the flags: what is likeliest is searched for without the other's
    /// draws, and a rule that must be alone takes the place of those it excludes.
    fn base(&self, usual: Strategy, greedy: bool) -> Strategy {
        if greedy {
            return Strategy::greedy();
        }
        if self.penalty_alpha.is_some() {
            return Strategy { temperature: 1.0, ..Strategy::greedy() };
        }
        let adapts = self.adaptive.is_given();
        let draws = self.temperature.is_some()
            || adapts
            || self.truncates()
            || self.draws_classes()
            || self.deterministic;
        if self.beam.is_some() || (usual.beam.is_some() && draws) {
            return Strategy::default();
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
        let k = self.top_k.unwrap_or(ContrastiveSearch::default().k);
        self.penalty_alpha.map(|alpha| ContrastiveSearch { alpha, k })
    }

    fn truncations(&self, base: Truncations) -> Truncations {
        Truncations {
            top_n_sigma: self.top_n_sigma.or(base.top_n_sigma),
            // Contrastive search has a use of its own for it.
            top_k: self.top_k.filter(|_| self.penalty_alpha.is_none()).or(base.top_k),
            typical: self.typical.or(base.typical),
            top_p: self.top_p.or(base.top_p),
            min_p: self.min_p.or(base.min_p),
            epsilon: self.epsilon_cutoff.or(base.epsilon),
            eta: self.eta_cutoff.or(base.eta),
        }
    }

    fn factorisation(&self, base: Factorisation) -> Factorisation {
        let base = match base {
            Factorisation::Joint if !self.draws_classes() => return Factorisation::Joint,
            Factorisation::Joint => ClassDraw::default(),
            Factorisation::Decoupled(draw) => draw,
        };
        if self.joint {
            return Factorisation::Joint;
        }
        Factorisation::Decoupled(ClassDraw {
            temperature: self.class_temperature.unwrap_or(base.temperature),
            top_k: self.class_top_k.or(base.top_k),
            top_p: self.class_top_p.unwrap_or(base.top_p),
            small: match self.small_class {
                Some(Small::Fill) => SmallClass::Fill,
                Some(Small::Clamp) => SmallClass::Clamp,
                None => base.small,
            },
        })
    }

    fn beam_search(&self, width: usize) -> BeamSearch {
        let default = BeamSearch::default();
        BeamSearch {
            width,
            groups: self.beam_groups.unwrap_or(1),
            iterations: self.beam_iterations.unwrap_or(default.iterations),
            diversity: self.diversity.unwrap_or(default.diversity),
            length_penalty: self.length_penalty.unwrap_or(default.length_penalty),
        }
    }
}
