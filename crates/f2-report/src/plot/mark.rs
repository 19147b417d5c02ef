//! Marks: a different shape for each look.

use super::element::{Element, length};

/// The number of looks, combinations of a colour and a mark: six for models and human text, three
/// for other series. Larger numbers wrap around.
pub const LOOKS: usize = 9;

/// The mark of a look. The shapes differ, so that series are not told apart by colour alone.
pub(super) fn mark(look: usize, (x, y): (f64, f64)) -> Element {
    let class = format!("mark s{}", look % LOOKS);
    match look % LOOKS {
        0 => Element::of_class("circle", &class).set("cx", x).set("cy", y).set("r", 3.4),
        1 => polygon(&class, &around(x, y, 4.2, 4, 0.125)),
        2 => polygon(&class, &around(x, y, 4.6, 3, 0.0)),
        3 => polygon(&class, &around(x, y, 4.6, 4, 0.0)),
        4 => polygon(&class, &around(x, y, 4.6, 3, 0.5)),
        5 => polygon(&class, &around(x, y, 4.2, 6, 0.0)),
        6 => polygon(&class, &around(x, y, 4.4, 5, 0.0)),
        7 => polygon(&class, &around(x, y, 4.4, 5, 0.5)),
        _ => polygon(&class, &around(x, y, 4.2, 8, 0.0625)),
    }
}

/// A star in the colour of a look.
pub(super) fn star(look: usize, (x, y): (f64, f64)) -> Element {
    let (outer, inner) = (around(x, y, 10.0, 5, 0.0), around(x, y, 4.4, 5, 0.1));
    let points: Vec<_> = outer.into_iter().zip(inner).flat_map(|(tip, dent)| [tip, dent]).collect();
    polygon(&format!("star s{}", look % LOOKS), &points)
}

fn polygon(class: &str, points: &[(f64, f64)]) -> Element {
    let listed: Vec<String> =
        points.iter().map(|&(x, y)| format!("{},{}", length(x), length(y))).collect();
    Element::of_class("polygon", class).set("points", listed.join(" "))
}

/// Corners on a circle; the first is at the top, rotated by a fraction of a turn.
fn around(x: f64, y: f64, radius: f64, corners: usize, turn: f64) -> Vec<(f64, f64)> {
    let corner = |index: usize| {
        let angle = std::f64::consts::TAU * (index as f64 / corners as f64 + turn);
        (x + radius * angle.sin(), y - radius * angle.cos())
    };
    (0..corners).map(corner).collect()
}
