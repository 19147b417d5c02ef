//! The output of `f2 compare`, and its errors on bad input.

mod support;

use insta::assert_snapshot;
use support::transcript::{f2, folder};

const PAPER: &str = include_str!("fixtures/paper_greedy.json");

#[test]
fn the_paper_s_ranking_from_the_paper_s_table() {
    let folder = folder(&[("paper.json", PAPER)]);
    assert_snapshot!("paper", f2(&folder, "compare paper.json"));
    assert_snapshot!("paper-json", f2(&folder, "compare paper.json --json"));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_result() {
    let folder = folder(&[("plain.json", PAPER), ("marked.json", &format!("\u{feff}{PAPER}"))]);
    let compare = |name: &str| f2(&folder, &format!("compare {name}.json")).replace(name, "");
    assert_eq!(compare("marked"), compare("plain"));
}

#[test]
fn results_of_eval_are_what_compare_reads() {
    let folder = folder(&[
        ("human.txt", "the cat sat on the mat and slept\nthe dog sat on a hill and sang\n"),
        ("a.txt", "the cat sat on a hill and sang\nthe dog sat on the mat and slept\n"),
        ("b.txt", "the cat the cat the cat the cat\nthe the the the the the the the\n"),
    ]);
    for (name, ppl) in [("a", 12), ("b", 11)] {
        let arguments =
            format!("eval --hyps {name}.txt --refs human.txt --words --ppl {ppl} --json");
        let run = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
        folder.write(&format!("{name}.json"), run.stdout);
    }
    assert_snapshot!(f2(&folder, "compare a.json b.json --markdown"));
}

#[test]
fn bad_input_is_refused_with_place_and_advice() {
    let human = r#"{"self_bleu":[0.9],"distinct":[0.8],"rep":0.0,"uniq":9}"#;
    let result = |name: &str, more: &str| {
        format!(r#"{{"name":"{name}","convention":"paper","kld":1.0{more}}}"#)
    };
    let with_human = format!(r#","human":{human}"#);
    let other_human = r#","human":{"self_bleu":[0.7],"distinct":[0.8],"rep":0.0,"uniq":9}"#;
    let textbook = result("b", &with_human).replace("paper", "textbook");
    let folder = folder(&[
        ("a.json", &result("a", &with_human)),
        ("b.json", &result("b", &with_human)),
        ("no-human.json", &result("b", "")),
        ("other-human.json", &result("b", other_human)),
        ("textbook.json", &textbook),
        ("broken.json", "{\"name\":"),
        ("nameless.json", "{\"kld\": 1.0}"),
    ]);
    let attempts = [
        "absent.json",
        "broken.json",
        "nameless.json",
        "a.json",
        "a.json a.json",
        "a.json no-human.json",
        "a.json other-human.json",
        "a.json textbook.json",
        "a.json b.json",
        "a.json b.json --csv --json",
    ];
    let shown = attempts.map(|attempt| f2(&folder, &format!("compare {attempt}")));
    assert_snapshot!(shown.join("\n"));
}
