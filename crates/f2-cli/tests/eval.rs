//! The output of `f2 eval`, and its errors on bad input.

mod support;

use insta::assert_snapshot;
use support::transcript::{f2, folder};
use support::{Folder, small_settings};

const HUMAN: &str = "\
the cat sat on the mat and looked at the moon
a dog ran over the hill and barked at the cat
the moon rose over the hill and the sea
";
const LOOPING: &str = "\
the cat sat on the mat on the mat on the mat
the cat sat on the hill and the cat sat down
a dog and a dog and a dog and a dog
";
const LIVELY: &str = "\
the moon looked at the sea and the hill
a cat ran over the mat and barked
the dog sat on a hill and sang at the moon
";
const HUMAN_IDS: &str = "{\"ids\": [0, 1, 2, 3, 4, 5, 6]}\n{\"ids\": [0, 1, 7, 3, 2, 8, 9]}\n";
const MODEL_IDS: &str = "{\"ids\": [0, 1, 0, 1, 0, 1, 2]}\n\n{\"ids\": [0, 1, 2, 3, 4, 0, 9]}\n";

#[test]
fn a_table_with_the_values_closest_to_human() {
    let folder = folder(&[("human.txt", HUMAN), ("looping.txt", LOOPING), ("lively.txt", LIVELY)]);
    assert_snapshot!(f2(&folder, "eval --hyps looping.txt lively.txt --refs human.txt"));
}

#[test]
fn every_format() {
    let folder = folder(&[("human.txt", HUMAN), ("looping.txt", LOOPING), ("lively.txt", LIVELY)]);
    let arguments = "eval --hyps looping.txt lively.txt --refs human.txt --ppl 9.5 11 --orders 2";
    for format in ["markdown", "latex", "csv", "json"] {
        assert_snapshot!(format, f2(&folder, &format!("{arguments} --{format}")));
    }
}

#[test]
fn textbook_definitions() {
    let folder = folder(&[("human.txt", HUMAN), ("lively.txt", LIVELY)]);
    assert_snapshot!(f2(
        &folder,
        "eval --hyps lively.txt --refs human.txt --convention textbook --words"
    ));
}

#[test]
fn ids_with_counts_and_intervals() {
    let counts = r#"{"version":1,"tokens":62,"unseen":0,"counts":[20,10,8,7,6,5,2,2,1,1]}"#;
    let folder =
        folder(&[("human.jsonl", HUMAN_IDS), ("f2.jsonl", MODEL_IDS), ("counts.json", counts)]);
    let arguments = "eval --hyps f2.jsonl --refs human.jsonl --counts counts.json --orders 1";
    assert_snapshot!("bands", f2(&folder, arguments));
    let arguments = format!("{arguments} --bootstrap 200 --seed 7 --set demo --json");
    assert_snapshot!("intervals", f2(&folder, &arguments));
}

#[test]
fn a_plain_array_of_counts_goes_by_id_in_any_order() {
    let folder = folder(&[("model.jsonl", MODEL_IDS), ("counts.json", "[1,1,2,2,5,6,7,8,10,20]")]);
    assert_snapshot!(f2(&folder, "eval --hyps model.jsonl --counts counts.json --orders 1 --csv"));
}

#[test]
fn packed_files_are_read_by_name() {
    let folder = folder(&[("human.txt", HUMAN)]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, LIVELY.as_bytes()).unwrap();
    folder.write("lively.txt.gz", packed.finish().unwrap());
    assert_snapshot!(f2(&folder, "eval --hyps lively.txt.gz --refs human.txt --csv"));
}

#[test]
fn unusual_texts_are_scored_with_a_remark() {
    let folder = folder(&[
        ("human.txt", HUMAN),
        ("one.txt", "the cat sat on the mat\n"),
        ("some-empty.jsonl", "{\"text\": \"\"}\n{\"text\": \"the cat sat on the mat\"}\n"),
        ("all-empty.txt", "\n\n"),
        ("short.txt", "the cat\nthe\n"),
        ("many.txt", &LIVELY.repeat(3)),
    ]);
    for name in ["one.txt", "some-empty.jsonl", "all-empty.txt", "short.txt", "many.txt"] {
        let arguments = format!("eval --hyps {name} --refs human.txt --words --csv");
        assert_snapshot!(name, f2(&folder, &arguments));
    }
    assert_snapshot!(
        "short-textbook",
        f2(&folder, "eval --hyps short.txt --refs short.txt --convention textbook --csv")
    );
}

#[test]
fn bad_input_is_refused_with_place_and_advice() {
    let folder = folder(&[
        ("human.jsonl", HUMAN_IDS),
        ("human.txt", HUMAN),
        ("empty.txt", ""),
        ("empty.jsonl", "\n"),
        ("broken.jsonl", "{\"ids\": [1, 2]}\n{\"ids\": [1, 2\n"),
        ("negative.jsonl", "{\"ids\": [1, -2]}\n"),
        ("mixed.jsonl", "{\"ids\": [1, 2]}\n{\"text\": \"one two\"}\n"),
        ("neither.jsonl", "{\"tokens\": [1, 2]}\n"),
        ("counts.json", "[5, 4, 3]"),
        ("rising.json", r#"{"version":1,"tokens":3,"unseen":0,"counts":[1,2]}"#),
        ("zero.json", "[0, 0]"),
        ("words.json", "[\"a\"]"),
    ]);
    folder.write("latin1.txt", b"caf\xe9\n");
    folder.write("cut.txt.zst", b"\x28\xb5\x2f\xfd\x04");
    let attempts = [
        "--hyps absent.txt",
        "--hyps empty.txt",
        "--hyps empty.jsonl",
        "--hyps broken.jsonl",
        "--hyps negative.jsonl",
        "--hyps mixed.jsonl",
        "--hyps neither.jsonl",
        "--hyps latin1.txt",
        "--hyps cut.txt.zst",
        "--hyps human.jsonl --refs human.txt",
        "--hyps human.jsonl --words",
        "--hyps human.txt --counts counts.json",
        "--hyps human.jsonl --counts counts.json",
        "--hyps human.jsonl --counts rising.json",
        "--hyps human.jsonl --counts zero.json",
        "--hyps human.jsonl --counts words.json",
        "--hyps human.txt --tokenizer counts.json",
        "--hyps human.txt --convention clean",
        "--hyps human.txt --orders 6",
        "--hyps human.txt --names a b",
        "--hyps human.txt --seed 1",
        "--refs human.txt",
    ];
    let shown = attempts.map(|attempt| f2(&folder, &format!("eval {attempt}")));
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_tokenizer_splits_text() {
    let folder = folder(&[("train.txt", &HUMAN.repeat(4)), ("lively.txt", LIVELY)]);
    let prepared = f2(
        &folder,
        "prepare --train train.txt --documents lines --vocab-size 280 --out corpus --json",
    );
    assert!(prepared.contains("exit code: 0"), "{prepared}");
    let shown = f2(
        &folder,
        "eval --hyps lively.txt --refs train.txt --tokenizer corpus/tokenizer.json \
         --counts corpus/counts.json --orders 1 --markdown",
    );
    assert!(shown.contains("exit code: 0"), "{shown}");
    assert!(shown.contains("| model | frequent | medium | rare | very rare (VR) |"), "{shown}");
}

/// The output of `f2 perplexity --json` for a text of `tokens` tokens.
fn perplexity(perplexity: f64, tokens: u64) -> String {
    format!(
        "{{\"token_perplexity\":{perplexity},\"word_perplexity\":20,\"bits_per_byte\":1.5,\
         \"nats_per_token\":2.25,\"tokens\":{tokens},\"scored_tokens\":90,\"words\":80,\
         \"bytes\":400,\"window\":32,\"stride\":32}}\n"
    )
}

#[test]
fn perplexities_come_from_files() {
    let folder = folder(&[
        ("human.txt", HUMAN),
        ("lively.txt", LIVELY),
        ("one.json", &perplexity(9.5, 100)),
        ("two.json", &perplexity(11.0, 100)),
        ("other.json", &perplexity(11.0, 101)),
        ("nan.json", &perplexity(0.0, 100)),
        ("null.json", &perplexity(9.5, 100).replace("9.5", "null")),
        ("words.json", &perplexity(9.5, 100).replace(":20,", ":null,")),
        ("marked.json", &format!("\u{feff}{}", perplexity(9.5, 100))),
    ]);
    let eval = |ppl: &str| {
        let arguments =
            format!("eval --hyps human.txt lively.txt --refs human.txt --ppl {ppl} --json");
        folder.f2(&arguments.split_whitespace().collect::<Vec<_>>())
    };
    let by_number = eval("9.5 11");
    for given in ["one.json two.json", "9.5 two.json", "words.json two.json", "marked.json 11"] {
        let run = eval(given);
        assert_eq!((run.stdout, run.stderr.as_str()), (by_number.stdout.clone(), ""), "{given}");
    }
    let unlike = eval("one.json other.json");
    assert_eq!(unlike.stdout, by_number.stdout);
    assert!(unlike.stderr.contains("and not comparable"), "{}", unlike.stderr);
    for (given, code, words) in [
        ("absent.json two.json", 3, "cannot read absent.json"),
        ("human.txt two.json", 3, "human.txt: this is no perplexity"),
        ("nan.json two.json", 3, "0 is below 1"),
        ("null.json two.json", 3, "nats per token is too large for a number"),
        ("0.5 11", 2, "expected a number from 1 up"),
    ] {
        let run = eval(given);
        assert_eq!(run.code, code, "{given}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{given}: {}", run.stderr);
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let marked = |text: &str| format!("\u{feff}{text}");
    let folder = folder(&[
        ("refs.txt", HUMAN),
        ("plain.txt", HUMAN),
        ("marked.txt", &marked(HUMAN)),
        ("refs.jsonl", HUMAN_IDS),
        ("plain.jsonl", HUMAN_IDS),
        ("marked.jsonl", &marked(HUMAN_IDS)),
    ]);
    for ending in ["txt", "jsonl"] {
        let score = |name: &str| {
            let arguments = format!("eval --hyps {name}.{ending} --refs refs.{ending} --json");
            f2(&folder, &arguments).replace(name, "")
        };
        assert_eq!(score("marked"), score("plain"));
        assert!(score("marked").contains("exit code: 0"), "{}", score("marked"));
    }
}

/// The standard output of a command.
fn stdout(folder: &Folder, arguments: &str) -> String {
    let shown = f2(folder, arguments);
    let after = shown.split("--- stdout\n").nth(1).unwrap_or_else(|| panic!("{shown}"));
    after.split("--- stderr").next().unwrap().to_owned()
}

/// Ten sentences that differ from others by their first word.
fn ten(word: &str) -> String {
    (0..10).map(|n| format!("{word} {n} goes {} and comes {} again\n", n % 3, n % 4)).collect()
}

#[test]
fn two_models_are_told_apart_in_pairs_and_human_text_is_its_own_ceiling() {
    let (human, mle, f2) = (ten("she"), ten("it"), ten("she"));
    let folder = folder(&[("human.txt", &human), ("mle.txt", &mle), ("f2.txt", &f2)]);
    let printed = stdout(
        &folder,
        "eval --hyps mle.txt f2.txt --refs human.txt --words --orders 2 --bootstrap 50 --json",
    );
    let records: Vec<serde_json::Value> = serde_json::from_str(&printed).unwrap();
    assert!(records[0]["differences"].is_null());
    let difference = &records[1]["differences"][0];
    assert_eq!(difference["to"], "mle");
    assert!(difference["kld"][1].as_f64().unwrap() < 0.0, "{difference}");
    // Neither model repeats anything in any sample.
    assert_eq!(difference["rep"], serde_json::json!([0.0, 0.0]));
    let half = |record: &serde_json::Value| record["half"]["kld"].as_f64().unwrap();
    let ceiling = &records[0]["human"];
    assert_eq!(ceiling["half"]["texts"], 5);
    assert!(half(ceiling) < half(&records[0]));
    assert_eq!(half(ceiling), half(&records[1]), "the same texts");
    let table = stdout(&folder, "eval --hyps mle.txt --refs human.txt --words --orders 1");
    assert!(table.contains("human, other half: KLD "), "{table}");
}

/// The single JSON value that a command prints.
fn json(folder: &Folder, arguments: &str) -> serde_json::Value {
    let run = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains("NaN"), "{}", run.stdout);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn further_metrics_are_chosen_by_name() {
    let folder = folder(&[("human.txt", HUMAN), ("looping.txt", LOOPING), ("lively.txt", LIVELY)]);
    let table = "eval --hyps looping.txt lively.txt --refs human.txt --metrics";
    assert_snapshot!("chosen", f2(&folder, &format!("{table} rep,mattr,rep_n --markdown")));
    let arguments = format!("{table} mattr,zipf --bootstrap 50 --csv");
    assert_snapshot!("chosen-intervals", f2(&folder, &arguments));
    let seven = json(&folder, "eval --hyps lively.txt --refs human.txt --json");
    let mut all = json(&folder, "eval --hyps lively.txt --refs human.txt --metrics all --json");
    let further = all["further"].take();
    assert_eq!(further["rep_n"]["4"], 0.0);
    assert!(further["compression_ratio"].as_f64().unwrap() > 0.5);
    assert_eq!(further["novelty"]["2"], serde_json::Value::Null);
    // The further metrics do not change the seven.
    for key in ["kld", "ms_jaccard", "self_bleu", "distinct", "rep", "uniq"] {
        assert_eq!(all[key], seven[key], "{key}");
    }
    assert_eq!(seven.get("further"), None);
}

#[test]
fn what_a_metric_needs_is_said() {
    let folder = folder(&[("model.jsonl", MODEL_IDS), ("one.txt", "\n"), ("human.txt", HUMAN)]);
    let run = folder.f2(&["eval", "--hyps", "model.jsonl", "--metrics", "all", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for remark in [
        "PPL needs the models: give them with `--models` and `--corpus`",
        "KLD needs references: give them with `--refs`",
        "Compression ratio needs the texts as strings",
        "Novelty needs the training text; name the corpus",
        "MAUVE needs references, and a model",
        "Coherence needs the prompts",
    ] {
        assert!(run.stderr.contains(remark), "{remark}: {}", run.stderr);
    }
    // For a single empty text no metric is defined, which is not an error.
    let empty = json(&folder, "eval --hyps one.txt --refs human.txt --metrics all --json");
    assert_eq!(empty["further"]["zipf"], serde_json::Value::Null);
    for (arguments, code, words) in [
        ("--hyps human.txt --metrics bleurt", 2, "invalid value 'bleurt'"),
        ("--hyps human.txt --models run", 2, "--corpus"),
        ("--hyps human.txt --metrics novelty --corpus human.txt", 2, "is a file, not a corpus"),
        ("--hyps human.txt --metrics novelty --corpus absent", 3, "absent"),
        ("--hyps human.txt --metrics coherence --embedder absent", 3, "absent"),
        ("--hyps human.txt --models a b --corpus c", 2, "--models has 2 values for 1 files"),
    ] {
        let words_of = format!("eval {arguments}");
        let run = folder.f2(&words_of.split_whitespace().collect::<Vec<_>>());
        assert_eq!(run.code, code, "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{arguments}: {}", run.stderr);
    }
}

/// A corpus, a model trained on it and its texts: perplexity, novelty, MAUVE and coherence.
#[test]
fn models_and_their_corpus_are_read() {
    let folder = folder(&[
        ("train.txt", &HUMAN.repeat(60)),
        ("test.txt", &HUMAN.repeat(20)),
        ("other.txt", &LOOPING.repeat(30)),
    ]);
    let run = |arguments: &str| {
        let run = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{arguments}: {}", run.stderr);
        run
    };
    let lines = "--documents lines --vocab-size 300";
    run(&format!(
        "prepare --train train.txt --valid test.txt --test test.txt {lines} --out corpus"
    ));
    run(&format!("prepare --train other.txt {lines} --out other"));
    folder.write("small.toml", small_settings(24));
    run("train corpus --config small.toml --objective mle --steps 4 --device cpu --out run");
    run("generate run --corpus corpus --protocol paper --streams 2 --prefix 4 --continuation 12 \
         --device cpu --out f2.jsonl --references human.jsonl");
    let perplexity = run("perplexity run corpus --json --device cpu").stdout;
    let perplexity: serde_json::Value = serde_json::from_str(&perplexity).unwrap();
    let scores = json(
        &folder,
        "eval --hyps f2.jsonl --refs human.jsonl --metrics all --models run --corpus corpus \
         --embedder run --device cpu --json",
    );
    assert_eq!(scores["ppl"], perplexity["token_perplexity"]);
    let further = &scores["further"];
    for key in ["compression_ratio", "longest_match", "vendi", "mauve", "coherence"] {
        assert!(further[key].is_number(), "{key}: {further}");
    }
    // The lines are repeated, so every n-gram of the test split is in the training split, too.
    assert_eq!(scores["human"]["further"]["novelty"]["4"], 0.0);
    assert_eq!(scores["human"]["further"].get("mauve"), None);
    let itself = json(
        &folder,
        "eval --hyps human.jsonl --refs human.jsonl --metrics mauve --embedder run --device cpu --json",
    );
    assert!(itself["further"]["mauve"].as_f64().unwrap() > 0.99, "{itself}");
    // The tokenizer of another corpus is refused.
    let arguments = "eval --hyps train.txt --metrics novelty --corpus corpus \
                     --tokenizer other/tokenizer.json";
    let refused = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("is not the tokenizer of corpus"), "{}", refused.stderr);
    let known = json(
        &folder,
        "eval --hyps train.txt --metrics novelty --corpus corpus \
         --tokenizer corpus/tokenizer.json --json",
    );
    assert_eq!(known["further"]["novelty"]["2"], 0.0);
}
