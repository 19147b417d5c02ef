//! Prompts cut from a corpus: by one of the paper's test protocols, or the sources of its pairs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use f2_corpus::{Corpus, Split};
use f2_experiment::GenerateTask;
use f2_lm::decode::{Cut, Protocol, ProtocolName, TestSet};
use f2_lm::run::SavedModel;

use super::pairs;
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
    /// are written; `pairs` takes the source of every pair, and its target is written to the end.
    #[arg(long, requires = "corpus", value_name = "NAME", value_parser = rules())]
    pub(super) protocol: Option<Rule>,
    /// The split of the corpus.
    #[arg(long, value_parser = split(), default_value = "test", requires = "corpus")]
    split: Split,
    /// With `--protocol paper`: equal pieces the split is cut into, each of as many windows as fit
    /// [default: 256].
    #[arg(long, value_name = "N", requires = "corpus")]
    streams: Option<usize>,
    /// Tokens of a prefix [default: 50].
    #[arg(long, value_name = "N", requires = "corpus")]
    prefix: Option<usize>,
    /// Tokens of a reference, and of each generated text [default: 100].
    #[arg(long, value_name = "N", requires = "corpus")]
    continuation: Option<usize>,
    /// At most this many prompts, taken from all over the split [default: all windows, 10240
    /// documents, or all pairs].
    #[arg(long, value_name = "N", requires = "corpus", value_parser = from_one)]
    texts: Option<NonZeroUsize>,
    /// Write the references, the human continuations of the prefixes, to this file as JSON lines.
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pub(super) references: Option<PathBuf>,
}

/// How a corpus is cut into prompts and references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Prefixes and continuations of fixed length, as in the paper.
    Paper(ProtocolName),
    /// Sources and targets.
    Pairs,
}

impl Rule {
    /// All of them.
    fn all() -> impl Iterator<Item = Self> {
        ProtocolName::ALL.into_iter().map(Self::Paper).chain([Self::Pairs])
    }

    /// The name on the command line.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Paper(name) => name.as_str(),
            Self::Pairs => "pairs",
        }
    }
}

/// The names of the protocols.
fn rules() -> impl TypedValueParser<Value = Rule> {
    PossibleValuesParser::new(Rule::all().map(Rule::as_str)).map(|name| {
        let named = |rule: &Rule| rule.as_str() == name;
        Rule::all().find(named).expect("the parser takes these names only")
    })
}

impl ProtocolFlags {
    /// The protocol of a stage.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>) -> Self {
        Self {
            corpus: Some(task.corpus.clone()),
            protocol: Some(Rule::Paper(task.protocol)),
            split: Split::Test,
            streams: task.streams,
            prefix: Some(task.prefix),
            continuation: Some(task.continuation),
            texts: task.texts.and_then(NonZeroUsize::new),
            references: Some(task.references.clone()),
        }
    }

    /// The prompts of a split with their references.
    pub(super) fn cut(
        &self,
        folder: &Path,
        rule: Rule,
        model: &SavedModel,
    ) -> Result<Prompts, Failure> {
        match rule {
            Rule::Paper(name) => self.prefixes(folder, name, model),
            Rule::Pairs => self.sources(folder, model),
        }
    }

    /// The sources of a split with their targets.
    fn sources(&self, folder: &Path, model: &SavedModel) -> Result<Prompts, Failure> {
        let sizes = [
            ("--streams", self.streams),
            ("--prefix", self.prefix),
            ("--continuation", self.continuation),
        ];
        if let Some((flag, _)) = sizes.iter().find(|(_, size)| size.is_some()) {
            return Err(Failure::usage(format!("--protocol pairs has no {flag}"))
                .advise("leave it out: a pair has its own source and target"));
        }
        let prompts = pairs::of_split(folder, self.split, model)?;
        let most = self.texts.map_or(usize::MAX, NonZeroUsize::get);
        let Prompts { ids, texts, references, .. } = prompts;
        let [ids, references] = [ids, references].map(|all| spread(all, most));
        Ok(Prompts { ids, texts: spread(texts, most), references, ..prompts })
    }

    /// The prefixes of a split with their references.
    fn prefixes(
        &self,
        folder: &Path,
        name: ProtocolName,
        model: &SavedModel,
    ) -> Result<Prompts, Failure> {
        let corpus = Corpus::open(folder)?;
        if corpus.is_of_pairs() {
            let words = format!("{} holds pairs, not running text", folder.display());
            return Err(Failure::data(words).advise("take `--protocol pairs`"));
        }
        let protocol = self.sizes(name)?;
        let tokens = model.tokens(&corpus, self.split)?;
        let TestSet { prefixes, references } = protocol.cut(&*tokens)?;
        let most = self.texts.map_or(protocol.most_texts(), NonZeroUsize::get);
        let [prefixes, references] = [prefixes, references].map(|all| spread(all, most));
        Ok(Prompts {
            texts: prefixes.iter().map(|_| None).collect(),
            ids: prefixes,
            references,
            protocol: Some(Rule::Paper(name)),
            new_tokens: Some(protocol.continuation),
        })
    }

    /// The protocol with the sizes that were requested.
    fn sizes(&self, name: ProtocolName) -> Result<Protocol, Failure> {
        let usual = name.protocol();
        let cut = match (usual.cut, self.streams) {
            (Cut::Streams(usual), streams) => Cut::Streams(streams.unwrap_or(usual)),
            (Cut::Documents, None) => Cut::Documents,
            (Cut::Documents, Some(_)) => {
                let words = format!("--protocol {} has no --streams", name.as_str());
                return Err(Failure::usage(words)
                    .advise("leave it out: this protocol cuts documents, not streams"));
            }
        };
        let [prefix, continuation] =
            [(self.prefix, usual.prefix), (self.continuation, usual.continuation)]
                .map(|(given, usual)| given.unwrap_or(usual));
        Ok(Protocol { cut, prefix, continuation })
    }
}

/// At most `most` of all, evenly spaced.
pub(in crate::verbs) fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
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
