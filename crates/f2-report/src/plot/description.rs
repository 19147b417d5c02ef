//! Descriptions of charts for screen readers.

use super::bar::Group;
use super::number;

/// The first and last point of a line, and its lowest and highest value if they lie between.
pub(super) fn course(name: &str, points: &[(f64, f64)]) -> Option<String> {
    let shown = || points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
    let (first, last) = (shown().next()?, shown().next_back()?);
    let place = |(x, y): (f64, f64)| format!("{} at {}", number::value(y), number::value(x));
    if first == last {
        return Some(format!("{name}: {}.", place(first)));
    }
    let by_height = |one: &(f64, f64), other: &(f64, f64)| one.1.total_cmp(&other.1);
    let extremes = [("lowest", shown().min_by(by_height)), ("highest", shown().max_by(by_height))];
    let between = extremes.into_iter().filter_map(|(word, point)| {
        let point = point.filter(|point| point.1 != first.1 && point.1 != last.1)?;
        Some(format!(", {word} {}", place(point)))
    });
    let between: String = between.collect();
    Some(format!("{name}: from {} to {}{between}.", place(first), place(last)))
}

/// The largest number of bars that are listed; more are summarised by their range.
const MOST_BARS: usize = 30;

/// All bars by category, or the smallest and largest of each group.
pub(super) fn bars(categories: &[String], groups: &[Group]) -> String {
    let named = |values: &[f64]| -> Vec<(String, f64)> {
        let all = categories.iter().cloned().zip(values.iter().copied());
        all.filter(|(_, value)| value.is_finite()).collect()
    };
    if categories.len() * groups.len() > MOST_BARS {
        let group = |Group { name, values, .. }: &Group| {
            let values = named(values);
            let least = values.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
            let most = values.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
            let told = |(category, value): &(String, f64)| {
                format!("{} ({category})", number::value(*value))
            };
            Some(format!("{name}: from {} to {}.", told(least), told(most)))
        };
        return groups.iter().filter_map(group).collect::<Vec<_>>().join(" ");
    }
    let category = |(place, category): (usize, &String)| {
        let values = groups.iter().filter(|group| group.values[place].is_finite());
        let values = values.map(|Group { name, values, .. }| match groups.len() {
            1 => number::value(values[place]),
            _ => format!("{name} {}", number::value(values[place])),
        });
        format!("{category}: {}.", values.collect::<Vec<_>>().join(", "))
    };
    categories.iter().enumerate().map(category).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_ends_and_what_lies_beyond_them() {
        let told = |points: &[(f64, f64)]| course("loss", points).unwrap();
        assert_eq!(
            told(&[(1.0, 8.0), (2.0, 3.0), (3.0, f64::NAN), (4.0, 3.5)]),
            "loss: from 8 at 1 to 3.5 at 4, lowest 3 at 2."
        );
        assert_eq!(told(&[(9.0, 2.0)]), "loss: 2 at 9.");
        assert_eq!(course("loss", &[]), None);
    }

    #[test]
    fn many_bars_are_told_by_their_range() {
        let names: Vec<String> = (1..=40).map(|class| format!("class {class}")).collect();
        let values = (1..=40).map(f64::from).collect();
        assert_eq!(
            bars(&names, &[Group::new("mass", values, 0)]),
            "mass: from 1 (class 1) to 40 (class 40)."
        );
        let groups = [Group::new("a", vec![1.5], 0), Group::new("b", vec![f64::NAN], 1)];
        assert_eq!(bars(&names[..1], &groups), "class 1: a 1.5.");
    }
}
