//! The sections of one corpus, or those of several corpora merged.

use super::palette::Palette;
use super::{Block, NamedFigure, NamedTable, Section};
use crate::results::Results;

/// The corpora of a report, and the colours of their models.
pub(super) struct Study<'a> {
    pub(super) corpora: Vec<&'a Results>,
    pub(super) palette: Palette,
}

impl<'a> Study<'a> {
    pub(super) fn new(results: &'a Results) -> Self {
        let corpora = match results.studies.as_slice() {
            [] => vec![results],
            studies => studies.iter().collect(),
        };
        let palette = Palette::new(&corpora);
        Self { corpora, palette }
    }

    /// Whether there is only one corpus, which needs no name.
    pub(super) fn is_single(&self) -> bool {
        self.corpora.len() == 1
    }

    /// The sections of all corpora, merged into one.
    pub(super) fn section(&self, of: impl Fn(&Results) -> Option<Section>) -> Option<Section> {
        if self.is_single() {
            return of(self.corpora[0]);
        }
        let sections = ('a'..='z').zip(&self.corpora);
        let sections = sections.filter_map(|(letter, results)| {
            Some(Labelled { letter, label: label(results), section: of(results)? })
        });
        merge(sections.collect())
    }
}

/// The name of a corpus, and of the paper's set it is compared with.
pub(super) fn label(results: &Results) -> String {
    let name = results.corpus.as_ref().map_or(&results.title, |corpus| &corpus.name);
    match results.paper {
        Some(set) => format!("{name}, beside {}", set.title()),
        None => name.clone(),
    }
}

/// The section of one corpus.
struct Labelled {
    letter: char,
    label: String,
    section: Section,
}

/// Merges sections: first the paragraphs common to all, then the blocks of each corpus under its
/// name.
fn merge(parts: Vec<Labelled>) -> Option<Section> {
    let first = &parts.first()?.section;
    let (id, title) = (first.id, first.title.clone());
    let in_all = |line: &&String| parts.iter().all(|part| part.section.text.contains(line));
    let text: Vec<String> = first.text.iter().filter(in_all).cloned().collect();
    let mut blocks: Vec<Block> = Vec::new();
    for Labelled { letter, label, section } in parts {
        let own = section.text.into_iter().filter(|line| !text.contains(line)).collect();
        blocks.push(Block::Heading { title: format!("{letter}) {label}"), text: own });
        for block in section.blocks {
            // Notes that are the same for several corpora are shown once.
            let known = matches!(&block, Block::Notes { lines, .. }
                if blocks.iter().any(|other| other.has_notes(lines)));
            if !known {
                blocks.push(block.of_corpus(letter, &label));
            }
        }
    }
    Some(Section { id, title, text, blocks })
}

impl Block {
    fn has_notes(&self, notes: &[String]) -> bool {
        matches!(self, Self::Notes { lines, .. } if lines == notes)
    }

    /// The block with names that are unique among the corpora.
    fn of_corpus(self, letter: char, label: &str) -> Self {
        let figure = |named: NamedFigure| NamedFigure {
            name: format!("{}-{letter}", named.name),
            figure: named.figure.of(label),
        };
        let table = |NamedTable { name, caption, table }: NamedTable| NamedTable {
            name: format!("{name}-{letter}"),
            caption: format!("{letter}) {caption}"),
            table,
        };
        match self {
            Self::Table(named) => Self::Table(table(named)),
            Self::Folded(named) => Self::Folded(table(named)),
            Self::Figures(figures) => Self::Figures(figures.into_iter().map(figure).collect()),
            other => other,
        }
    }
}
