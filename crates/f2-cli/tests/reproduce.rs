//! `f2 reproduce` from text to tables: undisturbed, killed, with a changed plan, with bad input.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use support::{Folder, Run, interrupt, invented_text, wait_for};

/// A plan with every part of the paper, as small as possible.
const PLAN: &str = r#"
paper = "wikitext103"
vocabulary = 300
models = ["mle", "face", "unlikelihood", "unlikelihood-sequence", "f2"]

[training]
preset = "demo"
steps = 3
fine_tuning_steps = 2

[training.settings]
"model.layers" = 1
"model.width" = 16
"model.heads" = 2
"model.feed_forward" = 32
"batch.sequence" = 160
"batch.size" = 2
"schedule.warmup_steps" = 1

[generation]
k = 3
other_k = [5]
greedy = true
joint = true
class_nuclei = [0.9]
authors_program = true
streams = 4
prefix = 8
continuation = 16

[ablation]
methods = ["exact"]
equal_k = [2]

[evaluation]
bootstrap = 3
samples = 2
"#;

/// The plan with two models only.
fn two_models() -> String {
    let all = "models = [\"mle\", \"face\", \"unlikelihood\", \"unlikelihood-sequence\", \"f2\"]";
    assert!(PLAN.contains(all));
    PLAN.replace(all, "models = [\"mle\", \"f2\"]")
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("novel.txt", invented_text(500));
    folder.write("news.txt", invented_text(300).replace("ka", "zu"));
    folder.write("plan.toml", PLAN);
    folder
}

const COMMAND: [&str; 8] =
    ["reproduce", "novel.txt", "--plan", "plan.toml", "--out", "study", "--pretrain", "news.txt"];

fn reproduce(folder: &Folder, more: &[&str]) -> Run {
    folder.f2(&[&COMMAND[..], more].concat())
}

/// All tables except those with times.
fn tables(folder: &Folder) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder.path("study/tables")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("training.") && !name.starts_with("transfer-training."))
        .map(|name| (name.clone(), folder.read(&format!("study/tables/{name}"))))
        .collect()
}

#[test]
fn everything_is_made_once_and_killing_changes_nothing() {
    let whole = folder();
    let run = reproduce(&whole, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stderr.contains("done before"), "{}", run.stderr);
    let expected = tables(&whole);
    for name in ["scores", "scores-greedy", "scores-top-5", "pairwise", "ranking", "bands"]
        .into_iter()
        .chain(["decoupling", "class-nucleus", "class-methods", "very-rare", "corpus", "settings"])
        .chain(["transfer"])
    {
        assert!(expected.contains_key(&format!("{name}.tex")), "{name}");
    }
    for name in ["MLE", "FACE", "UL-token", "UL-token+seq", "F²-Softmax", "Human"] {
        assert!(expected["scores.csv"].contains(&format!("\n{name},")), "{name}");
    }
    assert!(whole.path("study/figures/classes-kld.svg").exists());

    // A second run has nothing left to do.
    let again = reproduce(&whole, &[]);
    assert!(!again.stderr.contains("\n$ f2"), "{}", again.stderr);
    assert_eq!(tables(&whole), expected);

    let killed = folder();
    kill_again_and_again(&killed);
    let run = reproduce(&killed, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(tables(&killed), expected);
}

/// Starts the study several times and kills or interrupts it at work, once it has written a few
/// more files than there were, in each round some more.
fn kill_again_and_again(folder: &Folder) {
    for round in 1..=8 {
        let stages = folder.path("study/stages");
        let enough = files(&stages) + 5 * round;
        let mut child = folder.start(&COMMAND);
        wait_for(|| files(&stages) >= enough || child.try_wait().unwrap().is_some());
        if cfg!(unix) && round % 2 == 0 && child.try_wait().unwrap().is_none() {
            let code = interrupt(child).code;
            assert!([0, 130].contains(&code), "{code}");
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The number of files below a folder.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn transfer_can_be_had_alone_from_text_and_from_corpora() {
    let folder = folder();
    let run = reproduce(&folder, &["--only", "transfer"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for said in ["train-pretrained", "train-from-scratch", "train-transferred", "score-transfer"] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("] prepare;") && !run.stderr.contains("train-mle"));
    let table = folder.read("study/tables/transfer.csv");
    let rows: Vec<&str> = table.lines().filter_map(|line| line.split(',').next()).collect();
    let paper = ["From scratch", "\"From scratch", "Transferred", "\"Transferred"];
    assert_eq!(rows[1..5], paper, "{table}");
    assert!(
        run.stdout.contains("Pretrained on news, F² reaches a test perplexity of"),
        "{}",
        run.stdout
    );

    // A corpus keeps its tokenizer, which the pretraining uses as well.
    let prepare = ["prepare", "novel.txt", "--vocab-size", "300", "--out", "corpus"];
    assert_eq!(folder.f2(&prepare).code, 0);
    let arguments = ["reproduce", "corpus", "--only", "transfer", "--plan", "plan.toml"];
    let more = ["--pretrain", "news.txt", "--out", "other"];
    let run = folder.f2(&[&arguments[..], &more[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("$ f2 prepare news.txt --tokenizer corpus/tokenizer.json"));
}

#[test]
fn a_plan_names_the_text_to_pretrain_on() {
    let folder = folder();
    std::fs::create_dir(folder.path("plans")).unwrap();
    let transfer = "[transfer]\npretrain = [\"../news.txt\"]\npretraining_steps = 5\n";
    folder.write("plans/mine.toml", format!("{PLAN}\n{transfer}"));
    let arguments = ["reproduce", "novel.txt", "--plan", "plans/mine.toml", "--dry-run", "--json"];
    let run = folder.f2(&arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("f2 prepare plans/../news.txt --vocab-size 300"), "{}", run.stdout);
    assert!(run.stdout.contains("--objective mle --seed 0 --steps 5 "), "{}", run.stdout);

    // Without a text to pretrain on, transfer is left out, with a note.
    let tiny = folder.f2(&["reproduce", "novel.txt", "--preset", "tiny", "--dry-run"]);
    assert!(!tiny.stdout.contains("transfer"), "{}", tiny.stdout);
    assert!(tiny.stderr.contains("note: transfer is left out"), "{}", tiny.stderr);
}

#[test]
fn a_changed_plan_redoes_only_what_it_must() {
    let folder = folder();
    folder.write("plan.toml", two_models());
    assert_eq!(reproduce(&folder, &["--only", "main"]).code, 0);
    folder.write("plan.toml", two_models().replace("\nk = 3", "\nk = 4"));
    let run = reproduce(&folder, &["--only", "main"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let typed: Vec<&str> = run
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("$ f2 "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(typed, ["generate", "generate", "eval"]);
}

#[test]
fn what_a_stage_made_and_lost_is_made_again() {
    let folder = folder();
    folder.write("plan.toml", two_models());
    let only = ["--only", "decoupling"];
    assert_eq!(reproduce(&folder, &only).code, 0);
    let stages = std::fs::read_dir(folder.path("study/stages")).unwrap();
    let classes = stages
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("/classes-greedy-"))
        .unwrap();
    std::fs::remove_file(classes.join("classes.json")).unwrap();
    let run = reproduce(&folder, &only);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("$ f2 classes") && !run.stderr.contains("$ f2 train"));
}

#[test]
fn a_dry_run_lists_stages_and_makes_nothing() {
    let folder = folder();
    let run = reproduce(&folder, &["--dry-run"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for stage in ["prepare ", "train-unlikelihood-sequence ", "score-classes "] {
        assert!(run.stdout.contains(stage), "{}", run.stdout);
    }
    assert!(run.stdout.contains("to do: "), "{}", run.stdout);
    assert!(!folder.path("study").exists());
}

#[test]
fn bad_input_is_refused_with_advice() {
    let folder = folder();
    folder.write("short.txt", "a few words\n\nand a few more\n\nand an end\n");
    folder.write("typo.toml", PLAN.replace("greedy = true", "greddy = true"));
    folder.write("preset.toml", PLAN.replace("preset = \"demo\"", "preset = \"demos\""));
    folder.write("setting.toml", PLAN.replace("model.layers", "model.layer"));
    for (text, out) in [("novel.txt", "corpus"), ("news.txt", "other")] {
        assert_eq!(folder.f2(&["prepare", text, "--vocab-size", "300", "--out", out]).code, 0);
    }
    let cases = [
        "reproduce nowhere.txt --out x --plan plan.toml",
        "reproduce short.txt --out x --plan plan.toml",
        "reproduce novel.txt --out x --plan typo.toml",
        "reproduce novel.txt --out x --plan preset.toml",
        "reproduce novel.txt --out x --plan setting.toml",
        "reproduce novel.txt --out x --plan missing.toml",
        "reproduce novel.txt --out plan.toml/x --plan plan.toml",
        "reproduce novel.txt --out x --plan plan.toml --only transfer",
        "reproduce novel.txt --out x --plan plan.toml --pretrain nowhere.txt",
        "reproduce corpus --out x --plan plan.toml --pretrain other",
    ];
    let said = cases.map(|case| {
        let run = folder.f2(&case.split(' ').collect::<Vec<_>>());
        let errors = run.stderr.lines().skip_while(|line| !line.starts_with("error"));
        format!("$ f2 {case}\nexit code {}\n{}", run.code, errors.collect::<Vec<_>>().join("\n"))
    });
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn gpus_that_are_not_there_are_refused_before_anything_is_done() {
    let folder = folder();
    let run = reproduce(&folder, &["--gpus", "4096"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("4096 GPUs are requested by `--gpus`; "), "{}", run.stderr);
    let run = reproduce(&folder, &["--gpus", "1", "--device", "cpu"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    let run = reproduce(&folder, &["--gpus", "none"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("expected a number from 1 up, or `all`"), "{}", run.stderr);
    assert!(!folder.path("study").exists());
}
