//! An axis: its heading, unit and scale.

/// An axis: its heading and kind of scale.
///
/// ```
/// let axis = f2_report::Axis::new("training step").unit("thousands").log();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Axis {
    title: String,
    unit: Option<String>,
    pub(super) log: bool,
    pub(super) bound: Option<f64>,
    pub(super) whole: bool,
    pub(super) from: Option<f64>,
    pub(super) to: Option<f64>,
}

impl Axis {
    /// A linear axis that spans its values.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the unit, which is shown in parentheses.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// A logarithmic axis; values that are not above zero are left out.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    /// An axis for values that approach an upper bound: logarithmic in the distance to it, so that
    /// for a bound of 2, the values 1.9, 1.99 and 1.999 are equally far apart.
    #[must_use]
    pub fn approaching(mut self, bound: f64) -> Self {
        self.log = true;
        self.bound = Some(bound);
        self
    }

    /// Ticks at integers only, for counts.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Starts the axis at this value; smaller values are clipped.
    #[must_use]
    pub fn from(mut self, least: f64) -> Self {
        self.from = Some(least);
        self
    }

    /// Ends the axis at this value; larger values are clipped.
    #[must_use]
    pub fn to(mut self, most: f64) -> Self {
        self.to = Some(most);
        self
    }

    /// The quantity on the scale: the value, or its distance to the bound.
    pub(super) fn measure(&self, value: f64) -> f64 {
        // Rounding may put a value on its bound, which is not on the logarithmic axis.
        self.bound.map_or(
            value,
            |bound| if value.is_finite() { (bound - value).max(1e-6) } else { value },
        )
    }

    pub(super) fn heading(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.title),
            None => self.title.clone(),
        }
    }
}
