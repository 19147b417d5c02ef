//! Figures as SVG, without a plotting library.
//!
//! A figure includes its style sheet: it follows the light or dark theme, distinguishes series by
//! shape and by colours that colour-blind readers can tell apart, shows numbers in tooltips, has
//! descriptions for screen readers, and fits the width of a phone. The same input gives the same
//! bytes.

mod axis;
mod bar;
mod description;
mod element;
mod figure;
mod frame;
mod header;
mod line;
mod mark;
mod number;
mod scale;
mod series;
mod text;

pub use mark::LOOKS;

pub use axis::Axis;
pub use bar::{BarChart, Direction};
pub use figure::{FIGURE_STYLE, Figure};
pub use line::LineChart;
pub use series::Series;
