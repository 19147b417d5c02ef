//! The prefixes and references of the validation and the test split.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use f2_corpus::{Corpus, Split};
use f2_lm::decode::{Cut, Protocol, ProtocolName, TestSet};
use f2_lm::run::SavedModel;

use crate::failure::Failure;
use crate::verbs::flags::from_one;
use crate::verbs::generate::protocol::spread;

#[derive(Args, Debug)]
#[command(next_help_heading = "Texts")]
pub(super) struct SetFlags {
    /// The corpus: settings are measured on its validation split, the chosen one on its test split.
    #[arg(long, value_name = "CORPUS")]
    corpus: PathBuf,
    /// How the splits are cut: `paper` into windows of prefix and reference, `lyrics` takes the
    /// beginning of every document that is long enough.
    #[arg(long, value_name = "NAME", value_parser = protocol_names(), default_value = "paper")]
    protocol: ProtocolName,
    /// With `--protocol paper`: equal pieces a split is cut into [default: 256, or as many as hold
    /// a window].
    #[arg(long, value_name = "N", value_parser = from_one)]
    streams: Option<NonZeroUsize>,
    /// Tokens of a prefix.
    #[arg(long, value_name = "N", default_value_t = 50)]
    prefix: usize,
    /// Tokens of a reference, and of each generated text.
    #[arg(long, value_name = "N", default_value_t = 100)]
    continuation: usize,
    /// At most this many prefixes of a split, taken from all over it [default: all windows, or
    /// 10240 documents].
    #[arg(long, value_name = "N", value_parser = from_one)]
    texts: Option<NonZeroUsize>,
}

/// The names of the paper's protocols, whose texts have a fixed length, so that metrics compare.
fn protocol_names() -> impl TypedValueParser<Value = ProtocolName> {
    let names = ProtocolName::ALL.map(ProtocolName::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let named = |protocol: &ProtocolName| protocol.as_str() == name;
        ProtocolName::ALL.into_iter().find(named).expect("the parser takes these names only")
    })
}

/// The prompts and references that settings are measured on.
pub(super) struct Sets {
    pub(super) valid: TestSet,
    /// `None` if the split holds too little text.
    pub(super) test: Option<TestSet>,
    pub(super) new_tokens: usize,
    /// The k of untuned decoding.
    pub(super) usual_k: usize,
}

/// The fewest texts that have halves to compare.
const FEWEST: usize = 4;

impl SetFlags {
    pub(super) fn cut(&self, model: &SavedModel) -> Result<Sets, Failure> {
        let corpus = Corpus::open(&self.corpus)?;
        if corpus.is_of_pairs() {
            let folder = self.corpus.display();
            return Err(Failure::usage(format!(
                "{folder} is a corpus of pairs, which are not cut into prefixes"
            ))
            .advise("tune on running text; `f2 eval --pairs` measures targets"));
        }
        let valid = self.split(&corpus, model, Split::Valid)?.map_err(|reason| {
            Failure::data(format!("{}: {reason}", self.corpus.display())).advise(
                "prepare the corpus with a larger validation split (`f2 prepare --split`), or \
                 shorten `--prefix` and `--continuation`",
            )
        })?;
        let test = self.split(&corpus, model, Split::Test)?;
        if let Err(reason) = &test {
            remark!("the choice will not be tested: {reason}");
        }
        let (new_tokens, usual_k) = (self.continuation, self.protocol.top_k());
        Ok(Sets { valid, test: test.ok(), new_tokens, usual_k })
    }

    /// A split's prefixes and references, or why it holds too few.
    fn split(
        &self,
        corpus: &Corpus,
        model: &SavedModel,
        split: Split,
    ) -> Result<Result<TestSet, String>, Failure> {
        let size = corpus.manifest().splits.iter().find(|size| size.split == split);
        let name = if split == Split::Valid { "validation" } else { split.name() };
        if size.is_none_or(|size| size.tokens == 0) {
            return Ok(Err(format!("the corpus has no {name} split")));
        }
        let tokens = model.tokens(corpus, split)?;
        let window = (self.prefix + self.continuation).max(1) as u64;
        let most = tokens.len() / window;
        let cut = match (self.protocol.protocol().cut, self.streams) {
            (Cut::Streams(_), _) if most < FEWEST as u64 => {
                return Ok(Err(format!(
                    "the {name} split has {} tokens, fewer than the {FEWEST} windows of {window} \
                     that halves of human text need",
                    tokens.len()
                )));
            }
            (Cut::Streams(_), Some(streams)) => Cut::Streams(streams.get()),
            (Cut::Streams(usual), None) => Cut::Streams(usual.min(most as usize)),
            (Cut::Documents, None) => Cut::Documents,
            (Cut::Documents, Some(_)) => {
                return Err(Failure::usage("this protocol has no --streams")
                    .advise("leave it out: the protocol cuts documents, not streams"));
            }
        };
        let protocol = Protocol { cut, prefix: self.prefix, continuation: self.continuation };
        let TestSet { prefixes, references } = protocol.cut(&*tokens)?;
        let most = self.texts.map_or(protocol.most_texts(), NonZeroUsize::get);
        let [prefixes, references] = [prefixes, references].map(|all| spread(all, most));
        if prefixes.len() < FEWEST {
            let found = prefixes.len();
            return Ok(Err(format!(
                "the {name} split gives {found} prefixes, fewer than the {FEWEST} that halves of \
                 human text need"
            )));
        }
        Ok(Ok(TestSet { prefixes, references }))
    }
}
