use super::{Block, Section};
use crate::results::{Results, SampleResult};
use crate::table::{Align, Table};

/// Texts of all models after the same prefixes, and how many of their tokens are very rare.
pub(super) fn section(results: &Results) -> Option<Section> {
    let first = results.samples.first()?;
    let names = first.continuations.iter().map(|text| (text.name.clone(), Align::Right));
    let prefix = std::iter::once(("prefix".to_owned(), Align::Left));
    let mut table = Table::new(prefix.chain(names));
    for sample in &results.samples {
        if sample.continuations.len() == first.continuations.len() {
            table.row(row(sample).map(Into::into));
        }
    }
    Some(Section {
        id: "samples",
        title: "Samples".to_owned(),
        text: vec![
            "The same prefixes, continued by everyone. Colour shows how often the training text \
             uses a token; point at one, or tap it, for its class and the probability its model \
             gave it."
                .to_owned(),
        ],
        blocks: vec![
            Block::Samples(results.samples.clone()),
            Block::table("very-rare", "VR: very rare tokens in each sample, in percent", table),
        ],
    })
}

fn row(sample: &SampleResult) -> impl Iterator<Item = String> {
    let shares = sample.continuations.iter().map(|text| {
        text.very_rare().map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share))
    });
    std::iter::once(shortened(&sample.prefix)).chain(shares)
}

/// The end of a prefix, as many whole words as fit a cell.
fn shortened(prefix: &str) -> String {
    let words: Vec<&str> = prefix.split_whitespace().collect();
    let kept = &words[words.len().saturating_sub(6)..];
    let dots = if kept.len() < words.len() { "… " } else { "" };
    format!("{dots}{}", kept.join(" "))
}
