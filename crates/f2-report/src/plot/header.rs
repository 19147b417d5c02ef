//! Title, subtitle and legend of a chart.

use super::element::Element;
use super::frame::{PAD, WIDTH};
use super::mark::{LOOKS, mark};
use super::text;

/// The symbol next to a name in a legend.
#[derive(Clone, Copy)]
pub(super) enum LegendSign {
    Line { dashed: bool, marked: bool },
    Bar,
}

/// An entry of a legend.
pub(super) struct LegendEntry<'a> {
    pub(super) name: &'a str,
    pub(super) look: usize,
    pub(super) sign: LegendSign,
}

/// The part above the plot area: title, subtitle and legend.
pub(super) struct Header<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    pub(super) legend: Vec<LegendEntry<'a>>,
}

const TITLE_SIZE: f64 = 16.0;
const TEXT_SIZE: f64 = 13.0;
const KEY_WIDTH: f64 = 26.0;
const LEGEND_GAP: f64 = 16.0;
const LEGEND_ROW: f64 = 21.0;

impl Header<'_> {
    /// Draws the header from `top` down; returns the y of its end.
    pub(super) fn draw(&self, top: f64, out: &mut Vec<Element>) -> f64 {
        let mut y = top;
        let most = WIDTH - 2.0 * PAD;
        for line in text::wrap(self.title, TITLE_SIZE, most) {
            y += 20.0;
            out.push(Element::text("title", PAD, y, "start", &line));
        }
        for line in text::wrap(self.subtitle, TEXT_SIZE, most) {
            y += 18.0;
            out.push(Element::text("quiet", PAD, y, "start", &line));
        }
        // A single series needs no legend: the title names it.
        if self.legend.len() > 1 { self.draw_legend(y + 8.0, out) } else { y + 10.0 }
    }

    fn draw_legend(&self, top: f64, out: &mut Vec<Element>) -> f64 {
        let (mut x, mut y) = (PAD, top + 14.0);
        for LegendEntry { name, look, sign } in &self.legend {
            let width = KEY_WIDTH + text::width(name, TEXT_SIZE);
            if x > PAD && x + width > WIDTH - PAD {
                (x, y) = (PAD, y + LEGEND_ROW);
            }
            draw_sign(*look, *sign, (x, y - 4.5), out);
            out.push(Element::text("label", x + KEY_WIDTH, y, "start", name));
            x += width + LEGEND_GAP;
        }
        y + 8.0
    }
}

fn draw_sign(look: usize, sign: LegendSign, (x, y): (f64, f64), out: &mut Vec<Element>) {
    let look = look % LOOKS;
    match sign {
        LegendSign::Bar => out.push(
            Element::rectangle(&format!("bar s{look}"), (x, y - 6.0), (18.0, 12.0)).set("rx", 2.0),
        ),
        LegendSign::Line { dashed, marked } => {
            let style = if dashed { "line dashed" } else { "line" };
            out.push(Element::line(&format!("{style} s{look}"), (x, y), (x + 20.0, y)));
            if marked {
                out.push(mark(look, (x + 10.0, y)));
            }
        }
    }
}
