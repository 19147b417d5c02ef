//! A line of a chart.

/// Values under one name, drawn in one colour with one mark.
///
/// ```
/// use f2_report::Series;
/// let series = Series::new("greedy", [(1.0, 1.66), (2.0, 1.85)]).star(2.0, 1.85, "chosen");
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) dashed: bool,
    pub(super) look: Option<usize>,
    pub(super) stars: Vec<Star>,
}

/// A highlighted point.
#[derive(Clone, Debug)]
pub(super) struct Star {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) label: String,
}

impl Series {
    /// A line through points in the given order. A value that is not finite leaves a gap.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), points, dashed: false, look: None, stars: Vec::new() }
    }

    /// Draws the line dashed, for a comparison.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Sets the colour and mark, instead of those of its position in the chart.
    #[must_use]
    pub fn look(mut self, look: usize) -> Self {
        self.look = Some(look);
        self
    }

    /// The number of its colour and mark, given its position in the chart.
    pub(super) fn look_at(&self, place: usize) -> usize {
        self.look.unwrap_or(place)
    }

    /// Marks a point with a star; its tooltip shows the label.
    #[must_use]
    pub fn star(mut self, x: f64, y: f64, label: impl Into<String>) -> Self {
        self.stars.push(Star { x, y, label: label.into() });
        self
    }
}
