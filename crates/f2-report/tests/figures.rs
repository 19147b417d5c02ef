//! Figures are well-formed, accurate and readable.

use f2_report::{Axis, BarChart, Direction, FIGURE_STYLE, Figure, LineChart, Series};

/// The names of the elements that are still open at the end. Panics if the wrong one is closed.
fn unbalanced(svg: &str) -> Vec<String> {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or_default();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    open
}

fn bars(direction: Direction) -> BarChart {
    BarChart::new("Bars", direction, ["a & b", "<c>"])
        .values_axis(Axis::new("share").unit("%"))
        .group("one", [10.0, 40.0])
        .group("two", [-20.0, f64::NAN])
        .reference("level", 25.0)
}

fn line() -> LineChart {
    LineChart::new("A \"line\"", Axis::new("x").log(), Axis::new("y").from(0.0).to(2.0))
        .subtitle("with & without")
        .series(Series::new("s<1>", [(1.0, 1.0), (10.0, 3.0), (100.0, 0.5)]).star(10.0, 1.5, "why"))
        .series(Series::new("flat", [(1.0, 1.0)]).dashed())
        .reference("r", 1.0)
}

#[test]
fn documents_are_well_formed_and_text_is_escaped() {
    let figure = Figure::new("all \"of\" <them>")
        .line_chart(&line())
        .bar_chart(&bars(Direction::Up))
        .bar_chart(&bars(Direction::Right));
    let svg = figure.to_svg();
    assert!(unbalanced(&svg).is_empty(), "{svg}");
    for text in ["a &amp; b", "&lt;c&gt;", "s&lt;1&gt;", "all &quot;of&quot; &lt;them&gt;"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(line().to_svg(), line().to_svg());
}

#[test]
fn bars_are_as_long_as_their_values() {
    for (direction, side) in [(Direction::Up, "height"), (Direction::Right, "width")] {
        let svg = bars(direction).to_svg();
        let lengths: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect class=\"bar") && line.ends_with("rx=\"1.5\">"))
            .map(|line| {
                let after = line.split(&format!(" {side}=\"")).nth(1).unwrap();
                after.split('"').next().unwrap().parse().unwrap()
            })
            .collect();
        // Rounded to a hundredth of a pixel each.
        assert_eq!(lengths.len(), 3, "{svg}");
        assert!((lengths[1] - 4.0 * lengths[0]).abs() < 0.05, "{lengths:?}");
        assert!((lengths[2] - 2.0 * lengths[0]).abs() < 0.05, "{lengths:?}");
    }
}

#[test]
fn pointing_at_a_mark_shows_its_numbers() {
    let svg = line().to_svg();
    assert!(svg.contains("<title>s&lt;1&gt;\nx: 100\ny: 0.5</title>"), "{svg}");
    assert!(svg.contains("x: 10\ny: 1.5\nwhy</title>"), "{svg}");
}

#[test]
fn the_name_of_a_level_at_the_top_stands_below_it() {
    let below = |level: f64| {
        let svg = LineChart::new("t", Axis::new("x"), Axis::new("y").from(0.0).to(100.0))
            .series(Series::new("s", [(0.0, 20.0), (1.0, 80.0)]))
            .reference("MLE", level)
            .to_svg();
        let y = |class: &str, name: &str| -> f64 {
            let element = svg.split(&format!("class=\"{class}\"")).nth(1).unwrap();
            let value = element.split(&format!(" {name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        y("note", "y") > y("reference", "y1")
    };
    assert!(below(99.9) && !below(50.0) && !below(0.1));
}

#[test]
fn a_page_can_carry_the_style_once() {
    let figure = Figure::new("f").line_chart(&line());
    assert!(figure.to_svg().contains(FIGURE_STYLE));
    assert!(!figure.to_inline_svg().contains("<style"));
    assert!(FIGURE_STYLE.contains("prefers-color-scheme: dark"));
}
