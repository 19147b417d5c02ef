//! A report as a single HTML file without scripts or requests, with light and dark themes and a
//! responsive layout.

mod download;
mod sample;

use std::fmt::Write as _;

use crate::markup::escape;
use crate::plot::{FIGURE_STYLE, LOOKS};
use crate::report::{Block, NamedTable, Report, Section, Tile};

const STYLE: &str = include_str!("page.css");

/// Content security policy: the page needs no other file, so nothing may be loaded.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole page.
pub(crate) fn html(report: &Report) -> String {
    let title = escape(&report.title);
    let sections: String = report.sections.iter().map(section).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}{FIGURE_STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n{}{}</header>\n{}<main>\n{sections}</main>\n\
         <footer>Made by {}. Every table and figure of this page is also a file next to it.\
         </footer>\n</body>\n</html>\n",
        paragraphs("lead", &report.lead),
        tiles(&report.tiles),
        contents(&report.sections),
        escape(&report.made_by),
    )
}

fn paragraphs(class: &str, texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p class=\"{class}\">{}</p>\n", escape(text))).collect()
}

fn contents(sections: &[Section]) -> String {
    let links = sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>\n", section.id, escape(&section.title)));
    format!("<nav aria-label=\"Contents\">\n{}</nav>\n", links.collect::<String>())
}

fn tiles(tiles: &[Tile]) -> String {
    if tiles.is_empty() {
        return String::new();
    }
    let tiles: String = tiles.iter().map(tile).collect();
    format!("<div class=\"tiles\">\n{tiles}</div>\n")
}

fn tile(tile: &Tile) -> String {
    let corpus = tile.corpus.as_ref();
    let corpus = corpus
        .map_or_else(String::new, |name| format!("<p class=\"corpus\">{}</p>\n", escape(name)));
    let mut out = format!(
        "<section class=\"tile\">\n<h2>{} <small>{}</small></h2>\n{corpus}<dl>\n",
        escape(tile.metric),
        tile.aim
    );
    for bar in &tile.bars {
        let human = if bar.name == "Human" { " human" } else { "" };
        let best = if bar.best { " best" } else { "" };
        let _ = writeln!(
            out,
            "<div class=\"bar-row s{}{human}{best}\"><dt>{}</dt><dd><span class=\"track\">\
             <span class=\"fill\" style=\"width:{:.1}%\"></span></span><b>{}</b></dd></div>",
            bar.look % LOOKS,
            escape(&bar.name),
            100.0 * bar.length,
            escape(&bar.value)
        );
    }
    out + "</dl>\n</section>\n"
}

fn section(section: &Section) -> String {
    let blocks: String = section.blocks.iter().map(block).collect();
    format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n{}{blocks}</section>\n",
        section.id,
        escape(&section.title),
        paragraphs("text", &section.text)
    )
}

fn block(block: &Block) -> String {
    match block {
        Block::Table(table) => named_table(table),
        Block::Folded(table) => format!(
            "<details><summary>{}</summary>\n{}</details>\n",
            escape(&table.caption),
            named_table(table)
        ),
        Block::Figures(figures) => {
            let figures = figures.iter().map(|named| {
                format!(
                    "<figure id=\"figure-{}\">\n{}</figure>\n",
                    named.name,
                    named.figure.to_inline_svg()
                )
            });
            format!("<div class=\"figures\">\n{}</div>\n", figures.collect::<String>())
        }
        Block::Heading { title, text } => {
            format!("<h3 class=\"part\">{}</h3>\n{}", escape(title), paragraphs("text", text))
        }
        Block::Samples(samples) => sample::html(samples),
        Block::Notes { summary, lines } => {
            let lines = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line)));
            let lines: String = lines.collect();
            format!(
                "<details><summary>{}</summary>\n<ul>\n{lines}</ul></details>\n",
                escape(summary)
            )
        }
    }
}

/// The table, its caption and download links for other formats. It scrolls horizontally on narrow
/// screens.
fn named_table(named: &NamedTable) -> String {
    let NamedTable { name, caption, table } = named;
    let links = [
        ("md", "Markdown", "text/markdown", table.to_markdown()),
        ("tex", "LaTeX", "application/x-tex", table.to_latex()),
        ("csv", "CSV", "text/csv", table.to_csv()),
        ("json", "JSON", "application/json", table.to_json()),
    ];
    let links = links.map(|(ending, label, kind, text)| {
        download::link(&format!("{name}.{ending}"), label, kind, &text)
    });
    let caption = escape(caption);
    format!(
        "<div class=\"table\" id=\"table-{name}\">\n<div class=\"caption\"><span>{caption}</span>\
         <span class=\"save\">{}</span></div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{caption}\">\n{}</div>\n</div>\n",
        links.join(" "),
        table.to_html()
    )
}
