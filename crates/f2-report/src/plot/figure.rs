//! Charts combined into one SVG image.

use super::element::{Element, length};
use super::frame::{Panel, WIDTH};

/// The style sheet of all figures, for a page with several.
pub const FIGURE_STYLE: &str = include_str!("figure.css");

/// One or more charts, one below the other, in one SVG image.
///
/// ```
/// use f2_report::{Axis, Figure, LineChart, Series};
///
/// let loss = LineChart::new("Loss", Axis::new("step"), Axis::new("loss").unit("nats"))
///     .series(Series::new("training", [(0.0, 9.2), (100.0, 6.1)]));
/// let svg = Figure::new("Training").line_chart(&loss).to_svg();
/// assert!(svg.starts_with("<svg "));
/// ```
#[derive(Default)]
pub struct Figure {
    name: String,
    panels: Vec<Panel>,
}

impl Figure {
    /// A figure without charts. Screen readers read its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), panels: Vec::new() }
    }

    /// Appends a line chart.
    #[must_use]
    pub fn line_chart(mut self, chart: &super::LineChart) -> Self {
        self.panels.push(chart.panel());
        self
    }

    /// Appends a bar chart.
    #[must_use]
    pub fn bar_chart(mut self, chart: &super::BarChart) -> Self {
        self.panels.push(chart.panel());
        self
    }

    /// Extends the name, to tell apart figures of the same kind on one page.
    #[must_use]
    pub(crate) fn of(mut self, what: &str) -> Self {
        self.name = format!("{}, {what}", self.name);
        self
    }

    /// The figure as a standalone SVG file.
    pub fn to_svg(&self) -> String {
        self.document(Some(&Element::new("style").raw(FIGURE_STYLE)))
    }

    /// The figure as inline SVG, for a page whose style sheet includes [`FIGURE_STYLE`].
    pub fn to_inline_svg(&self) -> String {
        self.document(None)
    }

    /// The SVG document, with a title and a summary for screen readers.
    fn document(&self, style: Option<&Element>) -> String {
        let height: f64 = self.panels.iter().map(|panel| panel.height).sum();
        let [title, summary] = ["title", "summary"].map(|part| format!("{}-{part}", self.id()));
        let mut root = Element::of_class("svg", "f2-figure")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("viewBox", format!("0 0 {} {}", length(WIDTH), length(height)))
            .set("role", "img")
            .set("aria-labelledby", &title)
            .set("aria-describedby", &summary)
            .with(&Element::new("title").set("id", &title).words(&self.name))
            .with(&Element::new("desc").set("id", &summary).words(&self.description()));
        root = style.into_iter().fold(root, Element::with);
        root =
            root.with(&Element::rectangle("surface", (0.0, 0.0), (WIDTH, height)).set("rx", 6.0));
        let mut top = 0.0;
        for panel in &self.panels {
            let place = Element::new("g").set("transform", format!("translate(0 {})", length(top)));
            root = root.with(&place.with_all(&panel.elements));
            top += panel.height;
        }
        root.to_string()
    }

    fn description(&self) -> String {
        self.panels.iter().map(|panel| panel.description.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// An id within the page, from the ASCII letters and digits of the figure's name.
    fn id(&self) -> String {
        let words = self.name.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<String> =
            words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        format!("figure-{}", words.join("-"))
    }
}
