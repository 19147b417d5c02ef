//! Prompts cut from a corpus by one of the paper's test protocols.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use f2_corpus::{Corpus, Split};
use f2_experiment::GenerateTask;
use f2_lm::decode::{Cut, Protocol, ProtocolName, TestSet};
use f2_lm::run::SavedModel;

use super::prompts::Prompts;
use crate::failure::Failure;
use crate::verbs::flags::{from_one, split};

#[derive(Args, Debug)]
pub(super) struct ProtocolFlags {
    /// Take prompts from this corpus, as the protocol says.
    #[arg(long, value_name = "CORPUS", requires = "protocol")]
    pub(super) corpus: Option<PathBuf>,
    /// How the corpus is cut: `paper` cuts 256 streams into windows of 150 tokens, `lyrics` takes
    /// the beginning of every document longer than 150 tokens; 50 tokens are the prefix and 100
    /// are written.
    #[arg(long, requires = "corpus", value_name = "NAME", value_parser = protocol_names())]
    pub(super) protocol: Option<ProtocolName>,
    /// The split of the corpus.
    #[arg(long, value_parser = split(), default_value = "test", requires = "corpus")]
    split: Split,
    /// With `--protocol paper`: equal pieces the split is cut into, each of as many windows as fit
    /// [default: 256].
    #[arg(long, value_name = "N", requires = "corpus")]
    streams: Option<usize>,
    /// Tokens of a prefix.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "corpus")]
    prefix: usize,
    /// Tokens of a reference: as many are written.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "corpus")]
    continuation: usize,
    /// No more prompts than this, taken from all over the split [default: all windows, or 10240
    /// documents].
    #[arg(long, value_name = "N", requires = "corpus", value_parser = from_one)]
    texts: Option<NonZeroUsize>,
    /// Write the references, what people wrote after the prefixes, to this file as JSON lines.
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pub(super) references: Option<PathBuf>,
}

/// The names of the protocols, as the library has them.
fn protocol_names() -> impl TypedValueParser<Value = ProtocolName> {
    let names = ProtocolName::ALL.map(ProtocolName::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let named = |protocol: &ProtocolName| protocol.as_str() == name;
        ProtocolName::ALL.into_iter().find(named).expect("the parser takes these names only")
    })
}

impl ProtocolFlags {
    /// The protocol of a stage.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>) -> Self {
        Self {
            corpus: Some(task.corpus.clone()),
            protocol: Some(task.protocol),
            split: Split::Test,
            streams: task.streams,
            prefix: task.prefix,
            continuation: task.continuation,
            texts: task.texts.and_then(NonZeroUsize::new),
            references: Some(task.references.clone()),
        }
    }

    /// The prefixes of a split with their references.
    pub(super) fn cut(
        &self,
        folder: &Path,
        name: ProtocolName,
        model: &SavedModel,
    ) -> Result<Prompts, Failure> {
        let corpus = Corpus::open(folder)?;
        let protocol = self.sizes(name)?;
        let tokens = model.tokens(&corpus, self.split)?;
        let TestSet { prefixes, references } = protocol.cut(&*tokens)?;
        let most = self.texts.map_or(protocol.most_texts(), NonZeroUsize::get);
        let [prefixes, references] = [prefixes, references].map(|all| spread(all, most));
        Ok(Prompts {
            texts: prefixes.iter().map(|_| None).collect(),
            ids: prefixes,
            references,
            protocol: Some(name),
            new_tokens: Some(protocol.continuation),
        })
    }

    /// The protocol with the sizes that were asked for.
    fn sizes(&self, name: ProtocolName) -> Result<Protocol, Failure> {
        let Protocol { cut, .. } = name.protocol();
        let cut = match (cut, self.streams) {
            (Cut::Streams(usual), streams) => Cut::Streams(streams.unwrap_or(usual)),
            (Cut::Documents, None) => Cut::Documents,
            (Cut::Documents, Some(_)) => {
                let words = format!("--protocol {} has no --streams", name.as_str());
                return Err(Failure::usage(words)
                    .advise("leave it out: this protocol cuts documents, not streams"));
            }
        };
        Ok(Protocol { cut, prefix: self.prefix, continuation: self.continuation })
    }
}

/// As many as asked for at most, at even distances.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    let kept = most.min(count);
    let places = all.into_iter().enumerate();
    places.filter(|(place, _)| place * kept % count < kept).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn fewer_prompts_come_from_all_over_the_split() {
        let all = |count: usize| (0..count).collect::<Vec<_>>();
        assert_eq!(spread(all(10), 4), [0, 3, 5, 8]);
        assert_eq!(spread(all(3), 3), [0, 1, 2]);
        assert_eq!(spread(all(3), usize::MAX), [0, 1, 2]);
        assert_eq!(spread(all(0), 5), all(0));
        assert!((1..50).all(|most| spread(all(49), most).len() == most));
    }
}
