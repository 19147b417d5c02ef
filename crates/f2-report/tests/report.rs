//! The sections, tables and figures of a report, and their content.

mod invented;

use f2_metrics::Convention;
use f2_report::{Report, Results, definitions};

#[test]
fn an_empty_experiment_has_an_empty_report() {
    let report = Report::new(&Results::new("Nothing <yet>"));
    assert!(report.sections.is_empty() && report.tiles.is_empty());
    assert!(report.to_html().contains("<title>Nothing &lt;yet&gt;</title>"));
}

/// The paper's tables and figures in its order, then those it does not have.
const SECTIONS: [&str; 15] = [
    "scores",
    "bands",
    "ablations",
    "samples",
    "corpus",
    "settings",
    "greedy",
    "matches",
    "decoding",
    "transfer",
    "claims",
    "ceiling",
    "certainty",
    "training",
    "classes",
];

#[test]
fn every_part_of_the_results_is_shown() {
    let report = Report::new(&invented::results());
    let sections: Vec<&str> = report.sections.iter().map(|section| section.id).collect();
    assert_eq!(sections, SECTIONS);
    let tables: Vec<&str> = report.tables().map(|table| table.name.as_str()).collect();
    for name in [
        "scores-greedy",
        "scores-top-20",
        "decoupling",
        "class-nucleus",
        "authors-program",
        "very-rare",
    ] {
        assert!(tables.contains(&name), "{name} of {tables:?}");
    }
}

#[test]
fn names_of_tables_and_figures_are_different_files() {
    let report = Report::new(&invented::results());
    for report in [report, Report::new(&invented::study())] {
        different_names(&report);
    }
}

fn different_names(report: &Report) {
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
        report.lead[2],
        "Pretrained on Another text, F² reaches a test perplexity of 18.2 in 600 steps; from scratch \
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

/// The markup of the figure with this file name.
fn figure<'a>(html: &'a str, name: &str) -> &'a str {
    let begin = format!("<figure id=\"figure-{name}\">");
    html.split(&begin).nth(1).unwrap_or_else(|| panic!("{name}")).split("</figure>").next().unwrap()
}

fn table(report: &Report, name: &str) -> String {
    let names: Vec<&str> = report.tables().map(|table| table.name.as_str()).collect();
    let found = report.tables().find(|table| table.name == name);
    found.unwrap_or_else(|| panic!("{name} of {names:?}")).table.to_markdown()
}

#[test]
fn a_study_of_two_corpora_has_the_papers_tables_in_its_order() {
    let report = Report::new(&invented::study());
    let sections: Vec<&str> = report.sections.iter().map(|section| section.id).collect();
    assert_eq!(sections, SECTIONS);
    let tables: Vec<&str> = report.tables().map(|table| table.name.as_str()).collect();
    let of_the_paper = [
        "scores-a",
        "scores-b",
        "bands-a",
        "bands-b",
        "decoupling-a",
        "decoupling-b",
        "very-rare-a",
        "corpus-a",
        "corpus-b",
        "hyperparameters-a",
        "hyperparameters-b",
        "scores-greedy-a",
        "scores-greedy-b",
        "pairwise-a",
        "pairwise-paper-a",
        "pairwise-b",
        "pairwise-paper-b",
        "ranking",
        "ranking-paper",
        "scores-top-20-a",
        "scores-top-3-b",
        "transfer-b",
    ];
    let places = of_the_paper.map(|name| {
        tables.iter().position(|table| *table == name).unwrap_or_else(|| panic!("{name}"))
    });
    assert!(places.is_sorted(), "{tables:?}");
    // The results are the paper's numbers, so the ranking over both sets must be the paper's.
    let ranking = table(&report, "ranking");
    assert!(ranking.contains("| 1 | F²-Softmax | 7-1 |"), "{ranking}");
    assert!(ranking.contains("| 2 | UL-token | 5-3 |"), "{ranking}");
    let html = report.to_html();
    for heading in
        ["a) An invented text, beside Wikitext-103", "b) Invented verse, beside Melo-Lyrics"]
    {
        assert!(html.contains(&format!("<h3 class=\"part\">{heading}</h3>")), "{heading}");
    }
    assert!(report.lead[0].starts_with("An invented text: F²-Softmax is closer"));
    assert_eq!(report.tiles.len(), 12);
}

#[test]
fn a_model_has_one_colour_everywhere() {
    let results = invented::results();
    let html = Report::new(&results).to_html();
    let looks = [("MLE", 0), ("FACE", 1), ("UL-token+seq", 3), ("F²-Softmax", 4)];
    for (name, look) in looks {
        for tile in html.split("<section class=\"tile\">").skip(1) {
            let row = tile
                .split("<div class=\"bar-row ")
                .find(|row| row.contains(&format!("<dt>{name}</dt>")));
            assert!(
                row.unwrap().starts_with(&format!("s{look} "))
                    || row.unwrap().starts_with(&format!("s{look}\"")),
                "{name}"
            );
        }
        let bars = figure(&html, "bands");
        let bar =
            bars.split("<rect class=\"bar ").find(|bar| bar.contains(&format!("<title>{name}\n")));
        assert!(bar.unwrap().starts_with(&format!("s{look}\"")), "{name}");
    }
    let line = |chart: &str, name: &str| {
        let path =
            chart.split("<path class=\"").find(|path| path.contains(&format!("<title>{name}<")));
        path.unwrap_or_else(|| panic!("{name}")).split('"').next().unwrap().to_owned()
    };
    for chart in ["training", "validation"] {
        assert!(line(figure(&html, chart), "F²-Softmax").ends_with(" s4"), "{chart}");
    }
    assert!(line(figure(&html, "transfer-validation"), "From scratch").ends_with(" s4"));
    // Series that are not models do not have a model's colour.
    for (chart, name) in [("mean-efficiency", "greedy"), ("classes-kld", "equal frequency")] {
        assert!(line(figure(&html, chart), name).ends_with(" s6"), "{chart}");
    }
}

#[test]
fn fine_tuned_runs_have_charts_of_their_own() {
    let html = Report::new(&invented::results()).to_html();
    for chart in ["training", "validation"] {
        let chart = figure(&html, chart);
        assert!(chart.contains("<title>MLE</title>") && !chart.contains("<title>FACE</title>"));
        assert!(!chart.contains("<title>UL-token+seq</title>"));
    }
    for (name, title) in [
        ("fine-tuning-face", "FACE, fine-tuned from MLE"),
        ("fine-tuning-ul-token-seq", "UL-token+seq, fine-tuned from UL-token"),
    ] {
        assert!(figure(&html, name).contains(title), "{title}");
    }
}

#[test]
fn perplexities_say_which_split_they_are_of() {
    let report = Report::new(&invented::results());
    let training = table(&report, "training");
    assert!(training.contains("| PPL, validation | PPL, test |"), "{training}");
    assert!(training.contains("| FACE | MLE | 1.87 M | 600 | 1.2 M | 1.5 | 3.0 |"), "{training}");
    for name in ["scores", "scores-greedy"] {
        let caption = &report.tables().find(|table| table.name == name).unwrap().caption;
        assert!(caption.contains("PPL of the test split"), "{caption}");
    }
    let html = report.to_html();
    assert!(figure(&html, "classes-ppl").contains("PPL, test split over the number of classes"));
    // A folder of runs has no test split.
    let mut results = invented::results();
    results.runs.iter_mut().for_each(|run| run.perplexity = None);
    let training = table(&Report::new(&results), "training");
    assert!(training.contains("| PPL, validation | device |"), "{training}");
}

#[test]
fn the_papers_hyperparameters_are_all_there() {
    let mut results = invented::results();
    results.hyperparameters.insert("prefix".to_owned(), 50.0);
    let shown = table(&Report::new(&results), "hyperparameters");
    assert_eq!(shown.lines().count(), 2 + 21, "{shown}");
    for row in ["| layers | 4 | 12 |", "| prefix | 50 | 50 |", "| learning rate | – | 1e-4 |"] {
        assert!(shown.contains(row), "{row} in {shown}");
    }
}

#[test]
fn the_ceiling_says_how_far_each_model_goes() {
    let report = Report::new(&invented::results());
    let ceiling = table(&report, "ceiling");
    assert!(ceiling.contains("| Human, other half | 0.30 | 80.0 | 50.0 | 30.0 |"), "{ceiling}");
    let way = table(&report, "way-to-human");
    // KLD of MLE, F² and human: 1.51, 0.62 and 0.30; MS-Jaccard-1: 52.1, 67.4 and 80.0.
    assert!(way.contains("| F²-Softmax | 74 | 55 |"), "{way}");
    assert!(!way.contains("| MLE |"), "{way}");
    assert_eq!(
        report.lead[1],
        "On half of the texts F²-Softmax goes 74 % of the way from maximum likelihood to human \
         text in KLD, and 47 % in MS-Jaccard-2."
    );
}

#[test]
fn differences_that_may_be_chance_are_marked() {
    let report = Report::new(&invented::results());
    let differences = table(&report, "differences");
    assert!(!differences.contains("PPL"), "{differences}");
    assert!(
        differences.contains("| FACE − MLE | -0.25 (-0.28 to -0.22) | +1.2 (0.1 to 2.3) |"),
        "{differences}"
    );
    // KLD 1.28 and 1.26.
    assert!(differences.contains("| UL-token − FACE | ≈ +0.02 (-0.01 to 0.05) |"), "{differences}");
    let seeds = table(&report, "seeds");
    assert!(seeds.contains("| MLE | 24.7 ±0.0 | 1.40 ±0.10 |"), "{seeds}");
    assert!(seeds.contains("| MLE, over texts | ±0.7 | ±0.05 |"), "{seeds}");
    let pairwise = table(&report, "pairwise");
    assert!(pairwise.contains("| not significant |"), "{pairwise}");
}

#[test]
fn a_rep_of_zero_has_the_interval_its_counts_allow() {
    let mut results = invented::results();
    let record = &mut results.scores[0].records[4];
    record.metrics.rep = Some(0.0);
    let scores = table(&Report::new(&results), "scores");
    assert!(scores.contains("| 0.00 ≤0.21 |"), "{scores}");
    assert!(
        Report::new(&results).to_html().contains("0.00</strong><small>≤0.21</small>")
            || Report::new(&results).to_html().contains("0.00<small>≤0.21</small>")
    );
}

#[test]
fn the_papers_samples_and_claims_stand_beside_ours() {
    let report = Report::new(&invented::results());
    let rare = table(&report, "very-rare");
    assert!(rare.contains("| Robert Boulter, paper | – | 6.7 | 9.3 |"), "{rare}");
    let claims = table(&report, "claims");
    for row in [
        "| KLD of F² is below that of MLE by | 59 % | 58.9 % | 58.9 % |",
        "| MLE: frequent tokens, relative to human | +34 % | – | +30 % |",
        "| PPL for K above MefMax's choice | deteriorates clearly | – | +0.0 % from K = 8 to 16 |",
    ] {
        assert!(claims.contains(row), "{row} in {claims}");
    }
}
