//! The size of the corpus, compared with the paper's.

use super::{Block, Section};
use crate::results::Results;
use crate::table::{Align, Table};

/// The sizes of the splits, compared with the paper's.
pub(super) fn section(results: &Results) -> Option<Section> {
    let corpus = results.corpus.as_ref()?;
    let mut table = Table::new([
        ("split", Align::Left),
        ("documents", Align::Right),
        ("words", Align::Right),
        ("tokens", Align::Right),
    ]);
    let sizes = results.paper.map(|set| (set.title(), set.sizes()));
    for (place, split) in corpus.splits.iter().enumerate() {
        let own =
            [split.documents, split.words, split.tokens].map(|count| count.to_string().into());
        table.row(std::iter::once(split.split.clone().into()).chain(own));
        if let Some((title, (documents, tokens))) = sizes {
            let (documents, tokens) = (documents[place % 3], tokens[place % 3]);
            let name = format!("{}, {title}", split.split);
            let counts = [documents.to_string(), "–".to_owned(), tokens.to_string()];
            table.quiet_row(std::iter::once(name).chain(counts).map(Into::into));
        }
    }
    Some(Section {
        id: "corpus",
        title: "Text".to_owned(),
        text: vec![format!("{}, with a vocabulary of {} tokens.", corpus.name, corpus.vocabulary)],
        blocks: vec![Block::table("corpus", "The size of each split", table)],
    })
}
