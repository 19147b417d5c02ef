//! `f2 report` on various kinds of results.

mod support;

use support::Folder;

const SCORES: &str = r#"[
  {"name": "MLE", "convention": "paper", "kld": 1.5, "uniq": 8},
  {"name": "F²-Softmax", "convention": "paper", "kld": 0.6, "uniq": 15}
]"#;

#[test]
fn results_that_lie_in_a_folder_become_a_page() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/scores.json", SCORES);
    folder.write("mine/notes.json", "{\"anything\": 1}");
    let run = folder.f2(&["report", "mine", "--title", "Two <models>"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "report: mine/report.html\ntables: 1, figures: 0\n")
    );
    assert_eq!(run.stderr, "note: mine/notes.json holds no result and is left out\n");
    let page = folder.read("mine/report.html");
    assert!(page.contains("<h1>Two &lt;models&gt;</h1>"));
    assert!(folder.read("mine/tables/scores.csv").contains("F²-Softmax,0.60"));
}

#[test]
fn a_page_can_be_made_again_from_its_results() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("study")).unwrap();
    let results = r#"{"version": 1, "made_by": "f2 0.1.0", "title": "Study", "remarks": ["so"]}"#;
    folder.write("study/results.json", results);
    let run = folder.f2(&["report", "study", "--out", "page", "--json"]);
    assert_eq!(run.stdout, "{\"figures\":[],\"report\":\"page/report.html\",\"tables\":[]}\n");
    assert!(folder.read("page/report.html").contains("<p class=\"lead\">so</p>"));
}

#[test]
fn what_is_no_result_is_refused_with_advice() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    std::fs::create_dir(folder.path("later")).unwrap();
    folder.write("later/results.json", "{\"version\": 9, \"new\": true}");
    std::fs::create_dir(folder.path("broken")).unwrap();
    folder.write("broken/results.json", "{\"version\": 1");
    std::fs::create_dir(folder.path("mixed")).unwrap();
    folder.write("mixed/a.json", SCORES);
    folder.write("mixed/b.json", r#"{"name": "MLE", "set": "valid", "convention": "textbook"}"#);
    let said = ["empty", "later", "broken", "missing", "mixed"].map(|name| {
        let run = folder.f2(&["report", name]);
        format!("exit code {}\n{}", run.code, run.stderr)
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_page_that_cannot_be_written_loses_nothing() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/scores.json", SCORES);
    folder.write("page", "a file in the way");
    let run = folder.f2(&["report", "mine", "--out", "page"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert_eq!(folder.read("page"), "a file in the way");
}
