//! The page in a real browser: headless Chromium, where one is installed.

mod invented;

use std::path::{Path, PathBuf};
use std::process::Command;

use f2_report::Report;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A Chromium: the one `F2_BROWSER` names, or the first on the path.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("F2_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    places.flat_map(|folder| NAMES.map(|name| folder.join(name))).find(|program| program.is_file())
}

/// What the browser made of a page, and what its console said.
struct Opened {
    page: String,
    console: Vec<String>,
}

fn open(browser: &Path, page: &Path) -> Opened {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Opened {
        page: String::from_utf8(output.stdout).unwrap(),
        console: said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    }
}

#[test]
fn a_browser_shows_every_table_and_figure_and_asks_for_nothing() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium here; name one by F2_BROWSER");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let report = Report::new(&invented::results());
    let page = report.write(folder.path()).unwrap();
    let opened = open(&browser, &page);
    assert_eq!(opened.console, [""; 0]);
    assert_eq!(opened.page.matches("<table>").count(), report.tables().count());
    assert_eq!(opened.page.matches("<svg class=\"f2-figure\"").count(), report.figures().count());
    for (name, count) in [("<article>", 6), ("data-hint=\"very rare", 12), ("class=\"tile\"", 6)] {
        assert_eq!(opened.page.matches(name).count(), count, "{name}");
    }

    // The browser would tell: the same page with a picture from elsewhere.
    let html = std::fs::read_to_string(&page).unwrap();
    let asking = html.replace("<main>", "<main><img src=\"https://example.org/x.png\">");
    std::fs::write(&page, asking).unwrap();
    let console = open(&browser, &page).console;
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
}
