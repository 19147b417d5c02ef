//! Fuzzing the parser of requests, as `f2-fuzz` does with files.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use f2_fuzz::{Repair, Seeds, fuzz};
use f2_lm::run::{Pick, SavedModel};
use serde_json::Value;

use super::request::Completion;
use crate::http::router::Shared;
use crate::{Limits, Model, Served};

/// Memory is not limited: what a request needs is bounded by the size of its body.
const ANY: usize = usize::MAX / 2;

/// The state of a server of the model that the readers of models are fuzzed with.
fn shared() -> Shared {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2-fuzz/seeds/models/f2");
    let saved = SavedModel::open(&folder, Pick::Best).unwrap();
    let served = Arc::new(Served::new("f2".to_owned(), saved, None));
    Shared {
        models: vec![Model { served, jobs: channel().0 }],
        key: None,
        limits: Limits::default(),
        local_only: true,
        ending: AtomicBool::new(false),
        began: 0,
    }
}

#[test]
fn requests() {
    let (shared, accepted) = (shared(), Cell::new(0));
    fuzz("requests", &Seeds::files_as("requests", "body.json"), Repair::None, ANY, |folder| {
        let body = std::fs::read(folder.join("body.json")).unwrap();
        let Ok(Value::Object(fields)) = serde_json::from_slice(&body) else { return };
        let Ok(completion) = Completion::parse(&fields, &shared) else { return };
        accepted.set(accepted.get() + 1);
        assert!(completion.texts() <= shared.limits.texts);
        assert!(completion.new_tokens <= shared.limits.new_tokens);
        let mut ids = completion.prompts.iter().flatten();
        assert!(ids.all(|id| (*id as usize) < shared.models[0].served.saved.shape.vocabulary));
    });
    // At least the unchanged seeds.
    assert!(accepted.get() >= 5, "{}", accepted.get());
}
