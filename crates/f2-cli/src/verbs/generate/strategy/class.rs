//! The flags of an F² model's classes.

use clap::Args;
use f2_lm::decode::{ClassDraw, Factorisation, SmallClass};
use f2_lm::run::SavedModel;
use f2_report::results::Decoding;

use crate::failure::Failure;
use crate::verbs::flags::small_class;

#[derive(Args, Debug, Default)]
pub(super) struct ClassFlags {
    /// F²: choose from the full posterior, without drawing a class first.
    #[arg(long)]
    joint: bool,
    /// F²: flatten or sharpen the classes' probabilities; 0 takes the most likely class
    /// [default: 1, or 0 with --greedy and --penalty-alpha].
    #[arg(long, value_name = "T", conflicts_with = "joint")]
    class_temperature: Option<f64>,
    /// F²: keep the k most likely classes.
    #[arg(long, value_name = "K", conflicts_with = "joint")]
    class_top_k: Option<usize>,
    /// F²: keep the most likely classes up to this mass, never beyond it; 1 as in the paper's
    /// text, 0.9 as in the authors' code [default: 1].
    #[arg(long, value_name = "P", conflicts_with = "joint")]
    class_top_p: Option<f64>,
    /// F²: what top-k does in a class with fewer than k tokens.
    #[arg(long, value_parser = small_class(), conflicts_with = "joint")]
    small_class: Option<SmallClass>,
    /// F²: scale k by (class size / smallest class)^G [default: 0, the same k in all].
    #[arg(long, value_name = "G", conflicts_with = "joint")]
    top_k_growth: Option<f64>,
}

impl ClassFlags {
    /// The flags for a decoding of the paper's tables.
    pub(super) fn of_decoding(decoding: Decoding) -> Self {
        match decoding {
            Decoding::Given | Decoding::Greedy | Decoding::TopK { .. } => Self::default(),
            Decoding::Joint { .. } => Self { joint: true, ..Self::default() },
            Decoding::ClassNucleus { p, .. } => Self { class_top_p: Some(p), ..Self::default() },
            Decoding::AuthorsProgram { .. } => Self {
                class_top_p: Some(Decoding::AUTHORS_CLASS_NUCLEUS),
                small_class: Some(SmallClass::Fill),
                ..Self::default()
            },
        }
    }

    /// Refuses the flags for a model without classes.
    pub(super) fn refuse(&self, model: &SavedModel) -> Result<(), Failure> {
        let given = [
            ("--joint", self.joint),
            ("--class-temperature", self.class_temperature.is_some()),
            ("--class-top-k", self.class_top_k.is_some()),
            ("--class-top-p", self.class_top_p.is_some()),
            ("--small-class", self.small_class.is_some()),
            ("--top-k-growth", self.top_k_growth.is_some()),
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

    /// Whether a flag says how classes are drawn.
    pub(super) fn draws(&self) -> bool {
        self.class_temperature.is_some()
            || self.class_top_k.is_some()
            || self.class_top_p.is_some()
            || self.small_class.is_some()
            || self.top_k_growth.is_some()
    }

    pub(super) fn factorisation(&self, base: Factorisation) -> Factorisation {
        let base = match base {
            Factorisation::Joint if !self.draws() => return Factorisation::Joint,
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
            small: self.small_class.unwrap_or(base.small),
            top_k_growth: self.top_k_growth.unwrap_or(base.top_k_growth),
        })
    }
}
