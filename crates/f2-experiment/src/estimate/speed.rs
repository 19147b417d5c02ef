//! The speed of a machine: measured, or assumed from its peak.

use f2_lm::config::ObjectiveName;

use super::StepProbe;

/// The speed of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Floating-point operations per second in training steps of the plain model.
    pub operations: f64,
    /// Seconds per step with full batches, for the models that were timed.
    pub steps: Vec<(ObjectiveName, f64)>,
    /// Seconds to start a task on the device.
    pub start: f64,
}

impl Speed {
    /// The given floating-point operations per second, with default assumptions for the rest.
    pub fn assumed(operations: f64) -> Self {
        Self { operations, steps: Vec::new(), start: 0.0 }
    }

    /// Adds the timed step of a probe, which represents a share of the model's steps. The others
    /// are those of the model it starts from, which must be timed before.
    pub fn add(&mut self, probe: &StepProbe, seconds: f64) {
        let model = probe.model();
        let share = probe.share();
        let others = model.starts_from().and_then(|start| self.timed(start)).unwrap_or(seconds);
        self.steps.push((model, share * seconds + (1.0 - share) * others));
        if model == ObjectiveName::Mle {
            self.operations = probe.plain_operations() / seconds;
        }
    }

    fn timed(&self, model: ObjectiveName) -> Option<f64> {
        self.steps.iter().find(|(timed, _)| *timed == model).map(|(_, seconds)| *seconds)
    }

    /// Seconds of a model's step, given the operations of the plain model's step.
    pub(super) fn step_seconds(&self, model: ObjectiveName, operations: f64) -> f64 {
        let assumed = || assumed_factor(model) * operations / self.operations;
        self.timed(model).unwrap_or_else(assumed)
    }
}

/// The assumed cost of a step relative to the plain model's: the loss terms of FACE and
/// unlikelihood need another pass over the output, classes save most of the head, and a sequence
/// step generates text first.
fn assumed_factor(model: ObjectiveName) -> f64 {
    match model {
        ObjectiveName::Mle => 1.0,
        ObjectiveName::Face => 1.15,
        ObjectiveName::Unlikelihood => 1.6,
        ObjectiveName::UnlikelihoodSequence => 2.0,
        ObjectiveName::F2 => 0.75,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_step_counts_before_an_assumed_one() {
        let speed = Speed { steps: vec![(ObjectiveName::F2, 0.25)], ..Speed::assumed(1e9) };
        assert_eq!(speed.step_seconds(ObjectiveName::F2, 7e9), 0.25);
        assert_eq!(speed.step_seconds(ObjectiveName::Mle, 7e9), 7.0);
    }
}
