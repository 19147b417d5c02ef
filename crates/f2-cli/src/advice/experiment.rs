//! Advice on errors of an experiment.

use f2_experiment::Error;

use crate::failure::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Corpus(error) => error.into(),
            Error::Run(error) => error.into(),
            Error::Plan { .. } => Self::usage(error)
                .advise("`f2 reproduce --preset tiny --show-plan` prints a plan to begin with"),
            Error::Write(error) => error.into(),
            Error::NoText { .. } => {
                Self::data(error).advise("name the corpus or text the experiment is made on")
            }
            Error::Pairs { .. } => Self::usage(error).advise(
                "train, generate and score by hand: `f2 train`, `f2 generate --protocol pairs`, `f2 eval --pairs`",
            ),
            Error::CorpusAndText { .. } => Self::usage(error).advise(
                "make a corpus of the text with `f2 prepare` first; files and folders of text form \
                 one corpus",
            ),
            Error::SeveralCorpora { .. } => Self::usage(error).advise("name one of them"),
            Error::Tokenizers { .. } => Self::data(error).advise(
                "give the text of one of them; it is tokenized with the other's tokenizer",
            ),
            Error::Damaged { .. } | Error::Classes(_) => Self::data(error)
                .advise("remove the folder of that stage; the same command makes it again"),
            Error::Read(error) => error.into(),
        }
    }
}
