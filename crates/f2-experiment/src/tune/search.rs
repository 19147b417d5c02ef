//! The search: many settings are evaluated on a part of the texts, the best of them on all texts,
//! and a local search starts from the best of those.

use f2_lm::decode::Strategy;

use super::space::{Point, Rule, Space};

/// How many texts a setting is evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A part, for the exploration.
    Part,
    /// All texts.
    Whole,
}

/// The result of evaluating a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judged {
    /// The distance to human text; `None` if it is not defined.
    Distance(Option<f64>),
    /// The search must end.
    Ended,
}

/// Evaluates settings within a budget.
pub trait Judge {
    /// An error that ends the search.
    type Error;

    /// Evaluates a setting.
    fn judge(&mut self, strategy: &Strategy, size: Size) -> Result<Judged, Self::Error>;

    /// The share of the budget that is left, from 1 down.
    fn left(&self) -> f64;
}

/// The share of the budget that is left when the exploration ends.
const AFTER_EXPLORING: f64 = 0.7;
/// The largest number of settings explored.
const MOST_EXPLORED: usize = 96;
/// The largest number of them that are evaluated on all texts.
const PROMOTED: usize = 6;
/// The first step of the local search, in units of the side of the space, and the smallest.
const FIRST_STEP: f64 = 0.16;
const LAST_STEP: f64 = 0.02;
/// The number of local searches in the first round.
const WALKERS: usize = 4;

/// Searches for the setting closest to human text until the budget is spent. `usual_k` is the k of
/// untuned decoding, which is evaluated first.
pub fn search<J: Judge>(
    space: Space,
    usual_k: usize,
    seed: u64,
    judge: &mut J,
) -> Result<(), J::Error> {
    let mut walk = Walk { space, judge, ended: false };
    let usual = space.top_k(usual_k);
    let first = walk.distance(&usual, Size::Whole)?;
    let mut looked = Vec::from([(usual.clone(), walk.distance(&usual, Size::Part)?)]);
    for number in 0..MOST_EXPLORED {
        if walk.left() <= AFTER_EXPLORING {
            break;
        }
        let point = spread_out(space, number, seed);
        let distance = walk.distance(&point, Size::Part)?;
        looked.push((point, distance));
    }
    let mut walkers = vec![Walker::new(usual, first)];
    for point in promising(looked) {
        let distance = walk.distance(&point, Size::Whole)?;
        walkers.push(Walker::new(point, distance));
    }
    walk.descend(best_of_each_rule(walkers))
}

/// The state of a local search: the best point so far, the step, and for each coordinate the
/// direction that improved last, which is tried first.
struct Walker {
    point: Point,
    distance: f64,
    step: f64,
    directions: Vec<f64>,
}

impl Walker {
    fn new(point: Point, distance: f64) -> Self {
        let directions = vec![1.0; point.at.len()];
        Self { point, distance, step: FIRST_STEP, directions }
    }
}

fn best_of_each_rule(mut walkers: Vec<Walker>) -> Vec<Walker> {
    walkers.sort_by(|one, two| one.distance.total_cmp(&two.distance));
    let mut seen: Vec<Rule> = Vec::new();
    walkers.retain(|walker| {
        let is_new = !seen.contains(&walker.point.rule);
        seen.push(walker.point.rule);
        is_new
    });
    walkers
}

/// The best of the explored points, and the best of each rule.
fn promising(mut looked: Vec<(Point, f64)>) -> Vec<Point> {
    looked.sort_by(|one, two| one.1.total_cmp(&two.1));
    let mut seen: Vec<Rule> = Vec::new();
    let mut kept = Vec::new();
    for (place, (point, _)) in looked.into_iter().enumerate() {
        let is_new = !seen.contains(&point.rule);
        if is_new || place < PROMOTED - Rule::ALL.len() + 1 {
            seen.push(point.rule);
            kept.push(point);
        }
    }
    kept
}

/// A point of the Halton sequence, shifted depending on the seed; the rules take turns.
fn spread_out(space: Space, number: usize, seed: u64) -> Point {
    const BASES: [usize; 5] = [2, 3, 5, 7, 11];
    let rule = Rule::ALL[number % Rule::ALL.len()];
    let at = (0..space.dimensions(rule)).map(|side| {
        let shift = mixed(seed.wrapping_add(side as u64));
        (inverse(number + 1, BASES[side]) + shift).fract()
    });
    Point { rule, at: at.collect() }
}

/// The radical inverse: the digits of a number mirrored at the radix point.
fn inverse(mut number: usize, base: usize) -> f64 {
    let (mut value, mut unit) = (0.0, 1.0);
    while number > 0 {
        unit /= base as f64;
        value += unit * (number % base) as f64;
        number /= base;
    }
    value
}

/// A number from 0 to 1 derived from the seed (the finaliser of `SplitMix64`).
fn mixed(seed: u64) -> f64 {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state ^ (state >> 31)) as f64 / u64::MAX as f64
}

/// A search in progress.
struct Walk<'a, J: Judge> {
    space: Space,
    judge: &'a mut J,
    ended: bool,
}

impl<J: Judge> Walk<'_, J> {
    fn left(&self) -> f64 {
        if self.ended { 0.0 } else { self.judge.left() }
    }

    /// A point's distance; infinite if it is not defined or the budget is spent.
    fn distance(&mut self, point: &Point, size: Size) -> Result<f64, J::Error> {
        if self.left() <= 0.0 {
            return Ok(f64::INFINITY);
        }
        Ok(match self.judge.judge(&self.space.strategy(point), size)? {
            Judged::Distance(distance) => distance.unwrap_or(f64::INFINITY),
            Judged::Ended => {
                self.ended = true;
                f64::INFINITY
            }
        })
    }

    /// Local search from several points, from fewer in each round: the best after one step need not
    /// be the best after many.
    fn descend(&mut self, mut walkers: Vec<Walker>) -> Result<(), J::Error> {
        for round in 0.. {
            walkers.sort_by(|one, two| one.distance.total_cmp(&two.distance));
            let at_a_time = WALKERS.saturating_sub(round).max(1);
            let under_way = walkers.iter_mut().filter(|walker| walker.step >= LAST_STEP);
            let mut any = false;
            for walker in under_way.take(at_a_time) {
                self.step(walker)?;
                any = true;
            }
            if !any || self.left() <= 0.0 {
                break;
            }
        }
        Ok(())
    }

    /// Moves to a better neighbour along each coordinate in turn; halves the step if there is none.
    fn step(&mut self, walker: &mut Walker) -> Result<(), J::Error> {
        let Walker { point, distance, step, directions } = walker;
        let mut moved = false;
        for (side, last) in directions.iter_mut().enumerate() {
            for direction in [*last, -*last] {
                let mut next = point.clone();
                next.at[side] = (next.at[side] + direction * *step).clamp(0.0, 1.0);
                if self.space.strategy(&next) == self.space.strategy(point) {
                    continue;
                }
                let found = self.distance(&next, Size::Whole)?;
                if found < *distance {
                    (*point, *distance, *last, moved) = (next, found, direction, true);
                    break;
                }
            }
        }
        if !moved {
            *step /= 2.0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use f2_lm::decode::{Factorisation, Truncations};

    use super::*;

    /// An objective with its minimum at class temperature 0.9, temperature 1.2 and nucleus 0.8;
    /// other rules are worse.
    struct Landscape {
        trials: usize,
        most: usize,
        best: f64,
        seen: Vec<(Strategy, Size)>,
    }

    impl Landscape {
        fn new(most: usize) -> Self {
            Self { trials: 0, most, best: f64::INFINITY, seen: Vec::new() }
        }

        fn height(strategy: &Strategy) -> f64 {
            let Factorisation::Decoupled(draw) = &strategy.factorisation else { return 99.0 };
            let truncations = strategy.truncations;
            let other = f64::from(truncations.with_top_p(None) != Truncations::default());
            let nucleus = truncations.top_p().unwrap_or(1.0);
            let squares = (10.0 * (draw.temperature - 0.9)).powi(2)
                + (8.0 * (strategy.temperature - 1.2)).powi(2)
                // Coupled, as are temperature and nucleus in practice.
                + (12.0 * (nucleus - 0.8) + 3.0 * (strategy.temperature - 1.2)).powi(2)
                + (4.0 * (draw.top_p - 1.0)).powi(2);
            1.0 + (squares + 4.0 * other).sqrt()
        }
    }

    impl Judge for Landscape {
        type Error = ();

        fn judge(&mut self, strategy: &Strategy, size: Size) -> Result<Judged, ()> {
            self.trials += 1;
            self.seen.push((strategy.clone(), size));
            let height = Self::height(strategy);
            // On a part of the texts, distances are noisier.
            let blur =
                if size == Size::Part { 0.2 * (self.trials as f64 * 2.3).sin() } else { 0.0 };
            if size == Size::Whole {
                self.best = self.best.min(height);
            }
            Ok(Judged::Distance(Some(height + blur)))
        }

        fn left(&self) -> f64 {
            1.0 - self.trials as f64 / self.most as f64
        }
    }

    #[test]
    fn the_lowest_place_is_found() {
        let space = Space { factorised: true, vocabulary: 30_000, k_per_class: false };
        let heights: Vec<f64> = (0..20)
            .map(|seed| {
                let mut landscape = Landscape::new(200);
                search(space, 3, seed, &mut landscape).unwrap();
                assert!(landscape.trials <= 200);
                landscape.best
            })
            .collect();
        let untuned = Landscape::height(&Strategy::top_k(3));
        assert!(untuned > 3.0, "{untuned}");
        // The minimum is 1.
        let found = heights.iter().filter(|height| **height < 1.3).count();
        // A search may start with the wrong rule, with little budget left for the right one.
        assert!(found >= 18, "{heights:?}");
        assert!(heights.iter().all(|height| *height < 2.0), "{heights:?}");
    }

    #[test]
    fn a_seed_gives_one_search_and_a_longer_one_begins_with_untuned_decoding() {
        let space = Space { factorised: false, vocabulary: 100, k_per_class: false };
        let run = |most, seed| {
            let mut landscape = Landscape::new(most);
            search(space, 3, seed, &mut landscape).unwrap();
            landscape.seen
        };
        assert_eq!(run(30, 1), run(30, 1));
        assert_ne!(run(30, 1), run(30, 2));
        assert_eq!(run(1, 1), [(Strategy::top_k(3), Size::Whole)]);
    }
}
