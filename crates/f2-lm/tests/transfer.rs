//! A GPT-2 carried over to another corpus: what stays the same, what starts anew, and what cannot
//! be carried over.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use f2_classes::{Method, RankCounts, select};
use f2_corpus::{Inputs, Options, Silent, Tokenizer, TokenizerChoice, prepare};
use f2_engine::prelude::*;
use f2_engine::{Cpu, Labels, Sequences};
use f2_lm::config::{ClassVectors, ConfigLayers};
use f2_lm::exchange::ForeignModel;
use f2_lm::model::{Batch, Decoder, Model, ModelShape, Network, Recordings, Workspace};
use f2_lm::run::{Pick, SavedModel};
use f2_lm::train::{InitialModel, TrainingCorpus};

/// Other words, and other frequencies, than the tokenizer was learned from.
const TEXT: &str = "a rat on a mat, a cat on a rat: and on, and on, sat the mat\n";

/// An imported GPT-2 and a corpus prepared with its tokenizer.
struct Crossing {
    folder: tempfile::TempDir,
    model: SavedModel,
    source: TrainingCorpus,
    class_ends: Vec<u32>,
}

impl Crossing {
    fn new(hub: &str, keep_ids: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [model, corpus] = ["model", "corpus"].map(|name| folder.path().join(name));
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpt2");
        ForeignModel::open(&fixtures.join(hub)).unwrap().write(&model, &mut |_| true).unwrap();
        prepare_with(&corpus, TokenizerChoice::File(model.join("tokenizer.json")), keep_ids);
        let source = TrainingCorpus::open(&corpus).unwrap();
        let counts = RankCounts::new(&source.counts).unwrap();
        let selection = select(&counts, Method::EqualFrequency, Some(4)).unwrap();
        let class_ends = selection.classes().ends().iter().map(|end| *end as u32).collect();
        let model = SavedModel::open(&model, Pick::Best).unwrap();
        Self { folder, model, source, class_ends }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn initial(&self) -> InitialModel {
        InitialModel::open(&self.path("model"), Some(&self.source)).unwrap()
    }

    /// The shape a run with F² would take over, windows of 12 tokens.
    fn shape(&self) -> ModelShape {
        let settings = self.initial().settings(ConfigLayers::new()).unwrap();
        let model = settings.resolve().unwrap().config.model;
        let (vocabulary, class_ends) = (self.source.record.vocabulary, self.class_ends.clone());
        ModelShape { model, positions: 12, vocabulary, class_ends }
    }

    fn carried_over(&self, class_vectors: ClassVectors) -> Network<Cpu> {
        let decoder = Decoder::new(self.shape());
        let initial = self.initial();
        initial.check(&decoder, &BTreeMap::new()).unwrap();
        let mut network = Network::new(Cpu::new(1).unwrap(), decoder, 12, 5).unwrap();
        initial.load(&mut network, class_vectors, &self.source.counts).unwrap();
        network
    }

    /// The first tokens of the text, as the model calls them and as the corpus does.
    fn tokens(&self) -> (Vec<u32>, Vec<u32>) {
        let own = self.model.vocabulary.encode(TEXT).unwrap();
        (own[..12].to_vec(), self.source.train.tokens.ranks(0..12))
    }
}

fn prepare_with(corpus: &Path, tokenizer: TokenizerChoice, keep_ids: bool) {
    let text = corpus.with_extension("txt");
    fs::write(&text, TEXT.repeat(10)).unwrap();
    let inputs = Inputs::PerSplit { train: vec![text.clone()], valid: vec![text], test: vec![] };
    let mut options = Options::new(inputs, corpus);
    (options.tokenizer, options.keep_ids) = (tokenizer, keep_ids);
    prepare(&options, &Silent).unwrap();
}

/// The hidden states of some tokens, and both parts of the loss of predicting the next ones.
fn run(model: &Model<Cpu>, tokens: &[u32]) -> (Vec<f32>, Vec<f32>) {
    let Model { device, decoder, weights } = model;
    let positions = tokens.len() - 1;
    let (shape, sequences) = (&decoder.shape, Sequences { count: 1, length: positions });
    let mut workspace = Workspace::new(model, positions).unwrap();
    let batch = Batch { sequences, inputs: &tokens[..positions], dropout: None };
    workspace.forward(model, batch, &mut Recordings::default());
    let mut hidden = vec![0.0; positions * shape.model.width];
    device.read_activations(workspace.hidden(), &mut hidden).unwrap();
    let mut targets = device.targets(positions, &decoder.head).unwrap();
    let mut losses = device.floats(2 * positions).unwrap();
    device.load_targets(&decoder.head, &Labels::uniform(&tokens[1..], 1.0), &mut targets);
    let states = workspace.hidden();
    device.loss(&decoder.head, weights, &mut targets, states, &mut losses);
    let mut parts = vec![0.0; 2 * positions];
    device.read_floats(&losses, 0, &mut parts).unwrap();
    (hidden, parts)
}

/// The permutation renames tokens and changes nothing else; and the token loss inside a class, whose
/// softmax has fewer terms, is at most the pretrained one.
#[test]
fn hidden_states_stay_and_the_token_loss_inside_a_class_is_at_most_the_pretrained_one() {
    for (hub, keep_ids) in [("tied", false), ("tied", true), ("untied", false)] {
        let crossing = Crossing::new(hub, keep_ids);
        let (own, ranks) = crossing.tokens();
        assert_ne!(own, ranks, "the order of the vocabulary is the same");
        let model = crossing.model.load(Cpu::new(1).unwrap()).unwrap();
        let (before, pretrained) = run(&model, &own);
        let network = crossing.carried_over(ClassVectors::Fresh);
        let (after, parts) = run(&network.model, &ranks);
        assert_eq!(before, after, "{hub}");
        let positions = own.len() - 1;
        for position in 0..positions {
            let (token, plain) = (parts[positions + position], pretrained[position]);
            assert!(token <= plain + 1e-6, "{hub}, position {position}: {token} above {plain}");
        }
        let total = |losses: &[f32]| losses.iter().sum::<f32>();
        assert!(total(&parts[positions..]) < total(&pretrained[..positions]), "{hub}");
    }
}

#[test]
fn a_tied_matrix_becomes_two_and_class_vectors_are_fresh_or_the_mean_of_their_tokens() {
    let crossing = Crossing::new("tied", false);
    let [fresh, mean] =
        [ClassVectors::Fresh, ClassVectors::Mean].map(|kind| crossing.carried_over(kind).model);
    let head = &mean.decoder.head;
    let classes = head.classes.as_ref().expect("an F² head was asked for");
    let tokens = mean.values(head.tokens).unwrap();
    assert!(!mean.decoder.shape.model.tied);
    assert_eq!(tokens, mean.values(mean.decoder.embedding.tokens).unwrap());
    let device = Cpu::new(1).unwrap();
    let drawn = Model::initialised(device, fresh.decoder.clone(), 5).unwrap();
    let [found, expected] = [&fresh, &drawn].map(|model| model.values(classes.vectors).unwrap());
    assert_eq!(found, expected);
    let width = head.tokens.columns;
    let found = mean.values(classes.vectors).unwrap();
    for class in 0..classes.count() {
        let weight = |rank: usize| crossing.source.counts[rank].max(1) as f64;
        let total: f64 = classes.members(class).map(weight).sum();
        for column in 0..width {
            let value = |rank: usize| weight(rank) * f64::from(tokens[rank * width + column]);
            let expected = classes.members(class).map(value).sum::<f64>() / total;
            let off = (f64::from(found[class * width + column]) - expected).abs();
            assert!(off < 1e-6, "class {class}, column {column}: off by {off}");
        }
    }
}

/// The rows an embedding was padded with have no token, and are left out.
#[test]
fn rows_without_a_token_stay_behind() {
    let crossing = Crossing::new("tied", false);
    let shape = crossing.shape();
    let path = crossing.path("model").join("tokenizer.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    json["model"]["merges"].as_array_mut().unwrap().pop();
    let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
    vocabulary.retain(|_, id| id.as_u64() != Some(269));
    fs::write(&path, json.to_string()).unwrap();
    let corpus = crossing.path("smaller");
    prepare_with(&corpus, TokenizerChoice::File(path), false);
    let source = TrainingCorpus::open(&corpus).unwrap();
    assert_eq!(source.record.vocabulary, 269);
    let initial = InitialModel::open(&crossing.path("model"), Some(&source)).unwrap();
    let shape = ModelShape { vocabulary: 269, class_ends: vec![4, 269], ..shape };
    let mut network = Network::new(Cpu::new(1).unwrap(), Decoder::new(shape), 12, 5).unwrap();
    initial.check(&network.model.decoder, &BTreeMap::new()).unwrap();
    initial.load(&mut network, ClassVectors::Fresh, &source.counts).unwrap();
    let model = SavedModel::open(&crossing.path("model"), Pick::Best).unwrap();
    let own = model.vocabulary.encode(TEXT).unwrap();
    let model = model.load(Cpu::new(1).unwrap()).unwrap();
    let (before, _) = run(&model, &own[..9]);
    let ranks = source.train.tokens.ranks(0..9);
    let (after, _) = run(&network.model, &ranks);
    assert_eq!(before, after);
}

#[test]
fn models_that_cannot_be_transferred_are_refused() {
    let crossing = Crossing::new("untied", false);
    let initial = crossing.initial();
    let refusal = |change: &dyn Fn(&mut ModelShape)| {
        let mut shape = crossing.shape();
        change(&mut shape);
        let message =
            initial.check(&Decoder::new(shape), &BTreeMap::new()).unwrap_err().to_string();
        message.replace(&crossing.folder.path().display().to_string(), "HERE")
    };
    let other = crossing.path("other");
    prepare_with(&other, TokenizerChoice::Train { vocabulary_size: 262 }, false);
    let other =
        InitialModel::open(&crossing.path("model"), Some(&TrainingCorpus::open(&other).unwrap()));
    let other = other.unwrap_err().to_string();
    let folder = crossing.folder.path().canonicalize().unwrap();
    let other = other.replace(&folder.display().to_string(), "HERE");
    let refused = [
        refusal(&|shape| shape.positions = 21),
        refusal(&|shape| shape.model.layers = 3),
        refusal(&|shape| shape.model.tied = true),
        other.replace(&crossing.folder.path().display().to_string(), "HERE"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
    let tokenizer = Tokenizer::load(&crossing.path("model").join("tokenizer.json")).unwrap();
    assert_eq!(tokenizer.vocabulary_size(), crossing.source.record.vocabulary);
}
