//! How fast a machine is: measured, or assumed from its peak.

use f2_lm::config::ObjectiveName;

use super::StepProbe;

/// The speed of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Floating-point operations a second of plain training steps.
    pub operations: f64,
    /// Seconds of a step with full batches, for the models that were timed.
    pub steps: Vec<(ObjectiveName, f64)>,
    /// Seconds until a task on the device begins its work.
    pub start: f64,
}

impl Speed {
    /// A speed of training steps, all else assumed.
    pub fn assumed(operations: f64) -> Self {
        Self { operations, steps: Vec::new(), start: 0.0 }
    }

    /// Takes over the timed steps of a probe. A share of the model's steps are such; the others
    /// are those of the model it starts from, which is to be timed before.
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

    /// Seconds of a step of a model that needs so many operations when it is plain.
    pub(super) fn step_seconds(&self, model: ObjectiveName, operations: f64) -> f64 {
        let assumed = || assumed_factor(model) * operations / self.operations;
        self.timed(model).unwrap_or_else(assumed)
    }
}

/// Beside a plain step: candidates or predictions cost a second look, classes save most of the
/// head, and a sequence step writes a text before it learns from it.
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
