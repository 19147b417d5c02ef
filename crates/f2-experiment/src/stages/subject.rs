//! The models of an experiment, and the corpora they are trained on.

use f2_classes::Method;
use f2_lm::config::ObjectiveName;
use f2_report::results::Decoding;

use crate::Plan;

/// A model to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A model of the tables.
    Model(ObjectiveName),
    /// A model of the tables with another seed: the plan's plus this number.
    Repeated(ObjectiveName, u64),
    /// An F² model with classes of this method, with the number of classes if it is given.
    Classes(Method, Option<usize>),
    /// A plain model of another text, to be transferred.
    Pretrained,
    /// An F² model initialised from the pretrained one.
    Transferred,
    /// An F² model from scratch, with the tokenizer and steps of the transferred one.
    FromScratch,
}

/// The use of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorpusRole {
    /// Everything except transfer.
    Main,
    /// Pretraining for a transfer.
    Pretraining,
    /// The target of a transfer: the main text with the tokenizer of the pretraining.
    Target,
}

impl Subject {
    /// Its name in stages and files.
    pub fn name(self) -> String {
        match self {
            Self::Model(model) => model.as_str().to_owned(),
            Self::Repeated(model, further) => format!("{}-seed-{further}", model.as_str()),
            Self::Classes(method, None) => format!("f2-{}", method.name()),
            Self::Classes(method, Some(k)) => format!("f2-{}-{k}", method.name()),
            Self::Pretrained => "pretrained".to_owned(),
            Self::Transferred => "transferred".to_owned(),
            Self::FromScratch => "from-scratch".to_owned(),
        }
    }

    /// Its name in tables of texts with this decoding.
    pub fn title(self, decoding: Decoding) -> String {
        match (self, decoding) {
            (_, Decoding::AuthorsProgram { .. }) => {
                format!("{}, authors' program", ObjectiveName::F2.title())
            }
            (Self::Model(model) | Self::Repeated(model, _), _) => model.title().to_owned(),
            (Self::Classes(..), _) => self.name(),
            (Self::Pretrained, _) => "Pretrained".to_owned(),
            (Self::Transferred, _) => "Transferred".to_owned(),
            (Self::FromScratch, _) => "From scratch".to_owned(),
        }
    }

    /// The corpus it is trained and scored on.
    pub fn corpus(self) -> CorpusRole {
        match self {
            Self::Model(_) | Self::Repeated(..) | Self::Classes(..) => CorpusRole::Main,
            Self::Pretrained => CorpusRole::Pretraining,
            Self::Transferred | Self::FromScratch => CorpusRole::Target,
        }
    }

    /// The model of the tables with the same objective.
    pub(crate) fn model(self) -> ObjectiveName {
        match self {
            Self::Model(model) | Self::Repeated(model, _) => model,
            Self::Pretrained => ObjectiveName::Mle,
            Self::Classes(..) | Self::Transferred | Self::FromScratch => ObjectiveName::F2,
        }
    }

    /// The method of its classes and their number if it is given; `None` if it has no classes.
    pub(crate) fn classes(self) -> Option<(Method, Option<usize>)> {
        match self {
            Self::Classes(method, k) => Some((method, k)),
            _ => (self.model() == ObjectiveName::F2).then_some((Method::Greedy, None)),
        }
    }

    /// The model that its weights are initialised from; `None` if they are random.
    pub(crate) fn starts_from(self) -> Option<Self> {
        match self {
            Self::Model(model) => model.starts_from().map(Self::Model),
            Self::Repeated(model, further) => {
                model.starts_from().map(|start| Self::Repeated(start, further))
            }
            Self::Transferred => Some(Self::Pretrained),
            Self::Classes(..) | Self::Pretrained | Self::FromScratch => None,
        }
    }

    /// Whether it inherits the settings of the model it starts from, except for the learning rate.
    pub(crate) fn is_fine_tuned(self) -> bool {
        matches!(self, Self::Model(model) | Self::Repeated(model, _) if model.starts_from().is_some())
    }

    /// The seed of its training and generation.
    pub(crate) fn seed(self, plan: &Plan) -> u64 {
        match self {
            Self::Repeated(_, further) => plan.seed + further,
            _ => plan.seed,
        }
    }

    /// The number of training steps; `None` if it follows from the settings.
    pub(crate) fn steps(self, plan: &Plan) -> Option<u64> {
        let transfer = plan.transfer.as_ref();
        let own = match self {
            _ if self.is_fine_tuned() => Some(plan.training.fine_tuning_steps),
            Self::Model(_) | Self::Repeated(..) | Self::Classes(..) => None,
            Self::Pretrained => transfer.and_then(|transfer| transfer.pretraining_steps),
            Self::Transferred | Self::FromScratch => transfer.and_then(|transfer| transfer.steps),
        };
        own.or(plan.training.steps)
    }
}
