//! Line charts.

use super::axis::Axis;
use super::description;
use super::element::{Element, length};
use super::figure::Figure;
use super::frame::{self, Area, PAD, Panel, WIDTH};
use super::header::{Header, LegendEntry, LegendSign};
use super::mark::{LOOKS, mark, star};
use super::number;
use super::scale::{Fit, Scale};
use super::series::{Series, Star};

/// The height of the plot area.
const HEIGHT: f64 = 220.0;
/// The largest number of marks per series; more would cover the line.
const MOST_MARKS: usize = 40;
/// The largest number of hover targets per series.
const MOST_TARGETS: usize = 80;
/// The horizontal resolution that lines are thinned to: about that of a screen.
const COLUMNS: usize = 400;

/// Values over a quantity, such as losses over steps or objectives over the number of classes.
///
/// ```
/// use f2_report::{Axis, LineChart, Series};
///
/// let chart = LineChart::new("Distinct-2 over K", Axis::new("classes K").whole(), Axis::new("%"))
///     .series(Series::new("F²", [(4.0, 71.0), (9.0, 75.5)]).star(9.0, 75.5, "MefMax"))
///     .reference("human", 76.2);
/// assert!(chart.to_svg().contains("human"));
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    title: String,
    subtitle: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    references: Vec<(String, f64)>,
}

/// The scales and plot area of a chart, which map values to pixels.
struct Plane {
    x: Scale,
    y: Scale,
    area: Area,
}

impl Plane {
    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let shown = self.x.shows(x) && self.y.shows(y);
        shown.then(|| (self.area.x(self.x.place(x)), self.area.y(self.y.place(y))))
    }
}

impl LineChart {
    /// A chart without lines.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (title, subtitle) = (title.into(), String::new());
        Self { title, subtitle, x, y, series: Vec::new(), references: Vec::new() }
    }

    /// A line of smaller text under the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a reference line.
    #[must_use]
    pub fn reference(mut self, name: impl Into<String>, y: f64) -> Self {
        self.references.push((name.into(), y));
        self
    }

    /// The chart as a standalone SVG file.
    pub fn to_svg(&self) -> String {
        Figure::new(&self.title).line_chart(self).to_svg()
    }

    pub(super) fn panel(&self) -> Panel {
        let mut elements = Vec::new();
        let below_header = self.header().draw(PAD, &mut elements);
        let top = frame::draw_upright_heading(&self.y, below_header, &mut elements);
        let plane = self.plane(top);
        frame::draw_upright(&plane.y, plane.area, &mut elements);
        let height = frame::draw_level(&self.x, &plane.x, plane.area, false, &mut elements);
        elements.push(baseline(plane.area));
        let mut lines: Vec<Element> = Vec::new();
        for (name, level) in self.references.iter().filter(|(_, level)| plane.y.shows(*level)) {
            let y = plane.area.y(plane.y.place(*level));
            frame::draw_reference(name, *level, y, plane.area, &mut lines);
        }
        for (index, series) in self.series.iter().enumerate() {
            draw_line(series.look_at(index), series, &plane, &mut lines);
        }
        for (index, series) in self.series.iter().enumerate() {
            self.draw_points(series.look_at(index), series, &plane, &mut lines);
        }
        elements.push(plane.area.clip(&lines));
        for (index, series) in self.series.iter().enumerate() {
            self.draw_stars(series.look_at(index), series, &plane, &mut elements);
        }
        Panel { height, elements, description: self.description() }
    }

    /// The lines, starred points and reference lines in words.
    fn description(&self) -> String {
        let mut sentences =
            vec![format!("Lines of {} over {}.", self.y.heading(), self.x.heading())];
        for series in &self.series {
            sentences.extend(description::course(&series.name, &series.points));
            for Star { x, y, label } in &series.stars {
                let (x, y) = (number::value(*x), number::value(*y));
                sentences.push(format!("{}, {label}: {y} at {x}.", series.name));
            }
        }
        let levels = self.references.iter();
        sentences.extend(levels.map(|(name, y)| format!("{name}: {}.", number::value(*y))));
        sentences.join(" ")
    }

    fn header<'a>(&'a self) -> Header<'a> {
        let entry = |(place, series): (usize, &'a Series)| LegendEntry {
            name: series.name.as_str(),
            look: series.look_at(place),
            sign: LegendSign::Line { dashed: series.dashed, marked: has_marks(series) },
        };
        let legend = self.series.iter().enumerate().map(entry);
        Header { title: &self.title, subtitle: &self.subtitle, legend: legend.collect() }
    }

    fn plane(&self, top: f64) -> Plane {
        let stars = |series: &Series| series.stars.iter().map(|star| (star.x, star.y)).collect();
        let all = |series: &Series| [series.points.clone(), stars(series)].concat();
        let points = || self.series.iter().flat_map(all);
        let levels = self.references.iter().map(|reference| reference.1);
        let y = Scale::new(&self.y, points().map(|(_, y)| y).chain(levels), Fit::Ticks, 5.0);
        let x = Scale::new(&self.x, points().map(|(x, _)| x), Fit::Values, 7.0);
        let left = PAD + frame::labels_width(&y) + 8.0;
        let area = Area { left, right: WIDTH - PAD - 8.0, top, bottom: top + HEIGHT };
        Plane { x, y, area }
    }

    fn draw_points(&self, look: usize, series: &Series, plane: &Plane, out: &mut Vec<Element>) {
        let every = |most: usize| series.points.len().div_ceil(most).max(1);
        let marked = if has_marks(series) { &series.points[..] } else { &[] };
        for place in marked.iter().step_by(every(MOST_MARKS)).filter_map(|&at| plane.place(at)) {
            out.push(mark(look, place));
        }
        for &point in series.points.iter().step_by(every(MOST_TARGETS)) {
            let Some((x, y)) = plane.place(point) else { continue };
            let hint = self.hint(&series.name, point);
            let target = Element::of_class("circle", "target").set("cx", x).set("cy", y);
            out.push(target.set("r", 7.0).hint(&hint));
        }
    }

    /// Draws stars. They are wider than the margin of the clipped area, so they are drawn outside
    /// it.
    fn draw_stars(&self, look: usize, series: &Series, plane: &Plane, out: &mut Vec<Element>) {
        for chosen in &series.stars {
            let point = (chosen.x, chosen.y);
            let Some(place) = plane.place(point).filter(|&place| plane.area.holds(place)) else {
                continue;
            };
            let hint = format!("{}\n{}", self.hint(&series.name, point), chosen.label);
            out.push(star(look, place).hint(&hint));
        }
    }

    fn hint(&self, name: &str, (x, y): (f64, f64)) -> String {
        let (x_name, y_name) = (self.x.heading(), self.y.heading());
        format!("{name}\n{x_name}: {}\n{y_name}: {}", number::value(x), number::value(y))
    }
}

fn baseline(Area { left, right, bottom, .. }: Area) -> Element {
    Element::line("axis", (left, bottom), (right, bottom))
}

fn draw_line(look: usize, series: &Series, plane: &Plane, out: &mut Vec<Element>) {
    let style = match (series.dashed, series.points.len() > COLUMNS) {
        (true, _) => "line dashed",
        (false, true) => "line dense",
        (false, false) => "line",
    };
    let path = path(&thinned(&series.points, plane));
    if !path.is_empty() {
        let line = Element::of_class("path", &format!("{style} s{}", look % LOOKS));
        out.push(line.set("d", path).hint(&series.name));
    }
}

fn has_marks(series: &Series) -> bool {
    series.points.len() <= COLUMNS
}

/// The positions of a line's points, `None` for a gap. Of many points in one column of pixels, only
/// the first, the lowest, the highest and the last are kept, which look the same.
fn thinned(points: &[(f64, f64)], plane: &Plane) -> Vec<Option<(f64, f64)>> {
    let places: Vec<Option<(f64, f64)>> = points.iter().map(|&point| plane.place(point)).collect();
    let per_column = places.len().div_ceil(COLUMNS);
    if per_column <= 4 {
        return places;
    }
    let thin = |column: &[Option<(f64, f64)>]| {
        let height = |index: &usize| column[*index].map_or(0.0, |(_, y)| y);
        let by_height = |one: &usize, other: &usize| height(one).total_cmp(&height(other));
        let last = column.len() - 1;
        let lowest = (0..=last).min_by(by_height).unwrap_or(0);
        let highest = (0..=last).max_by(by_height).unwrap_or(0);
        let mut kept = vec![0, lowest, highest, last];
        kept.extend((0..=last).filter(|&index| column[index].is_none()));
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().map(|index| column[index]).collect::<Vec<_>>()
    };
    places.chunks(per_column).flat_map(thin).collect()
}

fn path(places: &[Option<(f64, f64)>]) -> String {
    let mut path = String::new();
    let mut command = 'M';
    for place in places {
        let Some((x, y)) = place else {
            command = 'M';
            continue;
        };
        path.extend([String::from(command), length(*x), " ".to_owned(), length(*y)]);
        command = 'L';
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        let series = Series::new("loss", points);
        LineChart::new("t", Axis::new("step"), Axis::new("loss").log()).series(series).to_svg()
    }

    #[test]
    fn values_that_cannot_be_shown_leave_a_gap() {
        let svg = chart(vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 0.0), (4.0, 3.0)]);
        let path = svg.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_long_line_keeps_its_spikes_and_little_else() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|x| (f64::from(x), 2.0)).collect();
        points[54_321].1 = 9.0;
        let svg = chart(points);
        assert!(svg.len() < 60_000, "{}", svg.len());
        let spike = chart(vec![(0.0, 2.0), (54_321.0, 9.0), (99_999.0, 2.0)]);
        let top = |svg: &str| svg.split(['M', 'L']).filter(|part| part.ends_with(" 54")).count();
        assert_eq!(top(&svg), top(&spike));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_frame() {
        assert!(chart(Vec::new()).contains("</svg>"));
    }
}
