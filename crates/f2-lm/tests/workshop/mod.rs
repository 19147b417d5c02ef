//! A corpus and a model over it, small enough to make in every test.

// Every test file uses its own part of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use f2_classes::{Method, RankCounts, select};
use f2_corpus::{Inputs, Options, Silent, TokenizerChoice, prepare};
use f2_engine::Cpu;
use f2_lm::config::ModelConfig;
use f2_lm::model::{Decoder, Model, ModelShape};
use f2_lm::run::checkpoint;
use f2_lm::train::{Classes, TrainingCorpus};

pub struct Workshop(tempfile::TempDir);

/// Two characters of three and four bytes, too rare for tokens of their own.
pub const TEXT: &str = "the cat sat on the mat and the rat sat on the cat, naïvely: 猫 🐈\n";

impl Workshop {
    /// A corpus of a few sentences over and over, with three classes.
    pub fn new() -> Self {
        let workshop = Self(tempfile::tempdir().unwrap());
        workshop.corpus("corpus", false);
        workshop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn corpus(&self, name: &str, keep_ids: bool) {
        let text = self.path("text.txt");
        fs::write(&text, TEXT.repeat(20)).unwrap();
        let inputs =
            Inputs::PerSplit { train: vec![text.clone()], valid: vec![text], test: vec![] };
        let mut options = Options::new(inputs, &self.path(name));
        options.tokenizer = TokenizerChoice::Train { vocabulary_size: 270 };
        options.keep_ids = keep_ids;
        prepare(&options, &Silent).unwrap();
        let source = TrainingCorpus::open(&self.path(name)).unwrap();
        let counts = RankCounts::new(&source.counts).unwrap();
        let selection = select(&counts, Method::EqualFrequency, Some(3)).unwrap();
        selection.save(&self.path(name).join(checkpoint::CLASSES)).unwrap();
    }

    pub fn classes(&self, corpus: &str) -> Classes {
        let folder = self.path(corpus);
        TrainingCorpus::open(&folder).unwrap().classes(&folder.join(checkpoint::CLASSES)).unwrap()
    }

    /// A model folder with random weights over a corpus, with its classes or without.
    pub fn model(&self, corpus: &str, name: &str, classed: bool) -> PathBuf {
        let source = TrainingCorpus::open(&self.path(corpus)).unwrap();
        let classes = classed.then(|| self.classes(corpus));
        let ends = classes.as_ref().map(|classes| classes.ends.clone()).unwrap_or_default();
        let decoder = decoder(source.record.vocabulary, ends);
        let folder = self.path(name);
        fs::create_dir(&folder).unwrap();
        let model = Model::initialised(Cpu::new(1).unwrap(), decoder, 3).unwrap();
        checkpoint::save_model(&folder, &model).unwrap();
        for (name, content) in source.attachments(classes.as_ref()).unwrap() {
            fs::write(folder.join(name), content).unwrap();
        }
        folder
    }
}

pub fn decoder(vocabulary: usize, class_ends: Vec<u32>) -> Decoder {
    let model =
        ModelConfig { layers: 2, width: 24, heads: 3, feed_forward: 40, ..ModelConfig::default() };
    Decoder::new(ModelShape { model, positions: 48, vocabulary, class_ends })
}

/// A message with the path of a temporary folder replaced.
pub fn named(message: &str, folder: &Path) -> String {
    message.replace(&folder.display().to_string(), "HERE/")
}
