//! The frame of a chart: plot area, axes and reference lines.

use super::axis::Axis;
use super::element::Element;
use super::scale::Scale;
use super::{number, text};

/// The width of all charts in pixels; scaled to a phone's 360, their text is still 10 pixels high.
pub(super) const WIDTH: f64 = 480.0;
pub(super) const PAD: f64 = 14.0;
pub(super) const TICK_SIZE: f64 = 12.0;
/// The height of a reference line's name above its baseline.
const NOTE_HEIGHT: f64 = 9.0;

/// A finished chart, to be stacked with others.
pub(super) struct Panel {
    pub(super) height: f64,
    pub(super) elements: Vec<Element>,
    /// Its description for screen readers.
    pub(super) description: String,
}

/// The plot area, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn x(&self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    pub(super) fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }

    /// Whether a point lies inside, edges included.
    pub(super) fn holds(&self, (x, y): (f64, f64)) -> bool {
        let near = 0.01;
        let across = x > self.left - near && x < self.right + near;
        across && y > self.top - near && y < self.bottom + near
    }

    /// Clips elements to the area. A nested `svg` clips without an id, which could collide between
    /// two figures on one page.
    pub(super) fn clip(&self, elements: &[Element]) -> Element {
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        // Half a mark may extend beyond the edges.
        let margin = 6.0;
        let (x, y) = (self.left - margin, self.top - margin);
        let (width, height) = (width + 2.0 * margin, height + 2.0 * margin);
        let lengths = [x, y, width, height].map(super::element::length);
        let frame = Element::new("svg").set("x", x).set("y", y);
        frame
            .set("width", width)
            .set("height", height)
            .set("viewBox", lengths.join(" "))
            .with_all(elements)
    }
}

/// The width of the widest label of a scale.
pub(super) fn labels_width(scale: &Scale) -> f64 {
    let widths = scale.ticks.iter().map(|tick| text::width(&tick.label, TICK_SIZE));
    widths.fold(0.0, f64::max)
}

/// Draws the heading of the vertical axis above it, as rotated text is hard to read.
pub(super) fn draw_upright_heading(axis: &Axis, top: f64, out: &mut Vec<Element>) -> f64 {
    out.push(Element::text("quiet", PAD, top + 16.0, "start", &axis.heading()));
    top + 32.0
}

/// Draws grid lines at the ticks of the vertical axis, with their labels to the left.
pub(super) fn draw_upright(scale: &Scale, area: Area, out: &mut Vec<Element>) {
    for tick in &scale.ticks {
        let y = area.y(scale.place(tick.value));
        out.push(Element::line("grid", (area.left, y), (area.right, y)));
        out.push(Element::text("tick", area.left - 8.0, y + 4.0, "end", &tick.label));
    }
}

/// Draws a dotted reference line with its name at the right end: above it, or below it if the name
/// would extend beyond the top.
pub(super) fn draw_reference(name: &str, level: f64, y: f64, area: Area, out: &mut Vec<Element>) {
    let hint = format!("{name}: {}", number::value(level));
    out.push(Element::line("reference", (area.left, y), (area.right, y)).hint(&hint));
    let (above, below) = (y - 6.0, y + 6.0 + NOTE_HEIGHT);
    let baseline = if above - NOTE_HEIGHT < area.top { below } else { above };
    out.push(Element::text("note", area.right - 2.0, baseline, "end", name));
}

/// Draws ticks, labels and heading of the horizontal axis below the area; returns the y of its end.
pub(super) fn draw_level(
    axis: &Axis,
    scale: &Scale,
    area: Area,
    lines: bool,
    out: &mut Vec<Element>,
) -> f64 {
    let mut free_from = f64::NEG_INFINITY;
    for tick in &scale.ticks {
        let x = area.x(scale.place(tick.value));
        let (from, class) = if lines { (area.top, "grid") } else { (area.bottom, "axis") };
        out.push(Element::line(class, (x, from), (x, area.bottom + 4.0)));
        let half = text::width(&tick.label, TICK_SIZE) / 2.0;
        // A label that would overlap the one before is left out; its tick stays.
        if x - half > free_from {
            out.push(Element::text("tick", x, area.bottom + 18.0, "middle", &tick.label));
            free_from = x + half + 6.0;
        }
    }
    let centre = f64::midpoint(area.left, area.right);
    out.push(Element::text("quiet", centre, area.bottom + 38.0, "middle", &axis.heading()));
    area.bottom + 38.0 + PAD
}
