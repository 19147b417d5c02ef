//! A report: sections of tables, figures and samples made from results, independent of the output
//! format.

mod ablations;
mod bands;
mod ceiling;
mod certainty;
mod claims;
mod classes;
mod configurations;
mod corpus;
mod further;
mod matches;
mod palette;
mod samples;
mod scores;
mod size;
mod study;
mod summary;
mod training;
mod transfer;
mod write;

use crate::plot::Figure;
use crate::results::{Results, SampleResult};
use crate::table::Table;
use study::Study;

pub use summary::{Bar, Tile};

/// Sections of tables, figures and samples, made from [`Results`].
///
/// ```
/// use f2_report::{Report, Results};
///
/// let report = Report::new(&Results::new("An empty experiment"));
/// assert!(report.to_html().starts_with("<!doctype html>"));
/// ```
pub struct Report {
    /// The title of the page.
    pub title: String,
    /// The outcome, in a sentence or two.
    pub lead: Vec<String>,
    /// The metrics at a glance.
    pub tiles: Vec<Tile>,
    /// The sections of the page.
    pub sections: Vec<Section>,
    /// The program's name and version.
    pub made_by: String,
}

/// A section of the page.
pub struct Section {
    /// Its id in links.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Paragraphs before its blocks.
    pub text: Vec<String>,
    /// Its tables, figures and samples.
    pub blocks: Vec<Block>,
}

/// A table, figures, samples or notes.
pub enum Block {
    /// A table.
    Table(NamedTable),
    /// A table that is collapsed under its caption.
    Folded(NamedTable),
    /// Figures, side by side if there is room.
    Figures(Vec<NamedFigure>),
    /// The heading of a corpus, if there are several.
    Heading {
        /// The letter and name of the corpus.
        title: String,
        /// Paragraphs below it.
        text: Vec<String>,
    },
    /// Continuations of the same prefixes by all models.
    Samples(Vec<SampleResult>),
    /// Collapsed notes.
    Notes {
        /// The line that is always shown.
        summary: String,
        /// The collapsed lines.
        lines: Vec<String>,
    },
}

/// A table that is also written as a file.
pub struct NamedTable {
    /// The file name without extension.
    pub name: String,
    /// The caption above it.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// A figure that is also written as a file.
pub struct NamedFigure {
    /// The file name without extension.
    pub name: String,
    /// The figure.
    pub figure: Figure,
}

impl Report {
    /// The report of all results.
    pub fn new(results: &Results) -> Self {
        let study = Study::new(results);
        let palette = &study.palette;
        // The tables and figures of the paper in its order, then those it does not have.
        let sections = [
            study.section(scores::main),
            study.section(|corpus| bands::section(corpus, palette)),
            study.section(ablations::section),
            study.section(samples::section),
            study.section(corpus::section),
            study.section(configurations::section),
            study.section(scores::greedy),
            matches::section(&study),
            study.section(scores::others),
            study.section(|corpus| transfer::section(corpus, palette)),
            study.section(claims::section),
            study.section(ceiling::section),
            study.section(certainty::section),
            study.section(further::section),
            study.section(|corpus| training::section(corpus, palette)),
            study.section(classes::section),
        ];
        Self {
            title: results.title.clone(),
            lead: summary::lead(results, &study),
            tiles: summary::tiles(&study),
            sections: sections.into_iter().flatten().collect(),
            made_by: results.made_by.clone(),
        }
    }

    /// All tables, in order of appearance.
    pub fn tables(&self) -> impl Iterator<Item = &NamedTable> {
        self.blocks().filter_map(|block| match block {
            Block::Table(table) | Block::Folded(table) => Some(table),
            _ => None,
        })
    }

    /// All figures, in order of appearance.
    pub fn figures(&self) -> impl Iterator<Item = &NamedFigure> {
        self.blocks().flat_map(|block| match block {
            Block::Figures(figures) => figures.as_slice(),
            _ => &[],
        })
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.sections.iter().flat_map(|section| &section.blocks)
    }

    /// The page, a self-contained HTML file.
    pub fn to_html(&self) -> String {
        crate::page::html(self)
    }
}

impl Block {
    fn table(name: impl Into<String>, caption: impl Into<String>, table: Table) -> Self {
        Self::Table(NamedTable { name: name.into(), caption: caption.into(), table })
    }
}

impl NamedFigure {
    fn new(name: impl Into<String>, figure: Figure) -> Self {
        Self { name: name.into(), figure }
    }
}
