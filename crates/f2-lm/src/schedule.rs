//! The learning rate schedule, and the limits of a run.

use std::f64::consts::PI;

use crate::batch::TrainingBatches;
use crate::config::{BatchConfig, BudgetConfig, ScheduleConfig, ScheduleShape};

/// The learning rate as a fraction of its peak, over a run with any kind of limit.
#[derive(Clone, Debug)]
pub struct Schedule {
    config: ScheduleConfig,
}

impl Schedule {
    /// A schedule of the given shape.
    pub fn new(config: &ScheduleConfig) -> Self {
        Self { config: config.clone() }
    }

    /// The fraction of the peak learning rate for the step numbered `step` (from 0), after
    /// `progress` (0 to 1) of the run.
    ///
    /// During the warm-up it rises in equal increments, the first step getting one of them. The
    /// curve runs from the end of the warm-up to the end of the run. If the run is limited by the
    /// clock, the end of the warm-up is estimated as if every step took the same time; if it is
    /// limited by steps, it is exact.
    pub fn fraction(&self, step: u64, progress: f64) -> f64 {
        let warmup = self.config.warmup_steps;
        if step < warmup {
            return (step + 1) as f64 / warmup as f64;
        }
        let floor = self.config.final_fraction;
        let fall = match self.config.shape {
            ScheduleShape::Constant => return 1.0,
            ScheduleShape::Linear => 1.0 - after_warmup(step, warmup, progress),
            ScheduleShape::Cosine => 0.5 + 0.5 * (PI * after_warmup(step, warmup, progress)).cos(),
        };
        floor + (1.0 - floor) * fall
    }
}

/// The part of the run after the warm-up that is done, from 0 to 1.
fn after_warmup(step: u64, warmup: u64, progress: f64) -> f64 {
    let (step, warmup) = (step as f64, warmup as f64);
    let left = step - progress * warmup;
    if left <= 0.0 { progress } else { (progress * (step - warmup) / left).clamp(0.0, 1.0) }
}

/// The limits of a run, converted to steps if possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The step at which the run ends, unless the clock ends it.
    pub steps: Option<u64>,
    /// Seconds of training after which the run ends.
    pub seconds: Option<f64>,
}

impl Budget {
    /// The first limit reached of those given, for these batches. Tokens are targets: a run ends
    /// with the step that reaches their number.
    pub fn new(budget: &BudgetConfig, batches: &TrainingBatches) -> Self {
        let from_epochs = budget.epochs.map(|epochs| batches.steps_of_epochs(epochs));
        let from_tokens = budget.tokens.map(|tokens| batches.steps_for(tokens));
        Self::first([budget.steps, from_epochs, from_tokens], budget)
    }

    /// The limit without a text: epochs are ignored, and every batch counts as full.
    pub fn without_text(budget: &BudgetConfig, batch: &BatchConfig) -> Self {
        let full = batch.tokens_per_step() as u64;
        let from_tokens = budget.tokens.map(|tokens| tokens.div_ceil(full));
        Self::first([budget.steps, None, from_tokens], budget)
    }

    fn first(steps: [Option<u64>; 3], budget: &BudgetConfig) -> Self {
        let steps = steps.into_iter().flatten().min();
        Self { steps: steps.map(|steps| steps.max(1)), seconds: budget.minutes.map(|m| m * 60.0) }
    }

    /// Whether nothing ends the run.
    pub fn is_endless(&self) -> bool {
        self.steps.is_none() && self.seconds.is_none()
    }

    /// The part of the run that is done after `step` steps and `seconds` of training, 0 to 1.
    pub fn progress(&self, step: u64, seconds: f64) -> f64 {
        let by_steps = self.steps.map_or(0.0, |steps| step as f64 / steps as f64);
        let by_clock = self.seconds.map_or(0.0, |limit| seconds / limit);
        by_steps.max(by_clock).min(1.0)
    }

    /// Whether the run is over after `step` steps and `seconds` of training.
    pub fn is_spent(&self, step: u64, seconds: f64) -> bool {
        self.steps.is_some_and(|steps| step >= steps)
            || self.seconds.is_some_and(|limit| seconds >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(shape: ScheduleShape, warmup_steps: u64, final_fraction: f64) -> Schedule {
        Schedule::new(&ScheduleConfig { shape, warmup_steps, final_fraction })
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn linear_equals_its_closed_form_in_steps() {
        let schedule = schedule(ScheduleShape::Linear, 10, 0.0);
        for step in 0..100_u64 {
            let expected =
                if step < 10 { (step + 1) as f64 / 10.0 } else { (100 - step) as f64 / 90.0 };
            assert!(close(schedule.fraction(step, step as f64 / 100.0), expected), "step {step}");
        }
    }

    #[test]
    fn cosine_starts_at_the_top_and_ends_at_its_floor() {
        let schedule = schedule(ScheduleShape::Cosine, 0, 0.1);
        assert!(close(schedule.fraction(0, 0.0), 1.0));
        assert!(close(schedule.fraction(50, 0.5), 0.55));
        assert!(close(schedule.fraction(100, 1.0), 0.1));
    }

    #[test]
    fn the_clock_gives_the_same_curve_as_steps_when_steps_are_even() {
        let schedule = schedule(ScheduleShape::Cosine, 20, 0.0);
        let batch = BatchConfig { size: 2, sequence: 8, ..BatchConfig::default() };
        let by_steps = BudgetConfig { steps: Some(200), ..BudgetConfig::default() };
        let by_clock = BudgetConfig { minutes: Some(1.0), ..BudgetConfig::default() };
        let batches = TrainingBatches::new(&vec![0; 9 * 8 + 1], &batch, 0).unwrap();
        let [by_steps, by_clock] = [by_steps, by_clock].map(|limit| Budget::new(&limit, &batches));
        for step in 0..200 {
            let seconds = step as f64 * 60.0 / 200.0;
            let expected = schedule.fraction(step, by_steps.progress(step, 0.0));
            assert!(close(schedule.fraction(step, by_clock.progress(step, seconds)), expected));
        }
    }

    #[test]
    fn the_first_limit_reached_ends_the_run() {
        let batch = BatchConfig { size: 4, sequence: 10, ..BatchConfig::default() };
        let limits = BudgetConfig {
            steps: Some(100),
            epochs: Some(1.5),
            tokens: Some(1_001),
            minutes: Some(0.5),
        };
        // Epochs: 1.5 * 50 / 4 = 18.75; tokens: 1001 / 40 = 25.025.
        let batches = TrainingBatches::new(&vec![0; 50 * 10 + 1], &batch, 0).unwrap();
        let budget = Budget::new(&limits, &batches);
        assert_eq!(budget, Budget { steps: Some(19), seconds: Some(30.0) });
        let unread = Budget { steps: Some(26), seconds: Some(30.0) };
        assert_eq!(Budget::without_text(&limits, &batch), unread);
        assert!(!budget.is_spent(18, 29.9));
        assert!(budget.is_spent(19, 0.0));
        assert!(budget.is_spent(1, 30.0));
        assert!(close(budget.progress(19, 3.0), 1.0));
        assert!(close(budget.progress(1, 15.0), 0.5));
    }
}
