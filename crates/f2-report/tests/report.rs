//! What a report promises to those who read it.

mod invented;

use f2_metrics::Convention;
use f2_report::{Report, Results, definitions};

#[test]
fn an_empty_experiment_has_an_empty_report() {
    let report = Report::new(&Results::new("Nothing <yet>"));
    assert!(report.sections.is_empty() && report.tiles.is_empty());
    assert!(report.to_html().contains("<title>Nothing &lt;yet&gt;</title>"));
}

#[test]
fn every_part_of_the_results_is_shown() {
    let report = Report::new(&invented::results());
    let sections: Vec<&str> = report.sections.iter().map(|section| section.id).collect();
    let all = [
        "scores",
        "bands",
        "samples",
        "decoding",
        "matches",
        "ablations",
        "transfer",
        "training",
        "classes",
        "corpus",
        "settings",
    ];
    assert_eq!(sections, all);
    let tables: Vec<&str> = report.tables().map(|table| table.name.as_str()).collect();
    for name in ["scores-greedy", "scores-top-20", "decoupling", "class-nucleus", "very-rare"] {
        assert!(tables.contains(&name), "{name} of {tables:?}");
    }
}

#[test]
fn names_of_tables_and_figures_are_different_files() {
    let report = Report::new(&invented::results());
    for mut names in [
        report.tables().map(|table| &table.name).collect::<Vec<_>>(),
        report.figures().map(|figure| &figure.name).collect::<Vec<_>>(),
    ] {
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}

#[test]
fn transfer_stands_beside_training_from_scratch_and_the_paper() {
    let report = Report::new(&invented::results());
    let table = report.tables().find(|table| table.name == "transfer").unwrap();
    let lines = "\
| model | PPL | MSJ2 | SB2 | Uniq |
| --- | --: | --: | --: | --: |
| From scratch | 24.5 | **42.4** | **71.9** | **15700** |
| From scratch, paper | 13.2 | 52.4 | **76.1** | **25200** |
| Transferred | **18.2** | **42.4** | **71.9** | **15700** |
| Transferred, paper | **9.8** | **56.1** | 74.7 | 23900 |
| Human | – | – | 74.1 | 15200 |
| Human, paper | – | – | 76.6 | 27900 |
";
    assert_eq!(table.table.to_markdown(), lines);
    assert_eq!(
        report.lead[1],
        "Pretrained on Another text, F² reaches a perplexity of 18.2 in 600 steps; from scratch \
         24.5."
    );
}

#[test]
fn the_lead_says_how_often_f2_is_closer_to_human() {
    let report = Report::new(&invented::results());
    assert_eq!(
        report.lead[0],
        "F²-Softmax is closer to human text than maximum likelihood on 6 of 7 metrics \
         (top-k, k = 3)."
    );
    let kld = &report.tiles[0];
    let best: Vec<&str> =
        kld.bars.iter().filter(|bar| bar.best).map(|bar| bar.name.as_str()).collect();
    assert_eq!((kld.metric, best), ("KLD", vec!["F²-Softmax"]));
}

#[test]
fn metrics_are_explained_as_they_were_taken() {
    let mut results = invented::results();
    let explained = |results: &Results, convention: Convention| {
        let html = Report::new(results).to_html();
        definitions(convention).filter(|(_, line)| html.contains(line)).count()
    };
    let (paper, textbook) = (Convention::Paper, Convention::Textbook);
    assert_eq!(explained(&results, paper), 7);
    assert!(explained(&results, textbook) < 7);
    for record in &mut results.scores[0].records {
        record.convention = textbook.to_string();
    }
    assert_eq!(explained(&results, textbook), 7);
}

#[test]
fn the_page_needs_no_other_file_and_no_script() {
    let html = Report::new(&invented::results()).to_html();
    for outside in ["<script", "<link", " src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    let links = html.split("href=\"").skip(1);
    assert!(links.into_iter().all(|link| link.starts_with('#') || link.starts_with("data:")));
}

#[test]
fn everything_is_also_written_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let report = Report::new(&invented::results());
    report.write(folder.path()).unwrap();
    for ending in ["md", "tex", "csv", "json"] {
        assert!(folder.path().join(format!("tables/scores.{ending}")).exists());
    }
    assert!(folder.path().join("figures/bands.svg").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tables"), "in the way").unwrap();
    let path = Report::new(&invented::results()).write(folder.path()).unwrap_err().path;
    assert!(path.starts_with(folder.path().join("tables")), "{}", path.display());
}

#[test]
fn models_too_small_to_compare_get_a_remark() {
    let remarked = |parameters: usize, steps: u64| {
        let mut results = invented::results();
        for run in &mut results.runs {
            run.settings.insert("batch.sequence".to_owned(), "128".to_owned());
            (run.parameters, run.steps) = (parameters, steps);
        }
        let lead = Report::new(&results).lead;
        lead.into_iter().find(|line| line.contains("too small to compare"))
    };
    assert_eq!(remarked(1_870_000, 600), None);
    let small = remarked(240_000, 600).unwrap();
    assert!(small.contains("MLE has 0.2 million parameters and was trained on 1.2 million"));
    assert!(remarked(1_870_000, 400).is_some());
    assert_eq!(remarked(124_000_000, 20), None, "fine-tuned from a large model");
}

#[test]
fn what_a_column_is_called_is_explained_beside_it() {
    let html = Report::new(&invented::results()).to_html();
    assert!(html.contains("level: metrics in which both are equally good"));
}

#[test]
fn figures_tell_screen_readers_what_they_show() {
    let html = Report::new(&invented::results()).to_html();
    let named = |attribute: &str| -> Vec<String> {
        let before = format!(" {attribute}=\"");
        let values = html.split(&before).skip(1);
        values.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let mut ids = named("id");
    for id in named("aria-labelledby").into_iter().chain(named("aria-describedby")) {
        assert!(ids.contains(&id), "{id}");
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id names one element");
    let bands = html.split("<desc id=\"figure-tokens-by-frequency-band-summary\">").nth(1).unwrap();
    let told = "Bars of share of tokens (%). frequent: MLE 52, FACE 42, UL-token 42";
    assert!(bands.starts_with(told), "{}", bands.split("</desc>").next().unwrap());
}
