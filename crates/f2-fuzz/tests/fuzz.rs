//! The parsers on randomly changed files. The documentation of the crate describes longer runs.

use std::fs;
use std::path::Path;

use f2_classes::{ClassSelection, RankCounts, read_counts};
use f2_corpus::{
    Corpus, Counts, Inputs, Manifest, Options, Ranks, Record, Shard, Split, Tokenizer, WordCounts,
    documents,
};
use f2_engine::Cpu;
use f2_experiment::Plan;
use f2_fuzz::{BUFFERS, EXPRESSIONS, Repair, Seeds, Watched, fuzz};
use f2_lm::config::{ConfigLayers, ModelConfig};
use f2_lm::decode::{DecodingKeys, Strategy};
use f2_lm::exchange::ForeignModel;
use f2_lm::model::ModelShape;
use f2_lm::run::{Pick, RunFolder, SavedModel, checkpoint, read_events};
use f2_report::{Report, Results};

#[global_allocator]
static MEMORY: Watched = Watched;

#[test]
fn shards() {
    fuzz("shards", &Seeds::files_as("shards", "train.bin"), Repair::Shard, BUFFERS, |folder| {
        let Ok(shard) = Shard::open(&folder.join("train.bin")) else { return };
        let documents = (0..shard.documents()).map(|index| shard.ranks(shard.document(index)));
        let largest = documents.flatten().max();
        assert!(largest.is_none_or(|id| (id as usize) < shard.vocabulary_size()));
    });
}

#[test]
fn counts() {
    fuzz("counts", &Seeds::files_as("counts", "counts.json"), Repair::None, BUFFERS, |folder| {
        let Ok(counts) = Counts::load(&folder.join("counts.json")) else { return };
        let _ = RankCounts::new(&counts.counts);
    });
}

#[test]
fn lists_of_counts() {
    fuzz(
        "lists",
        &Seeds::files_as("lists_of_counts", "counts.json"),
        Repair::None,
        BUFFERS,
        |folder| {
            let Ok(counts) = read_counts(&folder.join("counts.json")) else { return };
            let _ = f2_classes::select(&counts, f2_classes::Method::Greedy, Some(1));
        },
    );
}

#[test]
fn ranks() {
    fuzz("ranks", &Seeds::files_as("ranks", "ranks.json"), Repair::None, BUFFERS, |folder| {
        let Ok(ranks) = Ranks::load(&folder.join("ranks.json")) else { return };
        assert_eq!(ranks.rank_of_id().len(), ranks.id_of_rank.len());
    });
}

#[test]
fn manifests() {
    fuzz(
        "manifests",
        &Seeds::files_as("manifests", "manifest.json"),
        Repair::Seal,
        BUFFERS,
        |folder| {
            let Ok(manifest) = Manifest::load(&folder.join("manifest.json")) else { return };
            let _ = manifest.tokenizer_sha256();
        },
    );
}

#[test]
fn corpora() {
    fuzz("corpora", &Seeds::folders("corpora"), Repair::Seal, EXPRESSIONS, |folder| {
        let Ok(corpus) = Corpus::open(folder) else { return };
        let _ = (corpus.tokenizer(), corpus.counts(), corpus.ranks());
        Split::ALL.into_iter().for_each(|split| drop(corpus.shard(split)));
    });
}

#[test]
fn word_counts() {
    fuzz("words", &Seeds::files_as("words", "words.bin"), Repair::None, BUFFERS, |folder| {
        let Ok(words) = WordCounts::load(&folder.join("words.bin")) else { return };
        assert!(words.len() < 1_000);
    });
}

#[test]
fn records_of_parts() {
    fuzz("records", &Seeds::files_as("records", "record.json"), Repair::Seal, BUFFERS, |folder| {
        let _ = Record::load(&folder.join("record.json"));
    });
}

/// Uses every function of a tokenizer.
fn use_tokenizer(tokenizer: &Tokenizer) {
    let text = "the cat sat on 12 mats — naïvely\n";
    let Ok(ids) = tokenizer.encode(text) else { return };
    let mut encoded = Vec::new();
    let _ = tokenizer.encoder().encode(text, &mut encoded);
    let _ = tokenizer.decode(&ids);
    let _ = tokenizer.token_text(3);
    let size = tokenizer.vocabulary_size() as u32;
    let reversed: Vec<u32> = (0..size).rev().collect();
    if let Ok(renamed) = tokenizer.renamed(&reversed) {
        let _ = tokenizer.ids_of(&renamed);
    }
}

#[test]
fn tokenizers() {
    fuzz(
        "tokenizers",
        &Seeds::files_as("tokenizers", "tokenizer.json"),
        Repair::None,
        EXPRESSIONS,
        |folder| {
            let Ok(tokenizer) = Tokenizer::load(&folder.join("tokenizer.json")) else { return };
            use_tokenizer(&tokenizer);
        },
    );
}

#[test]
fn vocabularies_and_merges() {
    fuzz("merges", &Seeds::folders("merges"), Repair::None, EXPRESSIONS, |folder| {
        let [vocabulary, merges] = ["vocab.json", "merges.txt"].map(|name| folder.join(name));
        if let Ok(tokenizer) = Tokenizer::load_vocabulary_and_merges(&vocabulary, &merges) {
            use_tokenizer(&tokenizer);
        }
    });
}

#[test]
fn classes() {
    fuzz("classes", &Seeds::files_as("classes", "classes.json"), Repair::None, BUFFERS, |folder| {
        let Ok(selection) = ClassSelection::load(&folder.join("classes.json")) else { return };
        let classes = selection.classes();
        assert_eq!(classes.class_of(classes.vocabulary() - 1), classes.len() - 1);
    });
}

/// The options with which texts are read.
fn options() -> Options {
    let inputs = Inputs::PerSplit { train: vec![], valid: vec![], test: vec![] };
    let mut options = Options::new(inputs, Path::new("unused"));
    options.longest_document = 1 << 16;
    options
}

/// Reads a file of text as `f2 prepare` does.
fn read_documents(path: &Path, options: &Options) {
    let Ok(documents) = documents(path, options) else { return };
    documents.take_while(Result::is_ok).flatten().for_each(|document| {
        assert!(document.ends_with('\n') && !document.trim().is_empty());
    });
}

#[test]
fn json_lines() {
    let options = options();
    fuzz(
        "json_lines",
        &Seeds::files_as("json_lines", "text.jsonl"),
        Repair::None,
        BUFFERS,
        |folder| {
            read_documents(&folder.join("text.jsonl"), &options);
        },
    );
}

#[test]
fn packed_texts() {
    let options = options();
    fuzz("zstd", &Seeds::files_as("zstd", "text.txt.zst"), Repair::None, BUFFERS, |folder| {
        read_documents(&folder.join("text.txt.zst"), &options);
    });
    fuzz("gzip", &Seeds::files_as("gzip", "text.txt.gz"), Repair::None, BUFFERS, |folder| {
        read_documents(&folder.join("text.txt.gz"), &options);
    });
}

#[test]
fn configurations() {
    fuzz(
        "configurations",
        &Seeds::files_as("configurations", "f2.toml"),
        Repair::None,
        BUFFERS,
        |folder| {
            let file = ConfigLayers::new().file(&folder.join("f2.toml"));
            let _ = file.and_then(ConfigLayers::resolve);
        },
    );
}

#[test]
fn decodings() {
    let shape = |class_ends| ModelShape {
        model: ModelConfig::default(),
        positions: 8,
        vocabulary: 50,
        class_ends,
    };
    let shapes = [shape(vec![10, 50]), shape(Vec::new())];
    let seeds = Seeds::files_as("decodings", "decoding.toml");
    fuzz("decodings", &seeds, Repair::None, BUFFERS, |folder| {
        for shape in &shapes {
            let Ok(keys) = DecodingKeys::read(&folder.join("decoding.toml"), shape) else {
                continue;
            };
            Strategy::from(&keys).check(shape).unwrap();
        }
    });
}

#[test]
fn plans() {
    fuzz("plans", &Seeds::files_as("plans", "plan.toml"), Repair::None, BUFFERS, |folder| {
        let _ = Plan::load(&folder.join("plan.toml"));
    });
}

#[test]
fn results() {
    fuzz("results", &Seeds::files_as("results", "results.json"), Repair::None, BUFFERS, |folder| {
        let Ok(results) = Results::load(&folder.join("results.json")) else { return };
        let report = Report::new(&results);
        let _ = report.to_html();
    });
}

#[test]
fn runs() {
    fuzz("runs", &Seeds::folders("runs"), Repair::None, BUFFERS, |folder| {
        let _ = RunFolder::open(folder);
        let _ = read_events(&folder.join("events.jsonl"));
    });
}

#[test]
fn checkpoints() {
    for repair in [Repair::Seal, Repair::Tensors] {
        fuzz("checkpoints", &Seeds::folders("checkpoints"), repair, EXPRESSIONS, |folder| {
            let _ = checkpoint::open(folder);
            if let Ok(model) = SavedModel::open(folder, Pick::Best) {
                let _ = model.load(Cpu::new(1).unwrap());
            }
        });
    }
}

/// Without a `state.json` there are no checksums to protect the other files.
#[test]
fn models() {
    fuzz("models", &Seeds::folders("models"), Repair::Tensors, EXPRESSIONS, |folder| {
        if let Ok(model) = SavedModel::open(folder, Pick::Best) {
            let _ = model.load(Cpu::new(1).unwrap());
        }
    });
}

#[test]
fn hugging_face_folders() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2-lm/tests/fixtures/gpt2");
    fuzz("hugging_face", &Seeds::folders_in(&seeds), Repair::Tensors, EXPRESSIONS, |folder| {
        let Ok(model) = ForeignModel::open(folder) else { return };
        let imported = folder.join("model");
        let _ = model.write(&imported, &mut |_| true);
        let _ = fs::remove_dir_all(&imported);
    });
}
