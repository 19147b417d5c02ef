use f2_report::results::ClassRule;

use crate::{Model, Plan};

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A model of the tables.
    Model(Model),
    /// An F² model with classes of this rule, as many as given.
    Classes(ClassRule, Option<usize>),
    /// A plain model of another text, to be transferred.
    Pretrained,
    /// An F² model that begins with the weights of the pretrained one.
    Transferred,
    /// An F² model that does not, with the same tokens and as many steps.
    FromScratch,
}

/// What a corpus is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorpusRole {
    /// Everything but transfer.
    Main,
    /// Pretraining, before a transfer.
    Pretraining,
    /// What is transferred to: the main text in the tokens of the pretraining.
    Target,
}

impl Subject {
    /// Its name in stages and files.
    pub fn name(self) -> String {
        match self {
            Self::Model(model) => model.objective().to_owned(),
            Self::Classes(rule, None) => format!("f2-{}", rule.name()),
            Self::Classes(rule, Some(k)) => format!("f2-{}-{k}", rule.name()),
            Self::Pretrained => "pretrained".to_owned(),
            Self::Transferred => "transferred".to_owned(),
            Self::FromScratch => "from-scratch".to_owned(),
        }
    }

    /// Its name in tables.
    pub fn title(self) -> String {
        match self {
            Self::Model(model) => model.name().to_owned(),
            Self::Classes(..) => self.name(),
            Self::Pretrained => "Pretrained".to_owned(),
            Self::Transferred => "Transferred".to_owned(),
            Self::FromScratch => "From scratch".to_owned(),
        }
    }

    /// The corpus it learns from and is scored on.
    pub fn corpus(self) -> CorpusRole {
        match self {
            Self::Model(_) | Self::Classes(..) => CorpusRole::Main,
            Self::Pretrained => CorpusRole::Pretraining,
            Self::Transferred | Self::FromScratch => CorpusRole::Target,
        }
    }

    /// The model of the tables it is trained like.
    pub(crate) fn model(self) -> Model {
        match self {
            Self::Model(model) => model,
            Self::Pretrained => Model::Mle,
            Self::Classes(..) | Self::Transferred | Self::FromScratch => Model::F2,
        }
    }

    /// How its classes are cut, where it has any.
    pub(crate) fn classes(self) -> Option<(ClassRule, Option<usize>)> {
        match self {
            Self::Classes(rule, k) => Some((rule, k)),
            _ => (self.model() == Model::F2).then_some((ClassRule::Greedy, None)),
        }
    }

    /// Whose weights it begins with, where they are not random.
    pub(crate) fn starts_from(self) -> Option<Self> {
        match self {
            Self::Model(model) => model.starts_from().map(Self::Model),
            Self::Transferred => Some(Self::Pretrained),
            _ => None,
        }
    }

    /// Whether it takes the settings of the model it starts from, and a learning rate of its own.
    pub(crate) fn is_fine_tuned(self) -> bool {
        matches!(self, Self::Model(model) if model.starts_from().is_some())
    }

    /// The steps it is trained for, where they are not left to the settings.
    pub(crate) fn steps(self, plan: &Plan) -> Option<u64> {
        let transfer = plan.transfer.as_ref();
        let own = match self {
            Self::Model(_) if self.is_fine_tuned() => Some(plan.training.fine_tuning_steps),
            Self::Model(_) | Self::Classes(..) => None,
            Self::Pretrained => transfer.and_then(|transfer| transfer.pretraining_steps),
            Self::Transferred | Self::FromScratch => transfer.and_then(|transfer| transfer.steps),
        };
        own.or(plan.training.steps)
    }
}
