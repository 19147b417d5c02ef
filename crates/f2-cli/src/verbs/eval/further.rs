//! The further metrics of a file: their inputs besides its tokens, and remarks on missing inputs.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use f2_corpus::{Corpus, Split, Tokenizer};
use f2_lm::batch::TokenSource;
use f2_lm::run::SavedModel;
use f2_metrics::{
    Bootstrap, Error, Evaluation, Further, FurtherSettings, FurtherTexts, Need, TrainingTokens,
    training_matches,
};

use super::chosen::Chosen;
use super::models::{ModelFlags, States};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::{Progress, Unit};
use crate::texts::Texts;

/// The state shared by the further metrics of all files.
pub(super) struct FurtherScorer<'a> {
    models: &'a ModelFlags,
    settings: FurtherSettings,
    training: Option<Training>,
    embedder: Option<SavedModel>,
    human: Option<States>,
    /// Whether MAUVE reads texts after their prompts: if the references have prompts.
    with_prompts: bool,
    /// The missing inputs that were reported already.
    reported: HashSet<Need>,
}

impl<'a> FurtherScorer<'a> {
    /// Opens the training text and the embedder, if the chosen metrics need them.
    pub(super) fn new(
        models: &'a ModelFlags,
        chosen: &Chosen,
        bootstrap: Option<Bootstrap>,
        tokenizer: Option<&Path>,
    ) -> Result<Self, Failure> {
        let corpus = models.corpus.as_ref().filter(|_| chosen.need(&[Need::Training]));
        let training = corpus.map(|corpus| Training::open(corpus, tokenizer)).transpose()?;
        let reads_states = chosen.need(&[Need::HumanStates, Need::PromptStates]);
        let embedder = if reads_states { models.open_embedder()? } else { None };
        let settings = FurtherSettings {
            chosen: chosen.further.clone(),
            bootstrap,
            ..FurtherSettings::default()
        };
        Ok(Self {
            models,
            settings,
            training,
            embedder,
            human: None,
            with_prompts: false,
            reported: HashSet::new(),
        })
    }

    /// Adds the further metrics of human texts, which MAUVE then compares with.
    pub(super) fn score_human(
        &mut self,
        evaluation: &mut Evaluation,
        texts: &Texts,
    ) -> Result<(), Failure> {
        self.with_prompts = texts.prompts.is_some();
        let states = self.states(texts)?;
        let mut settings = self.settings.clone();
        // MAUVE compares with the human texts themselves.
        settings.chosen.retain(|metric| *metric != Further::Mauve);
        self.add(evaluation, texts, states.as_ref(), &settings)?;
        self.human = states;
        Ok(())
    }

    /// Adds the further metrics of a model's texts.
    pub(super) fn score(
        &mut self,
        evaluation: &mut Evaluation,
        texts: &Texts,
    ) -> Result<(), Failure> {
        if self.settings.chosen.is_empty() {
            return Ok(());
        }
        if self.with_prompts && texts.prompts.is_none() && self.embedder.is_some() {
            remark!(
                "note: {}: MAUVE reads the references after their prompts, but these texts have none",
                texts.path.display()
            );
        }
        let states = self.states(texts)?;
        let settings = self.settings.clone();
        self.add(evaluation, texts, states.as_ref(), &settings)
    }

    fn states(&self, texts: &Texts) -> Result<Option<States>, Failure> {
        match &self.embedder {
            Some(model) => self.models.states(model, texts, self.with_prompts),
            None => Ok(None),
        }
    }

    fn add(
        &mut self,
        evaluation: &mut Evaluation,
        texts: &Texts,
        states: Option<&States>,
        settings: &FurtherSettings,
    ) -> Result<(), Failure> {
        if settings.chosen.is_empty() {
            return Ok(());
        }
        let matches = match &self.training {
            Some(training) => training.matches(texts)?,
            None => None,
        };
        let human = self.human.as_ref().map(|human| &human.last);
        let means = states.and_then(|states| states.means.as_ref());
        let known = evaluation.undefined.len();
        let further = FurtherTexts {
            tokens: &texts.ids,
            strings: texts.strings.as_deref(),
            matches: matches.as_deref(),
            human_and_own: human.zip(states).map(|(human, states)| [human, &states.last]),
            prompts_and_own: means.map(|[prompts, own]| [prompts, own]),
        };
        evaluation.add_further(&further, settings).map_err(|error| {
            Failure::data(format!("{}: {error}", texts.path.display()))
                .advise("give a file with one text a line")
        })?;
        self.remark(texts, &evaluation.undefined[known..]);
        Ok(())
    }

    /// Reports why values are missing, each missing input once.
    fn remark(&mut self, texts: &Texts, missing: &[Error]) {
        for error in missing {
            match error {
                Error::Needs { need, .. } if !self.reported.insert(*need) => {}
                Error::Needs { need, .. } => {
                    remark!("note: {error}; {}", remedy(*need, self.training.is_some()));
                }
                error => remark!("note: {}: {error}", texts.path.display()),
            }
        }
    }
}

/// How to give the input that a metric needs. If the training text is `open`, only the tokenizer is
/// missing.
pub(super) fn remedy(need: Need, open: bool) -> &'static str {
    match need {
        Need::Likelihood => "give them with `--models` and `--corpus`, or numbers with `--ppl`",
        Need::References => "give them with `--refs`",
        Need::Strings => "give files with `text`, such as those of `f2 generate`",
        Need::Training if open => {
            "words are not tokens of the corpus: give its tokenizer with `--tokenizer`"
        }
        Need::Training => "name the corpus of the training with `--corpus`",
        Need::HumanStates => "give texts with `--refs` and a model with `--embedder`",
        Need::PromptStates => {
            "give files of `f2 generate`, which hold prompts, and a model with `--embedder`"
        }
    }
}

/// The training text of a corpus, and how the tokens of texts are found in it.
struct Training {
    corpus: Corpus,
    tokens: f2_corpus::Shard,
    vocabulary: usize,
    /// The corpus's id for each id of the tokenizer that splits texts, if there is one.
    id_of_token: Option<Vec<u32>>,
}

impl Training {
    fn open(folder: &Path, tokenizer: Option<&Path>) -> Result<Self, Failure> {
        if folder.is_file() {
            return Err(Failure::usage(format!("{} is a file, not a corpus", folder.display()))
                .advise("novelty reads the training split of a folder that `f2 prepare` wrote"));
        }
        let corpus = Corpus::open(folder)?;
        let tokens = corpus.shard(Split::Train)?;
        let own = corpus.tokenizer()?;
        let ranks = corpus.ranks()?;
        let vocabulary = ranks.as_ref().map_or(own.vocabulary_size(), |each| each.id_of_rank.len());
        let id_of_token = match tokenizer {
            None => None,
            Some(path) => {
                let given = Tokenizer::load(path)?;
                let ids = own.ids_of(&given).map_err(|reason| {
                    Failure::data(format!(
                        "{} is not the tokenizer of {}: {reason}",
                        path.display(),
                        folder.display()
                    ))
                    .advise("give the corpus's own with `--tokenizer`, or leave novelty out")
                })?;
                let rank_of_id = ranks.map(|ranks| ranks.rank_of_id());
                let rank = |id: u32| rank_of_id.as_ref().map_or(id, |ranks| ranks[id as usize]);
                Some(ids.into_iter().map(rank).collect())
            }
        };
        Ok(Self { corpus, tokens, vocabulary, id_of_token })
    }

    /// The matches of texts in the training text; `None` if texts are words.
    fn matches(&self, texts: &Texts) -> Result<Option<Vec<Vec<u32>>>, Failure> {
        let given = texts.own_ids.as_ref().unwrap_or(&texts.ids);
        let ids: Vec<Vec<u32>> = match &self.id_of_token {
            _ if texts.given_as_ids => given.clone(),
            None => return Ok(None),
            Some(ids) => {
                given.iter().map(|text| text.iter().map(|id| ids[*id as usize]).collect()).collect()
            }
        };
        for (number, text) in ids.iter().enumerate() {
            if let Some(id) = text.iter().find(|id| **id as usize >= self.vocabulary) {
                return Err(Failure::data(format!(
                    "{}: the token id {id} is not among the {} ids of {}",
                    texts.place(number),
                    self.vocabulary,
                    self.corpus.folder().display()
                ))
                .advise("give the corpus these ids come from with `--corpus`"));
            }
        }
        let label = format!("looking for {} in the training text", texts.path.display());
        let progress = Progress::new(&label, Some(TokenSource::len(&self.tokens)), Unit::Tokens);
        let watch = |tokens| {
            progress.advance(tokens);
            !interrupt::asked()
        };
        training_matches(&ids, &Tokens(&self.tokens), &watch).map(Some).ok_or_else(|| {
            Failure::new(Kind::Interrupted, "stopped before the end of the training text")
                .advise("the same command starts again; nothing was written")
        })
    }
}

/// A split of a corpus as training tokens.
struct Tokens<'a>(&'a f2_corpus::Shard);

impl TrainingTokens for Tokens<'_> {
    fn tokens(&self) -> u64 {
        TokenSource::len(self.0)
    }

    fn copy(&self, range: Range<u64>, out: &mut [u32]) {
        TokenSource::read(self.0, range, out);
    }
}
