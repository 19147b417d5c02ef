//! A figure of each kind, for visual inspection:
//! `cargo run -p f2-report --example gallery -- FOLDER`.

use std::path::PathBuf;

use f2_report::{Axis, BarChart, Direction, Figure, LineChart, Series};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let figures = [
        ("loss", Figure::new("Loss").line_chart(&loss())),
        ("metric", Figure::new("Metric").line_chart(&metric())),
        ("bands", Figure::new("Bands").bar_chart(&bands())),
        ("speed", Figure::new("Speed").bar_chart(&speed())),
        ("both", Figure::new("Loss and bands").line_chart(&loss()).bar_chart(&bands())),
    ];
    for (name, figure) in figures {
        std::fs::write(folder.join(name).with_extension("svg"), figure.to_svg())?;
    }
    Ok(())
}

/// A series of thousands of points on a logarithmic axis, and one of a few.
fn loss() -> LineChart {
    let training = (1..=20_000).map(|step| {
        let step = f64::from(step);
        (step, 3.2 + 7.0 * (-step / 900.0).exp() + 2.0 / step.sqrt() + 0.12 * (step * 1.7).sin())
    });
    let validation = (1..=20).map(|point| {
        let step = f64::from(point) * 1_000.0;
        (step, 3.45 + 6.0 * (-step / 900.0).exp() + 2.0 / step.sqrt())
    });
    LineChart::new(
        "Loss",
        Axis::new("training step"),
        Axis::new("loss").unit("nats per token").log(),
    )
    .subtitle("An invented run: 20,000 steps, validated every 1,000")
    .series(Series::new("training", training))
    .series(Series::new("validation", validation).star(20_000.0, 3.464, "best checkpoint"))
}

/// A score over K with a reference line.
fn metric() -> LineChart {
    let over = |points: [f64; 6]| [2.0, 4.0, 8.0, 12.0, 16.0, 24.0].into_iter().zip(points);
    LineChart::new(
        "MS-Jaccard-2 over the number of classes",
        Axis::new("classes K").whole(),
        Axis::new("MS-Jaccard-2").unit("%"),
    )
    .subtitle("Invented values; the star is the K that MefMax chooses")
    .series(
        Series::new("fixed-eq-freq", over([47.9, 49.6, 51.4, 52.0, 51.7, 50.4]))
            .star(13.0, 52.4, "MefMax"),
    )
    .series(Series::new("fixed-eq-token", over([47.6, 48.1, 48.8, 49.2, 49.0, 48.7])).dashed())
    .reference("MLE", 47.3)
}

fn bands() -> BarChart {
    BarChart::new("Tokens by frequency band", Direction::Up, ["frequent", "medium", "low", "rare"])
        .subtitle("Share of generated tokens in each quarter of the human distribution")
        .categories_axis("frequency band")
        .values_axis(Axis::new("share of tokens").unit("%"))
        .group("human", [25.0, 25.0, 25.0, 25.0])
        .group("MLE", [34.1, 26.0, 21.9, 18.0])
        .group("UL-token", [31.0, 27.4, 22.6, 19.0])
        .group("F²-Softmax", [26.6, 25.1, 24.5, 23.8])
        .reference("even", 25.0)
}

fn speed() -> BarChart {
    let names = ["PyTorch, eager", "PyTorch, compiled", "this engine", "matrix products alone"];
    BarChart::new("One training step", Direction::Right, names)
        .values_axis(Axis::new("time").unit("ms"))
        .group("plain softmax", [19.5, 17.6, 11.0, 4.5])
        .group("F²-Softmax", [31.5, 28.4, 9.0, 3.9])
}
