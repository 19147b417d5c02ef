//! The global norm and AdamW.

use f2_engine::{AdamW, Decay, Device, Layout, Moments, Parameter};

use super::{Bench, Outcome, Scenario, compare, random};

struct Updates {
    decay: Decay,
    clip: f64,
}

fn parts() -> (Layout, [Parameter; 3]) {
    let mut layout = Layout::new();
    let parameters = [
        layout.add("matrix", &[90, 51], true),
        layout.add("bias", &[21], false),
        layout.add("last", &[301, 512], true),
    ];
    (layout, parameters)
}

impl Scenario for Updates {
    fn layout(&self) -> Layout {
        parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (layout, parameters) = parts();
        let len = layout.len();
        let floats = |bench: &Bench<D>| bench.device.floats(len).unwrap();
        let mut moments = Moments { first: floats(bench), second: floats(bench) };
        let (mut norm, mut sum) = (bench.floats(1), bench.floats(3));
        let mut norms = Vec::new();
        for update in 1..=4 {
            for (index, parameter) in parameters.into_iter().enumerate() {
                let values = random(parameter.len(), (10 * update + index as u64) as u32);
                let gradients = &mut bench.gradients;
                bench.device.write_floats(&values, parameter.offset, gradients);
            }
            let settings = AdamW {
                learning_rate: 3e-2,
                beta1: 0.9,
                beta2: 0.999,
                epsilon: 1e-8,
                weight_decay: 0.1,
                decay: self.decay,
                clip: self.clip,
                update,
            };
            let Bench { device, weights, gradients, .. } = bench;
            device.global_norm(gradients, &mut norm);
            device.adamw(settings, &layout.decayed(), &norm, weights, &mut moments, gradients);
            norms.extend(bench.read_floats(&norm, 1));
        }
        let cleared = bench.read_floats(&bench.gradients, len);
        assert!(cleared.iter().all(|&gradient| gradient == 0.0));
        bench.device.add_sum(&moments.second, 5..len - 3, &mut sum, 1);
        let mut outcome = vec![
            ("norms", norms),
            ("first moments", bench.read_floats(&moments.first, len)),
            ("second moments", bench.read_floats(&moments.second, len)),
            ("sums", bench.read_floats(&sum, 3)),
        ];
        let names = ["matrix", "bias", "last"];
        let weights = parameters.map(|parameter| bench.weight(parameter));
        outcome.extend(names.into_iter().zip(weights));
        outcome
    }
}

#[test]
fn decoupled_decay_with_clipping() {
    compare(&Updates { decay: Decay::Decoupled, clip: 0.25 });
}

#[test]
fn penalty_without_clipping() {
    compare(&Updates { decay: Decay::Penalty, clip: f64::INFINITY });
}

struct Infinite;

impl Scenario for Infinite {
    fn layout(&self) -> Layout {
        parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (layout, [matrix, ..]) = parts();
        let floats = |bench: &Bench<D>| bench.device.floats(layout.len()).unwrap();
        let mut moments = Moments { first: floats(bench), second: floats(bench) };
        let mut norm = bench.floats(1);
        let before = bench.weight(matrix);
        let settings = AdamW {
            learning_rate: 1.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.1,
            decay: Decay::Decoupled,
            clip: 1.0,
            update: 1,
        };
        let Bench { device, weights, gradients, .. } = bench;
        device.write_floats(&[1.0, f32::NAN], 0, gradients);
        device.global_norm(gradients, &mut norm);
        device.adamw(settings, &layout.decayed(), &norm, weights, &mut moments, gradients);
        assert!(!bench.read_floats(&norm, 1)[0].is_finite());
        assert_eq!(bench.weight(matrix), before);
        vec![("gradients", bench.read_floats(&bench.gradients, layout.len()))]
    }
}

#[test]
fn an_infinite_gradient_changes_nothing() {
    compare(&Infinite);
}
