//! The space of decoding settings, as points of the unit cube.

use f2_lm::decode::{ClassDraw, Factorisation, Strategy, Truncations};

/// The space of settings for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Whether classes are sampled first.
    pub factorised: bool,
    /// The model's vocabulary size.
    pub vocabulary: usize,
    /// Whether the k of top-k may grow with the class. No effect without classes.
    pub k_per_class: bool,
}

/// The truncation of the token distribution, within the class if there are classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    TopK,
    TopP,
    MinP,
    Typical,
}

impl Rule {
    pub(super) const ALL: [Self; 4] = [Self::TopK, Self::TopP, Self::MinP, Self::Typical];
}

/// A setting: a truncation rule, and coordinates from 0 to 1 for the temperature, the rule's
/// parameter, the class temperature, the class nucleus and the growth of k.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub(super) rule: Rule,
    pub(super) at: Vec<f64>,
}

/// The largest k.
const MOST_K: f64 = 1_000.0;
/// The range of min-p.
const MIN_P: (f64, f64) = (0.001, 0.5);
/// The range of temperatures.
const TEMPERATURES: (f64, f64) = (0.5, 1.5);
/// The smallest masses. Masses reach 1 before the end of their side, so that a positive share of it
/// keeps all tokens or classes.
const LEAST_MASS: f64 = 0.3;
const LEAST_CLASS_MASS: f64 = 0.5;
const ALL_MASS: f64 = 1.1;
/// The range of the growth of k. Negative values are clipped to 0, so that the same k for all
/// classes has a positive share of the side.
const GROWTHS: (f64, f64) = (-0.1, 1.0);

impl Space {
    /// The number of coordinates of a point with this rule.
    pub(super) fn dimensions(self, rule: Rule) -> usize {
        let k_grows = self.factorised && self.k_per_class && rule == Rule::TopK;
        let others = if self.factorised { 4 } else { 2 };
        others + usize::from(k_grows)
    }

    /// The strategy of a point, with parameters rounded for readability.
    pub fn strategy(self, point: &Point) -> Strategy {
        let Point { rule, at } = point;
        let hundredths = |value: f64| (value * 100.0).round() / 100.0;
        let between = |(least, most): (f64, f64), at: f64| least + (most - least) * at;
        let temperature = |at: f64| hundredths(between(TEMPERATURES, at));
        let mass = |least: f64, at: f64| hundredths(between((least, ALL_MASS), at).min(1.0));
        let part = |mass: f64| (mass < 1.0).then_some(mass);
        let all = Truncations::default();
        let truncations = match rule {
            Rule::TopK => {
                let most = MOST_K.min(self.vocabulary as f64);
                all.with_top_k(most.powf(at[1]).round().max(1.0) as usize)
            }
            Rule::TopP => all.with_top_p(part(mass(LEAST_MASS, at[1]))),
            Rule::Typical => all.with_typical(part(mass(LEAST_MASS, at[1]))),
            Rule::MinP => {
                let (least, most) = MIN_P;
                // A larger coordinate keeps more, as with the other rules.
                let share = most * (least / most).powf(at[1]);
                all.with_min_p((share * 1_000.0).round() / 1_000.0)
            }
        };
        let mut draw = ClassDraw::default();
        if self.factorised {
            draw.temperature = temperature(at[2]);
            draw.top_p = mass(LEAST_CLASS_MASS, at[3]);
        }
        if let Some(at) = at.get(4) {
            draw.top_k_growth = hundredths(between(GROWTHS, *at).max(0.0));
        }
        Strategy {
            temperature: temperature(at[0]),
            truncations,
            factorisation: Factorisation::Decoupled(draw),
            ..Strategy::default()
        }
    }

    /// Top-k with this k on the model's own probabilities, as in untuned decoding.
    pub(super) fn top_k(self, k: usize) -> Point {
        let most = MOST_K.min(self.vocabulary as f64).ln();
        let rule_at = if most > 0.0 { ((k as f64).ln() / most).min(1.0) } else { 0.0 };
        let mut at = vec![0.5, rule_at, 0.5, 1.0, 0.0];
        at.truncate(self.dimensions(Rule::TopK));
        Point { rule: Rule::TopK, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untuned_decoding_is_a_point() {
        for (factorised, k_per_class) in [(false, false), (true, false), (true, true)] {
            for (vocabulary, k) in [(30_000, 3), (30_000, 20), (50, 3), (2, 1)] {
                let space = Space { factorised, vocabulary, k_per_class };
                assert_eq!(space.strategy(&space.top_k(k)), Strategy::top_k(k), "{space:?} {k}");
            }
        }
    }

    #[test]
    fn every_corner_can_be_followed() {
        let space = Space { factorised: true, vocabulary: 40, k_per_class: true };
        let shape = f2_lm::model::ModelShape {
            model: f2_lm::config::ModelConfig::default(),
            positions: 8,
            vocabulary: 40,
            class_ends: vec![3, 40],
        };
        for rule in Rule::ALL {
            let sides = space.dimensions(rule);
            for corner in 0..1_u32 << sides {
                let at = (0..sides).map(|side| f64::from(corner >> side & 1)).collect();
                space.strategy(&Point { rule, at }).check(&shape).unwrap();
            }
        }
    }

    #[test]
    fn only_the_k_of_a_class_grows_and_one_for_all_is_a_part_of_its_side() {
        let growth = |space: Space, rule, at| {
            let at = (0..space.dimensions(rule)).map(|side| if side == 4 { at } else { 0.5 });
            let Factorisation::Decoupled(draw) =
                space.strategy(&Point { rule, at: at.collect() }).factorisation
            else {
                unreachable!("the space draws classes")
            };
            draw.top_k_growth
        };
        let space = Space { factorised: true, vocabulary: 40, k_per_class: true };
        // -0.1 + 1.1 · 0.4 = 0.34.
        let found = [0.0, 0.09, 0.4, 1.0].map(|at| growth(space, Rule::TopK, at));
        assert_eq!(found, [0.0, 0.0, 0.34, 1.0]);
        assert_eq!(growth(space, Rule::TopP, 1.0), 0.0);
        assert_eq!(growth(Space { k_per_class: false, ..space }, Rule::TopK, 1.0), 0.0);
        assert_eq!(growth(Space { factorised: false, ..space }, Rule::TopK, 1.0), 0.0);
    }
}
