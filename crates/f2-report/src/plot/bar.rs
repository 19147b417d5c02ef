//! Bar charts.

use super::axis::Axis;
use super::element::Element;
use super::figure::Figure;
use super::frame::{self, Area, PAD, Panel, TICK_SIZE, WIDTH};
use super::header::{Header, LegendEntry, LegendSign};
use super::mark::LOOKS;
use super::scale::{Fit, Scale};
use super::{description, number, text};

/// The height of the plot area with vertical bars.
const HEIGHT: f64 = 200.0;
/// The height of a horizontal bar, and of the gap between groups.
const LEVEL_BAR: f64 = 16.0;
const LEVEL_GAP: f64 = 12.0;
/// The share of a category's width that its bars occupy.
const FILLED: f64 = 0.78;

/// The direction of the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Upwards, for a few ordered categories with short names.
    Up,
    /// To the right, for long names.
    Right,
}

/// Values by category, with one bar or a group of bars each.
///
/// ```
/// use f2_report::{Axis, BarChart, Direction};
///
/// let chart = BarChart::new("Words by frequency", Direction::Up, ["frequent", "medium", "rare"])
///     .values_axis(Axis::new("share").unit("%"))
///     .group("human", [61.0, 25.0, 14.0])
///     .group("MLE", [70.0, 22.0, 8.0]);
/// assert!(chart.to_svg().contains("MLE"));
/// ```
#[derive(Clone, Debug)]
pub struct BarChart {
    title: String,
    subtitle: String,
    direction: Direction,
    categories: Vec<String>,
    categories_axis: Axis,
    values_axis: Axis,
    groups: Vec<Group>,
    references: Vec<(String, f64)>,
}

/// One bar for every category, in the same colour.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
    look: usize,
}

impl Group {
    pub(super) fn new(name: impl Into<String>, values: Vec<f64>, look: usize) -> Self {
        Self { name: name.into(), values, look }
    }
}

impl BarChart {
    /// A chart without bars.
    pub fn new<C: Into<String>>(
        title: impl Into<String>,
        direction: Direction,
        categories: impl IntoIterator<Item = C>,
    ) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            direction,
            categories: categories.into_iter().map(Into::into).collect(),
            categories_axis: Axis::default(),
            values_axis: Axis::default(),
            groups: Vec::new(),
            references: Vec::new(),
        }
    }

    /// A line of smaller text under the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The heading of the categories.
    #[must_use]
    pub fn categories_axis(mut self, title: impl Into<String>) -> Self {
        self.categories_axis = Axis::new(title);
        self
    }

    /// The axis of the values. Bars start at 0, so the axis is linear.
    #[must_use]
    pub fn values_axis(mut self, axis: Axis) -> Self {
        self.values_axis = axis;
        self.values_axis.log = false;
        self
    }

    /// Adds a bar to every category. A value that is not finite has no bar.
    ///
    /// # Panics
    /// If there is not one value per category.
    #[must_use]
    pub fn group(self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let look = self.groups.len();
        self.group_in(look, name, values)
    }

    /// Adds a bar to every category, in the colour of this look.
    ///
    /// # Panics
    /// If there is not one value per category.
    #[must_use]
    pub fn group_in(
        mut self,
        look: usize,
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        assert_eq!(values.len(), self.categories.len(), "a group has one value per category");
        self.groups.push(Group::new(name, values, look));
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn reference(mut self, name: impl Into<String>, value: f64) -> Self {
        self.references.push((name.into(), value));
        self
    }

    /// The chart as a standalone SVG file.
    pub fn to_svg(&self) -> String {
        Figure::new(&self.title).bar_chart(self).to_svg()
    }

    pub(super) fn panel(&self) -> Panel {
        let mut elements = Vec::new();
        let below_header = self.header().draw(PAD, &mut elements);
        let height = match self.direction {
            Direction::Up => self.draw_upright(below_header, &mut elements),
            Direction::Right => self.draw_level(below_header, &mut elements),
        };
        Panel { height, elements, description: self.description() }
    }

    /// The bars and reference lines in words.
    fn description(&self) -> String {
        let by = match self.categories_axis.heading() {
            heading if heading.is_empty() => String::new(),
            heading => format!(" by {heading}"),
        };
        let mut sentences = vec![
            format!("Bars of {}{by}.", self.values_axis.heading()),
            description::bars(&self.categories, &self.groups),
        ];
        let levels = self.references.iter();
        sentences.extend(levels.map(|(name, level)| format!("{name}: {}.", number::value(*level))));
        sentences.join(" ")
    }

    fn header(&self) -> Header<'_> {
        let entries = self.groups.iter().map(|Group { name, look, .. }| LegendEntry {
            name,
            look: *look,
            sign: LegendSign::Bar,
        });
        Header { title: &self.title, subtitle: &self.subtitle, legend: entries.collect() }
    }

    fn scale(&self) -> Scale {
        let values = self.groups.iter().flat_map(|group| group.values.iter().copied());
        let levels = self.references.iter().map(|reference| reference.1);
        Scale::new(&self.values_axis, values.chain(levels).chain([0.0]), Fit::Ticks, 5.0)
    }

    fn draw_upright(&self, below_header: f64, out: &mut Vec<Element>) -> f64 {
        let top = frame::draw_upright_heading(&self.values_axis, below_header, out);
        let scale = self.scale();
        let left = PAD + frame::labels_width(&scale) + 8.0;
        let area = Area { left, right: WIDTH - PAD, top, bottom: top + HEIGHT };
        frame::draw_upright(&scale, area, out);
        self.draw_bars(area.right - area.left, out, |from, width, value| {
            let (base, tip) = (area.y(scale.place(0.0)), area.y(scale.place(value)));
            ((area.left + from, base.min(tip)), (width, (base - tip).abs()))
        });
        let base = area.y(scale.place(0.0));
        out.push(Element::line("axis", (area.left, base), (area.right, base)));
        for (name, level) in &self.references {
            frame::draw_reference(name, *level, area.y(scale.place(*level)), area, out);
        }
        self.draw_names_below(area, out);
        let (centre, heading) =
            (f64::midpoint(area.left, area.right), self.categories_axis.heading());
        out.push(Element::text("quiet", centre, area.bottom + 38.0, "middle", &heading));
        area.bottom + if heading.is_empty() { 20.0 } else { 38.0 } + PAD
    }

    /// Names below vertical bars; if they would overlap, only every second, third, … is shown.
    fn draw_names_below(&self, area: Area, out: &mut Vec<Element>) {
        let slot = (area.right - area.left) / self.categories.len().max(1) as f64;
        let widths = self.categories.iter().map(|name| text::width(name, TICK_SIZE) + 6.0);
        let every = (widths.fold(0.0, f64::max) / slot).ceil().max(1.0) as usize;
        for (index, name) in self.categories.iter().enumerate().step_by(every) {
            let x = area.left + (index as f64 + 0.5) * slot;
            out.push(Element::text("tick", x, area.bottom + 18.0, "middle", name));
        }
    }

    fn draw_level(&self, below_header: f64, out: &mut Vec<Element>) -> f64 {
        let top = below_header + 10.0;
        let slot = LEVEL_BAR * self.groups.len().max(1) as f64 + LEVEL_GAP;
        let widths = self.categories.iter().map(|name| text::width(name, 13.0));
        let left = PAD + widths.fold(0.0, f64::max).min(WIDTH / 2.0) + 8.0;
        let bottom = top + slot * self.categories.len() as f64;
        let area = Area { left, right: WIDTH - PAD - 12.0, top, bottom };
        let scale = self.scale();
        let height = frame::draw_level(&self.values_axis, &scale, area, true, out);
        self.draw_bars(area.bottom - area.top, out, |from, width, value| {
            let (base, tip) = (area.x(scale.place(0.0)), area.x(scale.place(value)));
            ((base.min(tip), area.top + from), ((base - tip).abs(), width))
        });
        let base = area.x(scale.place(0.0));
        out.push(Element::line("axis", (base, area.top), (base, area.bottom)));
        for (index, name) in self.categories.iter().enumerate() {
            let y = area.top + (index as f64 + 0.5) * slot + 4.5;
            out.push(Element::text("label", area.left - 8.0, y, "end", name));
        }
        for (name, level) in &self.references {
            let x = area.x(scale.place(*level));
            let hint = format!("{name}: {}", number::value(*level));
            out.push(Element::line("reference", (x, area.top - 4.0), (x, area.bottom)).hint(&hint));
            out.push(Element::text("note", x, area.top - 6.0, "middle", name));
        }
        height
    }

    /// Draws every bar; `rectangle` returns its corner and size from its start along the
    /// categories, its width and its value.
    fn draw_bars(
        &self,
        along: f64,
        out: &mut Vec<Element>,
        rectangle: impl Fn(f64, f64, f64) -> ((f64, f64), (f64, f64)),
    ) {
        let slot = along / self.categories.len().max(1) as f64;
        let pitch = slot * FILLED / self.groups.len().max(1) as f64;
        // A hairline gap between neighbours, if they are wide enough.
        let width = if pitch > 5.0 { pitch - 1.0 } else { pitch };
        for (index, Group { name, values, look }) in self.groups.iter().enumerate() {
            let class = format!("bar s{}", look % LOOKS);
            for (place, (category, &value)) in self.categories.iter().zip(values).enumerate() {
                if value.is_finite() {
                    let slot_start = (place as f64 + (1.0 - FILLED) / 2.0) * slot;
                    let (corner, size) = rectangle(slot_start + index as f64 * pitch, width, value);
                    let bar = Element::rectangle(&class, corner, size).set("rx", 1.5);
                    out.push(bar.hint(&self.hint(name, category, value)));
                }
            }
        }
    }

    fn hint(&self, name: &str, category: &str, value: f64) -> String {
        let measure = self.values_axis.heading();
        let axis = self.categories_axis.heading();
        format!("{name}\n{axis} {category}\n{measure}: {}", number::value(value))
    }
}
