//! The global norm and AdamW.

use f2_engine::prelude::*;
use f2_engine::{AdamW, Decay, Layout, Moments};

use super::{Bench, assert_close, narrow, random, widen};

const SETTINGS: AdamW = AdamW {
    learning_rate: 3e-2,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weight_decay: 0.1,
    decay: Decay::Decoupled,
    clip: 0.25,
    update: 1,
};

/// Adam as defined by Kingma & Ba, with weight decay by Loshchilov & Hutter.
fn reference(settings: AdamW, decayed: bool, w: &mut f64, m: &mut f64, v: &mut f64, g: f64) {
    let decay = if decayed { settings.weight_decay } else { 0.0 };
    let g = if settings.decay == Decay::Penalty { g + decay * *w } else { g };
    *m = settings.beta1 * *m + (1.0 - settings.beta1) * g;
    *v = settings.beta2 * *v + (1.0 - settings.beta2) * g * g;
    let t = settings.update as i32;
    let mean = *m / (1.0 - settings.beta1.powi(t));
    let square = *v / (1.0 - settings.beta2.powi(t));
    if settings.decay == Decay::Decoupled {
        *w -= settings.learning_rate * decay * *w;
    }
    *w -= settings.learning_rate * mean / (square.sqrt() + settings.epsilon);
}

fn check(decay: Decay, clip: f64) {
    let mut layout = Layout::new();
    let first = layout.add("first", &[9, 5], true);
    let second = layout.add("second", &[21], false);
    let mut bench = Bench::new(&layout);
    let mut weights = [bench.weight(first), bench.weight(second)].concat();
    let (mut m, mut v) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
    let mut moments = Moments {
        first: bench.cpu.floats(layout.len()).unwrap(),
        second: bench.cpu.floats(layout.len()).unwrap(),
    };
    let mut norm = bench.cpu.floats(1).unwrap();
    for update in 1..=5 {
        let settings = AdamW { decay, clip, update, ..SETTINGS };
        let gradient = random(weights.len(), update as u32);
        let parts = gradient.split_at(first.len());
        bench.cpu.write_floats(&narrow(parts.0), first.offset, &mut bench.gradients);
        bench.cpu.write_floats(&narrow(parts.1), second.offset, &mut bench.gradients);
        bench.cpu.global_norm(&bench.gradients, &mut norm);
        let expected = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert_close(&norm, &[expected], 1e-6);
        let decayed = layout.decayed();
        let (weights_buffer, gradients) = (&mut bench.weights, &mut bench.gradients);
        bench.cpu.adamw(settings, &decayed, &norm, weights_buffer, &mut moments, gradients);
        let factor = (clip / expected).min(1.0);
        for i in 0..weights.len() {
            let g = gradient[i] * factor;
            reference(settings, i < first.len(), &mut weights[i], &mut m[i], &mut v[i], g);
        }
    }
    let actual = narrow(&[bench.weight(first), bench.weight(second)].concat());
    assert_close(&actual, &weights, 1e-5);
    assert!(bench.gradients.iter().all(|&gradient| gradient == 0.0));
}

#[test]
fn decoupled_decay() {
    check(Decay::Decoupled, 0.25);
}

#[test]
fn penalty_without_clipping() {
    check(Decay::Penalty, f64::INFINITY);
}

#[test]
fn an_infinite_gradient_changes_nothing() {
    let mut layout = Layout::new();
    let weight = layout.add("weight", &[7, 3], true);
    let mut bench = Bench::new(&layout);
    let before = bench.weight(weight);
    let mut moments = Moments {
        first: bench.cpu.floats(layout.len()).unwrap(),
        second: bench.cpu.floats(layout.len()).unwrap(),
    };
    let mut norm = bench.cpu.floats(1).unwrap();
    bench.cpu.write_floats(&[1.0, f32::NAN], 0, &mut bench.gradients);
    bench.cpu.global_norm(&bench.gradients, &mut norm);
    assert!(!norm[0].is_finite());
    let (weights, gradients) = (&mut bench.weights, &mut bench.gradients);
    bench.cpu.adamw(SETTINGS, &layout.decayed(), &norm, weights, &mut moments, gradients);
    assert_eq!(bench.weight(weight), before);
    assert!(moments.first.iter().chain(moments.second.iter()).all(|&moment| moment == 0.0));
    assert!(widen(&bench.gradients).iter().all(|&gradient| gradient == 0.0));
}
