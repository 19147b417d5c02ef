//! Commands that are refused, and their error messages.

use std::fs;

use f2_lm::run::{Pick, SavedModel};

use super::support::{Folder, Run};
use super::{done, generate, workshop};

#[test]
fn long_and_empty_prompts_are_reported() {
    let workshop = workshop();
    let long = "sol mira ken tolu ".repeat(30);
    let kept = generate(&["f2", "--prompt", &long, "--greedy", "--new-tokens", "3"]);
    assert!(kept.stderr.contains("its last 32 are kept"), "{}", kept.stderr);
    let refused = workshop.f2(&["generate", "f2", "--prompt", &long, "--strict"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("more than the 32 the model sees"), "{}", refused.stderr);
    // An empty prompt needs an end-of-text token, which the second tokenizer lacks.
    generate(&["f2", "--prompt", ""]);
    let bare = workshop.path("bare");
    fs::create_dir_all(&bare).unwrap();
    let checkpoint = fs::read_dir(workshop.path("mle/checkpoints")).unwrap().next().unwrap();
    for file in fs::read_dir(checkpoint.unwrap().path()).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "state.json" {
            fs::copy(file.path(), bare.join(file.file_name())).unwrap();
        }
    }
    let tokenizer = fs::read_to_string(bare.join("tokenizer.json")).unwrap();
    fs::write(bare.join("tokenizer.json"), tokenizer.replace("<|endoftext|>", "<|fin|>")).unwrap();
    let refused = workshop.f2(&["generate", "bare", "--prompt", ""]);
    assert_eq!(refused.code, 2);
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn mistakes_are_reported_with_advice() {
    let workshop = workshop();
    workshop.write("bad.jsonl", "{\"text\":\"sol\"}\n{\"text\":3}\n");
    workshop.write("none.jsonl", "{\"words\":\"sol\"}\n");
    workshop.write("empty.txt", "");
    workshop.write("outside.jsonl", "{\"ids\":[4,999]}\n");
    workshop.write("sol.txt", "sol mira ken ".repeat(300));
    let single = ["prepare", "--train", "text.txt", "--test", "sol.txt", "--documents", "files"];
    done(workshop, &[&single[..], &["--vocab-size", "280", "--out", "single"]].concat());
    let train = ["train", "single", "--config", "small.toml", "--steps", "1", "--out", "step"];
    done(workshop, &[&train[..], &["--objective", "mle"]].concat());
    let refusal = |arguments: &[&str]| {
        let Run { code, stderr, .. } = workshop.f2(arguments);
        assert_ne!(code, 0, "{arguments:?}");
        let folder = workshop.path("").canonicalize().unwrap();
        let text = stderr.replace(&folder.display().to_string(), "HERE");
        format!("$ f2 {}\n[exit code {code}]\n{text}", arguments.join(" "))
    };
    let with = |model: &'static str, flags: &[&'static str]| {
        refusal(&[&["generate", model, "--prompt", "sol"], flags].concat())
    };
    let refused = [
        with("f2", &["--top-k", "0"]),
        with("f2", &["--top-k", "5000"]),
        with("f2", &["--top-p", "0"]),
        with("f2", &["--top-p", "1.5"]),
        with("f2", &["--temperature", "-1"]),
        with("f2", &["--class-top-p", "0"]),
        with("f2", &["--beam", "4", "--top-k", "3"]),
        with("f2", &["--beam", "0"]),
        with("f2", &["--beam", "2", "-n", "3"]),
        with("f2", &["--beam", "4", "--beam-groups", "3"]),
        with("f2", &["--beam", "4", "--beam-groups", "2", "--diversity", "-1"]),
        with("f2", &["--beam", "4", "--length-penalty", "nan"]),
        with("f2", &["--min-p", "2"]),
        with("f2", &["--typical", "nan"]),
        with("f2", &["--repetition-penalty", "0.5"]),
        with("f2", &["--top-n-sigma", "-1"]),
        with("f2", &["--epsilon-cutoff", "2"]),
        with("f2", &["--eta-cutoff", "0"]),
        with("f2", &["--mirostat-tau", "0"]),
        with("f2", &["--mirostat-tau", "5", "--mirostat-eta", "-1"]),
        with("f2", &["--mirostat-tau", "5", "--top-k", "3"]),
        with("f2", &["--mirostat-tau", "5", "--beam", "4"]),
        with("f2", &["--xtc-probability", "2"]),
        with("f2", &["--xtc-probability", "0.5", "--xtc-threshold", "0.7"]),
        with("f2", &["--xtc-probability", "0.5", "--greedy"]),
        with("f2", &["--dry-multiplier", "0"]),
        with("f2", &["--dry-multiplier", "1", "--dry-base", "0.5"]),
        with("f2", &["--dry-multiplier", "1", "--dry-allowed-length", "0"]),
        with("f2", &["--penalty-alpha", "2"]),
        with("f2", &["--penalty-alpha", "0.6", "--top-k", "0"]),
        with("f2", &["--penalty-alpha", "0.6", "--top-p", "0.9"]),
        with("f2", &["--penalty-alpha", "0.6", "--beam", "4"]),
        with("f2", &["--beam", "4", "--beam-iterations", "0"]),
        with("f2", &["--contrast", "mle", "--contrast-alpha", "0"]),
        with("f2", &["--contrast", "mle", "--amateur-temperature", "0"]),
        with("f2", &["--contrast", "mle", "--mirostat-tau", "5"]),
        with("f2", &["--contrast", "step"]),
        with("f2", &["--contrast", "absent"]),
        with("f2", &["--class-temperature", "-1"]),
        with("f2", &["--class-top-k", "5"]),
        with("f2", &["--small-class", "fill", "--top-p", "0.9"]),
        with("f2", &["--top-k-growth", "0.5", "--top-p", "0.9"]),
        with("f2", &["--top-k-growth", "-1"]),
        with("mle", &["--top-k-growth", "0.5"]),
        with("f2", &["--checkpoint", "77"]),
        with("mle", &["--joint"]),
        with("mle", &["--class-top-p", "0.9"]),
        with("absent", &[]),
        with("corpus", &[]),
        refusal(&["generate", "f2", "--prompts", "absent.txt"]),
        refusal(&["generate", "f2", "--prompts", "bad.jsonl"]),
        refusal(&["generate", "f2", "--prompts", "none.jsonl"]),
        refusal(&["generate", "f2", "--prompts", "outside.jsonl"]),
        refusal(&["generate", "f2"]),
        refusal(&["generate", "f2", "--corpus", "corpus", "--protocol", "paper"]),
        refusal(&["generate", "f2", "--corpus", "corpus", "--protocol", "lyrics"]),
        refusal(&["generate", "step", "--corpus", "single", "--protocol", "lyrics"]),
        refusal(&[
            "generate",
            "step",
            "--corpus",
            "single",
            "--protocol",
            "lyrics",
            "--streams",
            "4",
        ]),
        refusal(&["perplexity", "f2", "absent.txt"]),
        refusal(&["perplexity", "f2", "text.txt", "--window", "33"]),
        refusal(&["perplexity", "f2", "text.txt", "--stride", "0"]),
        refusal(&["perplexity", "f2", "empty.txt"]),
    ];
    assert!(refused.iter().all(|refused| refused.contains("\n  help: ")));
    insta::assert_snapshot!(refused.join("\n"));
}

/// A batch larger than any machine's memory is refused before anything is allocated.
#[test]
fn too_little_memory_is_reported_with_needed_and_available_bytes() {
    let many = (1_u64 << 62).to_string();
    let arguments = ["generate", "f2", "--prompt", "sol", "-n", &many, "--batch", &many];
    for more in [&[][..], &["--new-tokens", &many]] {
        let refused = workshop().f2(&[&arguments[..], more].concat());
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        assert!(refused.stderr.contains("\n  help: "), "{}", refused.stderr);
        if cfg!(target_os = "linux") {
            assert!(refused.stderr.contains("error: generation needs"), "{}", refused.stderr);
            assert!(refused.stderr.contains("GB are available"), "{}", refused.stderr);
        }
    }
}

#[test]
fn a_model_without_tokenizer_or_classes_is_refused() {
    let workshop = workshop();
    let checkpoint = fs::read_dir(workshop.path("f2/checkpoints")).unwrap().next().unwrap();
    let from = checkpoint.unwrap().path();
    for (name, missing) in [("no-tokenizer", "tokenizer.json"), ("no-classes", "classes.json")] {
        let to = workshop.path(name);
        fs::create_dir_all(&to).unwrap();
        for file in ["model.safetensors", "model.json", "tokenizer.json", "classes.json"] {
            if file != missing {
                fs::copy(from.join(file), to.join(file)).unwrap();
            }
        }
        let refused = workshop.f2(&["generate", name, "--prompt", "sol"]);
        assert_eq!(refused.code, 3);
        assert!(
            refused.stderr.contains(&format!("({missing}) is missing"))
                || refused.stderr.contains(&format!("({missing}) are missing")),
            "{}",
            refused.stderr
        );
    }
}

/// The number of texts is so large that a later check would never be reached.
#[test]
fn a_file_that_cannot_be_written_is_reported_before_the_first_token() {
    for place in ["absent/x.jsonl", "corpus"] {
        let arguments = ["generate", "f2", "--prompt", "sol", "-n", "1000000000", "--out", place];
        let refused = workshop().f2(&arguments);
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        assert!(refused.stderr.starts_with(&format!("error: cannot write {place}")));
    }
}

/// Saves a model with one parameter set to NaN.
fn ruin(model: &str, ruined: &str) -> &'static Folder {
    let workshop = workshop();
    let saved = SavedModel::open(&workshop.path(model), Pick::Best).unwrap();
    fs::create_dir(workshop.path(ruined)).unwrap();
    for name in ["model.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(saved.folder.join(name), workshop.path(ruined).join(name)).unwrap();
    }
    let path = workshop.path(ruined).join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(path, bytes).unwrap();
    workshop
}

#[test]
fn a_model_with_a_parameter_that_is_no_number_is_refused() {
    let workshop = ruin("mle", "ruined");
    for arguments in [
        &["perplexity", "ruined", "corpus"][..],
        &["generate", "ruined", "--prompt", "sol"],
        &["export", "ruined", "--out", "exported"],
        &["train", "corpus", "--init", "ruined", "--out", "run", "--steps", "1"],
    ] {
        let refused = workshop.f2(arguments);
        assert_eq!(refused.code, 3, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("holds NaN at place"), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
}

#[test]
fn texts_without_end_are_refused() {
    let workshop = workshop();
    workshop.write("zeros.txt.zst", zstd::encode_all(vec![0; 17 << 20].as_slice(), 0).unwrap());
    for endless in ["zeros.txt.zst", "/dev/zero"] {
        for arguments in [
            &["generate", "f2", "--prompts", endless][..],
            &["eval", "--hyps", endless, "--refs", "text.txt"],
        ] {
            let Run { code, stderr, .. } = workshop.f2(arguments);
            assert_eq!(code, 4, "{arguments:?}: {stderr}");
            let reason = format!("{endless}, line 1: the line has more than 16777216 bytes");
            assert!(stderr.contains(&reason), "{arguments:?}: {stderr}");
        }
    }
    let Run { code, stderr, .. } = workshop.f2(&["perplexity", "f2", "/dev/zero"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("/dev/zero: it has more than 268435456 bytes"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn files_without_end_are_refused() {
    let workshop = workshop();
    for arguments in [
        &["train", "corpus", "--config", "/dev/zero", "--out", "run"][..],
        &["compare", "/dev/zero"],
        &["prepare", "text.txt", "--tokenizer", "/dev/zero", "--out", "other"],
    ] {
        let Run { code, stderr, .. } = workshop.f2(arguments);
        assert_eq!(code, 3, "{arguments:?}: {stderr}");
        let reason = "/dev/zero: it has more than 1073741824 bytes";
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}
