//! The page in a real browser: headless Chromium, if it is installed.

mod invented;
// Not all items are used here.
#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../f2-cli/tests/support/browser.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output};

use f2_report::Report;
use support::{NO_BROWSER, browser, flags};

/// The browser's DOM of the page, and the lines of its console.
struct Opened {
    page: String,
    console: Vec<String>,
}

fn run(browser: &Path, page: &Path, arguments: &[String]) -> Output {
    let profile = tempfile::tempdir().unwrap();
    Command::new(browser)
        .args(flags(profile.path()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

fn open(browser: &Path, page: &Path) -> Opened {
    let output = run(browser, page, &["--enable-logging=stderr", "--dump-dom"].map(str::to_owned));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Opened {
        page: String::from_utf8(output.stdout).unwrap(),
        console: said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    }
}

#[test]
fn a_browser_shows_every_table_and_figure_and_asks_for_nothing() {
    let Some(browser) = browser() else {
        eprintln!("{NO_BROWSER}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let shown = |report: &Report, folder: &Path| {
        let page = report.write(folder).unwrap();
        let opened = open(&browser, &page);
        assert_eq!(opened.console, [""; 0]);
        assert_eq!(opened.page.matches("<table>").count(), report.tables().count());
        let figures = opened.page.matches("<svg class=\"f2-figure\"").count();
        assert_eq!(figures, report.figures().count());
        (page, opened)
    };
    shown(&Report::new(&invented::study()), &folder.path().join("two-corpora"));
    let (page, opened) = shown(&Report::new(&invented::results()), folder.path());
    for (name, count) in [("<article>", 6), ("data-hint=\"very rare", 12), ("class=\"tile\"", 6)] {
        assert_eq!(opened.page.matches(name).count(), count, "{name}");
    }

    // Negative control: the browser does report an image from another host.
    let html = std::fs::read_to_string(&page).unwrap();
    let asking = html.replace("<main>", "<main><img src=\"https://example.org/x.png\">");
    std::fs::write(&page, asking).unwrap();
    let console = open(&browser, &page).console;
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
}

/// The text of the printed page, sheet by sheet; `None` if Chromium or pdftotext is not available.
fn printed(page: &Path) -> Option<Vec<String>> {
    let browser = browser()?;
    let pdf = page.with_extension("pdf");
    let bare = "--no-pdf-header-footer".to_owned();
    run(&browser, page, &[bare, format!("--print-to-pdf={}", pdf.display())]);
    let text = Command::new("pdftotext").arg("-layout").arg(&pdf).arg("-").output().ok()?;
    let text = String::from_utf8(text.stdout).unwrap();
    Some(text.split('\x0c').map(str::to_owned).collect())
}

#[test]
fn on_paper_all_columns_and_samples_are_there_and_sections_begin_a_sheet() {
    let folder = tempfile::tempdir().unwrap();
    let report = Report::new(&invented::results());
    let page = report.write(folder.path()).unwrap();
    let Some(sheets) = printed(&page) else {
        eprintln!("skipped: no Chromium or no pdftotext here");
        return;
    };
    for section in &report.sections {
        let begins = |sheet: &String| sheet.trim_start().starts_with(&section.title);
        assert!(sheets.iter().any(begins), "{}", section.title);
    }
    let scores = sheets.iter().find(|sheet| sheet.trim_start().starts_with("Scores")).unwrap();
    // The name is between the line of values and the line of intervals.
    let lines: Vec<&str> = scores.lines().filter(|line| !line.trim().is_empty()).collect();
    let name = lines.iter().position(|line| line.trim() == "F²-Softmax").unwrap();
    for line in [lines[name - 1], lines[name + 1]] {
        assert_eq!(line.split_whitespace().count(), 13, "{line}");
    }
    assert!(scores.contains("number of distinct tokens"), "small print is open");
    let samples = sheets.iter().find(|sheet| sheet.trim_start().starts_with("Samples")).unwrap();
    assert_eq!(samples.matches("frankincense").count(), 6, "{samples}");
}
