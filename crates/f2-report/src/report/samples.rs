//! Samples, and their shares of very rare tokens.

use super::{Block, Section};
use crate::paper::{self, PaperSet};
use crate::results::{Results, SampleResult};
use crate::table::{Align, Table};

/// Continuations of the same prefixes by all models, and their shares of very rare tokens.
pub(super) fn section(results: &Results) -> Option<Section> {
    let table = very_rare(results)?;
    let beside = match results.paper {
        Some(PaperSet::Wikitext103) => "; the paper's samples of Wikitext-103 are in grey",
        _ => "",
    };
    let caption = format!("VR: very rare tokens in each sample, in percent{beside}");
    Some(Section {
        id: "samples",
        title: "Samples".to_owned(),
        text: vec![
            "The same prefixes, continued by every model. The colour of a token shows its \
             frequency band in the training text; underlined tokens belong to a sequence of three \
             or more that occurred before in the same text. Point at a token, or tap it, for its \
             class and its probability under the model."
                .to_owned(),
        ],
        blocks: vec![
            Block::Samples(results.samples.clone()),
            Block::table("very-rare", caption, table),
        ],
    })
}

/// VR of each sample by each model and human, with the paper's samples below.
fn very_rare(results: &Results) -> Option<Table> {
    let first = results.samples.first()?;
    let names: Vec<&String> = first.continuations.iter().map(|text| &text.name).collect();
    let headings = names.iter().map(|name| ((*name).clone(), Align::Right));
    let prefix = std::iter::once(("prefix".to_owned(), Align::Left));
    let mut table = Table::new(prefix.chain(headings));
    for sample in &results.samples {
        if sample.continuations.len() == first.continuations.len() {
            table.row(row(sample).map(Into::into));
        }
    }
    if results.paper == Some(PaperSet::Wikitext103) {
        for (article, shares) in paper::very_rare() {
            let cells = names.iter().map(|name| {
                shares.get(*name).map_or_else(|| "–".to_owned(), |share| format!("{share:.1}"))
            });
            let name = format!("{article}, paper");
            table.quiet_row(std::iter::once(name).chain(cells).map(Into::into));
        }
    }
    Some(table)
}

fn row(sample: &SampleResult) -> impl Iterator<Item = String> {
    let shares = sample.continuations.iter().map(|text| {
        text.very_rare().map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share))
    });
    std::iter::once(shortened(&sample.prefix)).chain(shares)
}

/// The last words of a prefix.
fn shortened(prefix: &str) -> String {
    let words: Vec<&str> = prefix.split_whitespace().collect();
    let kept = &words[words.len().saturating_sub(6)..];
    let dots = if kept.len() < words.len() { "… " } else { "" };
    format!("{dots}{}", kept.join(" "))
}
