//! A model on the disk, found, checked and loaded.

use std::path::{Path, PathBuf};

use f2_classes::ClassSelection;
use f2_corpus::{Corpus, Counts, Ranks, Split, Tokenizer};
use f2_engine::Device;
use f2_files::regular_file;

use super::checkpoint::{
    self, CLASSES, COUNTS, MODEL, OPTIMISER, RANKS, SHAPE, STATE, TOKENIZER, TrainingState,
};
use super::model_file::ModelFile;
use super::{RunFolder, Vocabulary, corpus_ids};
use crate::Error;
use crate::batch::{RenamedTokens, TokenSource};
use crate::decode::{Contrast, DECODING, DecodingKeys, Strategy};
use crate::memory::{Purpose, bytes, check_memory};
use crate::model::{Decoder, Model, ModelShape};
use crate::perplexity::Contexts;

/// Which checkpoint of a run to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The one with the best validation perplexity; the last if there was no evaluation.
    #[default]
    Best,
    /// The newest.
    Last,
    /// The one after this many steps.
    Step(u64),
}

/// A model on the disk that can be used without the run it came from.
///
/// Its folder holds `model.safetensors`, `model.json`, `tokenizer.json` (with `ranks.json` if ids
/// are not ranks), for an F² model `classes.json`, and if counts are known `counts.json`.
#[derive(Clone, Debug)]
pub struct SavedModel {
    /// Where its files are.
    pub folder: PathBuf,
    /// Its sizes.
    pub shape: ModelShape,
    /// Text to ids and back.
    pub vocabulary: Vocabulary,
    /// How often each token occurs in the training text, by rank.
    pub counts: Option<Vec<u64>>,
    /// Where contexts began in training, and so begin in scoring.
    pub contexts: Contexts,
}

impl SavedModel {
    /// Opens a run folder, one of its checkpoints, or a folder that holds a model's files alone.
    /// `pick` chooses among the checkpoints of a run.
    pub fn open(path: &Path, pick: Pick) -> Result<Self, Error> {
        let folder = find(path, pick)?;
        let state = check_files(&folder)?;
        let file = ModelFile::read(&folder)?;
        let classes_path = folder.join(CLASSES);
        let shape = file
            .shape(class_ends(&folder, file.classes)?)
            .map_err(|reason| Error::BadCheckpoint { path: classes_path, reason })?;
        let vocabulary = vocabulary(&folder, shape.vocabulary)?;
        let counts = counts(&folder, shape.vocabulary)?;
        let contexts = contexts(&folder, state.as_ref());
        Ok(Self { folder, shape, vocabulary, counts, contexts })
    }

    /// The token between source and target, if it was trained on pairs.
    pub fn separator(&self) -> Option<u32> {
        match self.contexts {
            Contexts::Pairs { separator } => Some(separator),
            Contexts::Text | Contexts::Documents { .. } => None,
        }
    }

    /// The tokens of a corpus's split in the model's own ids. The corpus must have the model's
    /// tokenizer, in any order of ids, and be of pairs if and only if the model was trained on
    /// pairs.
    pub fn tokens(&self, corpus: &Corpus, split: Split) -> Result<Box<dyn TokenSource>, Error> {
        self.check_pairs(corpus)?;
        let renamed = corpus_ids::find(self, corpus)?;
        let shard = corpus.shard(split)?;
        Ok(match renamed {
            None => Box::new(shard),
            Some(ids) => Box::new(RenamedTokens { tokens: shard, ids }),
        })
    }

    /// Refuses a model that this one cannot be the amateur of: with other ids or more positions.
    pub fn check_amateur_of(&self, model: &Self) -> Result<(), Error> {
        if !corpus_ids::has_same_files(&model.folder, &self.folder)? {
            let reason = format!(
                "{} has another tokenizer than {}",
                self.folder.display(),
                model.folder.display()
            );
            return Err(Error::Strategy { option: "contrast", reason });
        }
        Contrast::check_amateur(&model.shape, &self.shape)
    }

    /// Refuses pairs if it was trained on running text, and vice versa.
    fn check_pairs(&self, source: &Corpus) -> Result<(), Error> {
        let (corpus, model) = (source.folder().to_path_buf(), self.folder.clone());
        match (source.is_of_pairs(), self.separator()) {
            (true, None) => Err(Error::NotTrainedOnPairs { corpus, model }),
            (false, Some(_)) => Err(Error::NoPairs { corpus, model }),
            _ => Ok(()),
        }
    }

    /// The folder of the run it is a checkpoint of, or else its own: where its decoding file is.
    pub fn home(&self) -> PathBuf {
        let run = self.folder.parent().and_then(Path::parent);
        let run = run.map(|run| if run.as_os_str().is_empty() { Path::new(".") } else { run });
        let run = run.filter(|run| RunFolder::open(run).is_ok());
        run.unwrap_or(&self.folder).to_path_buf()
    }

    /// Its default decoding strategy and the file that sets it; `None` if there is no such file.
    pub fn decoding(&self) -> Result<Option<(PathBuf, Strategy)>, Error> {
        let path = self.home().join(DECODING);
        if !path.exists() {
            return Ok(None);
        }
        let keys = DecodingKeys::read(regular_file(&path)?, &self.shape)?;
        Ok(Some((path, Strategy::from(&keys))))
    }

    /// The layout of its parameters.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.shape.clone())
    }

    /// Loads it onto a device.
    pub fn load<D: Device>(&self, device: D) -> Result<Model<D>, Error> {
        let decoder = self.decoder();
        checkpoint::check_model(&self.folder, &decoder.layout)?;
        let needed = bytes(&[decoder.layout.len(), D::WEIGHT_BYTES]);
        check_memory(&device, Purpose::Loading, needed)?;
        let mut model = Model::zeros(device, decoder)?;
        checkpoint::load_model(&self.folder, &mut model)?;
        Ok(model)
    }
}

/// The folder with the model's files.
fn find(path: &Path, pick: Pick) -> Result<PathBuf, Error> {
    if path.join(SHAPE).exists() {
        return Ok(path.to_path_buf());
    }
    let no_model =
        |reason: &str| Error::NotAModel { path: path.to_path_buf(), reason: reason.into() };
    if path.join(MODEL).exists() {
        return Err(no_model(
            "model.safetensors is there, but no model.json says its shape; an older version or \
             another program wrote it",
        ));
    }
    match RunFolder::open(path) {
        Ok(run) => picked(&run, pick),
        Err(Error::NotARun { .. }) if !path.exists() => Err(no_model("there is no such folder")),
        Err(Error::NotARun { .. }) => Err(no_model("neither model.json nor config.toml is in it")),
        Err(error) => Err(error),
    }
}

fn picked(run: &RunFolder, pick: Pick) -> Result<PathBuf, Error> {
    let no_model = |reason: String| Error::NotAModel { path: run.path().to_path_buf(), reason };
    let newest =
        run.latest_checkpoint()?.ok_or_else(|| no_model("the run has no checkpoint yet".into()))?;
    let best = match pick {
        Pick::Last => return Ok(newest),
        Pick::Step(step) => Some(step),
        Pick::Best => checkpoint::read_state(&newest)?.best.map(|best| best.step),
    };
    let Some(step) = best else { return Ok(newest) };
    let folder = checkpoint::path(&run.checkpoints(), step);
    match pick {
        _ if folder.exists() => Ok(folder),
        // The best one could not be written, or was removed: the last one is used.
        Pick::Best => Ok(newest),
        _ => Err(no_model(format!("there is no checkpoint of step {step}"))),
    }
}

/// Verifies a checkpoint's files, except for the optimiser's, which a model does not need, and
/// returns its training state. A model without a run has neither.
fn check_files(folder: &Path) -> Result<Option<TrainingState>, Error> {
    if !folder.join(STATE).exists() {
        return Ok(None);
    }
    let state = checkpoint::read_state(folder)?;
    let mut needed = state.files.iter().filter(|(name, _)| *name != OPTIMISER);
    needed.try_for_each(|(name, expected)| checkpoint::check_file(&folder.join(name), expected))?;
    Ok(Some(state))
}

/// The contexts a model was trained with, from its checkpoint or, if that is from before they were
/// recorded, from the settings of its run. Those of a model without a run are unknown: it takes
/// texts as they come.
fn contexts(folder: &Path, state: Option<&TrainingState>) -> Contexts {
    let Some(state) = state else { return Contexts::Text };
    if let Some(separator) = state.separator {
        return Contexts::Pairs { separator };
    }
    if let Some(shortest) = state.shortest_document {
        return Contexts::Documents { shortest };
    }
    let run = folder.parent().and_then(Path::parent).map(RunFolder::open);
    run.and_then(Result::ok).map_or(Contexts::Text, |run| Contexts::of(&run.config.batch))
}

fn class_ends(folder: &Path, classes: usize) -> Result<Vec<u32>, Error> {
    let path = folder.join(CLASSES);
    if classes == 0 {
        return Ok(Vec::new());
    }
    if !path.exists() {
        let reason = format!("its {classes} frequency classes ({CLASSES}) are missing");
        return Err(Error::NotAModel { path: folder.to_path_buf(), reason });
    }
    let selection = ClassSelection::load(regular_file(&path)?)?;
    Ok(selection.classes().ends().iter().map(|end| *end as u32).collect())
}

fn vocabulary(folder: &Path, size: usize) -> Result<Vocabulary, Error> {
    let path = folder.join(TOKENIZER);
    if !path.exists() {
        let reason = format!("its tokenizer ({TOKENIZER}) is missing");
        return Err(Error::NotAModel { path: folder.to_path_buf(), reason });
    }
    let ranks_path = folder.join(RANKS);
    let ranks = if ranks_path.exists() { Some(Ranks::load(&ranks_path)?) } else { None };
    let tokenizer = Tokenizer::load(regular_file(&path)?)?;
    let tokens = ranks.as_ref().map_or(tokenizer.vocabulary_size(), |ranks| ranks.id_of_rank.len());
    // Embeddings are often a little longer, padded to a round number of rows.
    if tokens > size || tokenizer.vocabulary_size() > tokens {
        let reason =
            format!("it has {} tokens, the model {size}", tokens.max(tokenizer.vocabulary_size()));
        return Err(Error::BadCheckpoint { path, reason });
    }
    Ok(Vocabulary::new(tokenizer, ranks))
}

fn counts(folder: &Path, size: usize) -> Result<Option<Vec<u64>>, Error> {
    let path = folder.join(COUNTS);
    if !path.exists() {
        return Ok(None);
    }
    let counts = Counts::load(&path)?.counts;
    if counts.len() != size {
        let reason = format!("it counts {} tokens, the model has {size}", counts.len());
        return Err(Error::BadCheckpoint { path, reason });
    }
    Ok(Some(counts))
}
