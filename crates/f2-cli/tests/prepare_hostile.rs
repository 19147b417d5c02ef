//! `f2 prepare` and `f2 classes` with hostile input: mixed corpora, links, pipes, endless files,
//! extreme numbers, and kills.

mod support;

use std::process::Command;

use support::{Folder, Run};

fn text() -> String {
    (0..40).map(|number| format!("the cat sat on mat {number}\nand slept\n\n")).collect()
}

fn prepared(folder: &Folder, name: &str, text: &str) {
    folder.write(&format!("{name}.txt"), text);
    let file = format!("{name}.txt");
    let run = folder.f2(&["prepare", &file, "--vocab-size", "280", "--out", name]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Runs a line of bash in the folder; `f2` is the program.
fn bash(folder: &Folder, script: &str) -> Run {
    let script = format!("f2() {{ {} \"$@\"; }}; {script}", env!("CARGO_BIN_EXE_f2"));
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(folder.path(""));
    shell.output().unwrap().into()
}

#[test]
fn files_of_another_corpus_are_refused() {
    let folder = Folder::new();
    prepared(&folder, "ours", &text());
    prepared(&folder, "theirs", &text().replace("cat", "rat"));
    assert_eq!(folder.f2(&["classes", "ours"]).code, 0);
    for (name, verb) in [
        ("tokenizer.json", &["classes", "ours"][..]),
        ("counts.json", &["classes", "ours"]),
        ("train.bin", &["train", "ours", "--out", "run"]),
        ("manifest.json", &["train", "ours", "--out", "run"]),
    ] {
        let path = folder.path(&format!("ours/{name}"));
        let own = std::fs::read(&path).unwrap();
        std::fs::copy(folder.path(&format!("theirs/{name}")), &path).unwrap();
        let run = folder.f2(verb);
        assert_eq!(run.code, 3, "{name}: {}", run.stderr);
        assert!(run.stderr.contains("f2 prepare"), "{}", run.stderr);
        std::fs::write(path, own).unwrap();
    }
    assert_eq!(folder.f2(&["classes", "ours"]).code, 0);
}

#[test]
fn output_goes_through_links_and_into_pipes() {
    let folder = Folder::new();
    folder.write("counts.json", "[3, 2, 1]");
    let run = bash(
        &folder,
        "ln -s kept.json link.json; f2 classes --counts counts.json --json --out link.json >/dev/null \
         && test -L link.json && f2 classes --counts counts.json --out /dev/stdout | grep -c version \
         && mkfifo pipe && { f2 classes --counts counts.json --out pipe >/dev/null & cat pipe; wait $!; }",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("1\n"), "{}", run.stdout);
    assert_eq!(run.stdout[2..], folder.read("kept.json"));
    assert_eq!(folder.names(), ["counts.json", "kept.json", "link.json", "pipe"]);
}

#[test]
fn appending_to_a_file_through_standard_output_keeps_it() {
    let folder = Folder::new();
    folder.write("counts.json", "[3, 2, 1]");
    folder.write("log", "before\n");
    let run = bash(&folder, "f2 classes --counts counts.json --out /dev/stdout --json >> log");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(folder.read("log").starts_with("before\n{"), "{}", folder.read("log"));
}

#[test]
fn force_replaces_a_corpus_and_nothing_else() {
    let folder = Folder::new();
    prepared(&folder, "corpus", &text());
    let again = ["prepare", "corpus.txt", "--vocab-size", "280", "--out", "corpus", "--force"];
    folder.write("corpus/thesis.txt", "years of work");
    let run = folder.f2(&again);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("corpus holds thesis.txt"), "{}", run.stderr);
    assert_eq!(folder.read("corpus/thesis.txt"), "years of work");
    std::fs::remove_file(folder.path("corpus/thesis.txt")).unwrap();
    assert_eq!(folder.f2(&["classes", "corpus"]).code, 0);
    assert_eq!(folder.f2(&again).code, 0);
    assert!(!folder.path("corpus/classes.json").exists());
    assert_eq!(folder.names(), ["corpus", "corpus.txt"]);
}

#[test]
fn a_corpus_being_made_by_another_process_is_left_alone() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    let lock = f2_files::Lock::beside(&folder.path("corpus")).unwrap();
    let prepare = ["prepare", "text.txt", "--vocab-size", "280", "--out", "corpus"];
    let run = folder.f2(&prepare);
    assert_eq!(run.code, 2, "{}", run.stderr);
    let holder = format!("corpus is in use by process {} on ", std::process::id());
    assert!(run.stderr.contains(&holder), "{}", run.stderr);
    drop(lock);
    assert_eq!(folder.f2(&prepare).code, 0);
    assert_eq!(folder.names(), ["corpus", "text.txt"]);
}

#[test]
fn tokenizers_the_library_panics_on_are_refused() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    let vocabulary = r#""vocab":{"a":0,"b":1,"ab":2}"#;
    for (model, reason) in [
        (format!(r#"{{"type":"BPE",{vocabulary},"merges":["ab ab"]}}"#), "abab"),
        (
            format!(
                r#"{{"type":"BPE","continuing_subword_prefix":"longer",{vocabulary},"merges":["a b"]}}"#
            ),
            "prefix",
        ),
        (
            r#"{"type":"WordLevel","vocab":{"a":4000000000},"unk_token":"a"}"#.to_owned(),
            "4000000000",
        ),
    ] {
        folder.write(
            "tokenizer.json",
            format!(r#"{{"version":"1.0","added_tokens":[],"model":{model}}}"#),
        );
        let run =
            folder.f2(&["prepare", "text.txt", "--tokenizer", "tokenizer.json", "--out", "corpus"]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert!(run.stderr.contains("not a usable tokenizer") && run.stderr.contains(reason));
    }
    folder.write("vocab.json", r#"{"a":0,"b":1,"ab":2}"#);
    folder.write("merges.txt", "#version: 0.2\nab ab\n");
    let pair =
        ["prepare", "text.txt", "--tokenizer", "vocab.json", "merges.txt", "--out", "corpus"];
    let run = folder.f2(&pair);
    assert_eq!(run.code, 3, "{}", run.stderr);
}

#[test]
fn a_vocabulary_and_its_merges_are_read_up_to_a_size_and_from_pipes() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    let alphabet: std::collections::BTreeMap<String, usize> =
        (0..128_u8).map(|byte| (char::from(byte).to_string(), byte.into())).collect();
    folder.write("vocab.json", serde_json::to_string(&alphabet).unwrap());
    folder.write("merges.txt", "#version: 0.2\n");
    for pair in [["/dev/zero", "merges.txt"], ["vocab.json", "/dev/zero"]] {
        let files = ["prepare", "text.txt", "--out", "corpus", "--tokenizer"];
        let run = folder.f2(&[&files[..], &pair].concat());
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert!(run.stderr.contains("cannot read /dev/zero: it has more than"), "{}", run.stderr);
    }
    let pipes = "f2 prepare text.txt --out piped --tokenizer <(cat vocab.json) <(cat merges.txt)";
    let files = "f2 prepare text.txt --out filed --tokenizer vocab.json merges.txt";
    for script in [pipes, files] {
        let run = bash(&folder, script);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    assert_eq!(folder.read("piped/tokenizer.json"), folder.read("filed/tokenizer.json"));
}

#[test]
fn any_vocabulary_size_can_be_requested() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    for size in ["1000000000", "18446744073709551615"] {
        let prepare = ["prepare", "text.txt", "--out", "corpus", "--force", "--vocab-size", size];
        let run = folder.f2(&prepare);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("of {size} tokens")), "{}", run.stderr);
    }
}

#[test]
fn documents_without_end_are_refused() {
    let folder = Folder::new();
    folder.write("zeros.txt.zst", zstd::encode_all(vec![0; 8 << 20].as_slice(), 0).unwrap());
    folder.write("line.txt", "a ".repeat(2 << 20));
    for input in ["zeros.txt.zst", "line.txt", "/dev/zero"] {
        let run = folder.f2(&["prepare", input, "--max-document", "1M", "--out", "corpus"]);
        assert_eq!(run.code, 4, "{}", run.stderr);
        let reason = format!("{input}: a document has more than 1048576 bytes");
        assert!(run.stderr.contains(&reason), "{}", run.stderr);
        assert!(run.stderr.contains("`--max-document`"), "{}", run.stderr);
    }
    assert_eq!(folder.names(), ["line.txt", "zeros.txt.zst"]);
    let run = folder.f2(&["prepare", "line.txt", "--max-document", "much", "--out", "corpus"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn pipes_are_copied_so_that_they_can_be_read_twice() {
    let folder = Folder::new();
    prepared(&folder, "file", &text());
    let run = bash(&folder, "f2 prepare <(cat file.txt) --vocab-size 280 --out corpus");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for name in ["train.bin", "tokenizer.json"] {
        let [ours, theirs] = ["corpus", "file"]
            .map(|corpus| std::fs::read(folder.path(&format!("{corpus}/{name}"))).unwrap());
        assert_eq!(ours, theirs, "{name}");
    }
    assert!(!folder.path("corpus/spool").exists());
}

#[test]
fn circles_of_links_and_pipes_in_a_folder_are_passed_by() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("texts")).unwrap();
    folder.write("texts/a.txt", text());
    let made = bash(&folder, "cd texts && ln -s . one && ln -s ../texts two && mkfifo pipe.txt");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let run = folder.f2(&["prepare", "texts", "--vocab-size", "280", "--out", "corpus", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let documents = result["splits"].as_array().unwrap().iter();
    assert_eq!(documents.map(|split| split["documents"].as_u64().unwrap()).sum::<u64>(), 40);
}

/// For every n, the n-th change to the disk fails or kills the program.
#[cfg(debug_assertions)]
#[test]
fn whatever_fails_leaves_the_old_corpus_or_the_new_one() {
    let folder = Folder::new();
    prepared(&folder, "corpus", &text());
    let old = folder.read("corpus/manifest.json");
    let renewed = ["prepare", "corpus.txt", "--vocab-size", "270", "--text", "--force", "--out"];
    assert_eq!(folder.f2(&[&renewed[..], &["model"]].concat()).code, 0);
    let new = folder.read("model/manifest.json");
    for kind in ["fail", "full", "kill"] {
        let struck = (1..).take_while(|number| {
            // The previous process may have been killed after it published the new corpus.
            if folder.read("corpus/manifest.json") != old {
                std::fs::remove_dir_all(folder.path("corpus")).unwrap();
                prepared(&folder, "corpus", &text());
            }
            let run = Command::new(env!("CARGO_BIN_EXE_f2"))
                .args(renewed)
                .args(["corpus", "--threads", "1"])
                .env(f2_files::fault::PLAN, format!("{kind}:{number}"))
                .current_dir(folder.path(""))
                .output()
                .unwrap();
            let run = Run::from(run);
            let found = folder.read("corpus/manifest.json");
            assert!(found == old || found == new, "{kind}:{number}: {}", run.stderr);
            if run.code == 0 {
                assert_eq!(found, new, "{kind}:{number}");
            }
            if kind == "fail" && run.code != 0 {
                assert_eq!(run.code, 4, "{kind}:{number}: {}", run.stderr);
            }
            let corpus = f2_corpus::Corpus::open(&folder.path("corpus")).unwrap();
            corpus.tokenizer().unwrap();
            corpus.counts().unwrap();
            for split in f2_corpus::Split::ALL {
                corpus.shard(split).unwrap();
            }
            run.stderr.contains("fault:")
        });
        assert!(struck.count() > 20, "{kind}");
    }
    // The last runs succeeded and removed the leftovers of the killed ones.
    assert_eq!(folder.names(), ["corpus", "corpus.txt", "model"]);
}

/// Kills, signals and full disks at random moments, for some rounds or for `F2_SOAK_SECONDS`: a
/// corpus that is being replaced is the old one or the new one, and the next undisturbed run makes
/// the new one.
#[cfg(target_os = "linux")]
#[test]
fn no_moment_to_be_killed_is_a_bad_one() {
    let folder = Folder::new();
    prepared(&folder, "corpus", &support::invented_text(400));
    let old = folder.read("corpus/manifest.json");
    let renewed = "prepare corpus.txt --vocab-size 500 --text --force --out";
    let undisturbed = |out: &str| {
        let run = folder.f2(&renewed.split(' ').chain([out]).collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{}", run.stderr);
        folder.read(&format!("{out}/manifest.json"))
    };
    let new = undisturbed("model");
    let seconds = std::env::var("F2_SOAK_SECONDS").ok().and_then(|text| text.parse::<u64>().ok());
    let begun = std::time::Instant::now();
    let mut state = 7_u64;
    for round in 0_u32.. {
        let done = seconds.map_or(round >= 10, |seconds| begun.elapsed().as_secs() >= seconds);
        if done {
            break;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (signal, wait) =
            (["KILL", "INT", "TERM", "XFSZ"][(state >> 40) as usize % 4], state >> 33);
        // A limit on the size of files stands in for a full disk.
        let limit = if signal == "XFSZ" {
            format!("trap '' XFSZ; ulimit -f {};", wait % 64)
        } else {
            String::new()
        };
        let script = format!(
            "{limit} {} {renewed} corpus & sleep 0.{:03}; kill -{} $! 2>/dev/null; wait $!",
            env!("CARGO_BIN_EXE_f2"),
            wait % 400,
            if limit.is_empty() { signal } else { "0" },
        );
        bash(&folder, &script);
        let found = folder.read("corpus/manifest.json");
        assert!(found == old || found == new, "round {round}, {signal}");
        let corpus = f2_corpus::Corpus::open(&folder.path("corpus")).unwrap();
        corpus.tokenizer().unwrap();
        for split in f2_corpus::Split::ALL {
            corpus.shard(split).unwrap();
        }
    }
    assert_eq!(undisturbed("corpus"), new);
    assert_eq!(folder.names(), ["corpus", "corpus.txt", "model"]);
}

#[test]
fn even_counts_of_a_large_vocabulary_get_classes() {
    let folder = Folder::new();
    folder.write("counts.json", format!("[1{}]", ", 1".repeat(199_999)));
    let run = folder.f2(&["classes", "--counts", "counts.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("K = 1 for 200000 tokens"), "{}", run.stdout);
}
