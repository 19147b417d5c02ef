//! The progress of a preparation.

use std::sync::Mutex;

use f2_corpus::Observer;

use crate::interrupt;
use crate::progress::{Progress, Unit};

/// Shows each stage of the preparation as a bar.
#[derive(Default)]
pub(super) struct Bars {
    current: Mutex<Option<Progress>>,
}

impl Observer for Bars {
    fn stage(&self, name: &str, bytes: Option<u64>) {
        let mut current = self.current.lock().expect("no bar panics");
        // The old bar clears its line before the new one is drawn.
        *current = None;
        let unit = if bytes.is_some() { Unit::Bytes } else { Unit::Time };
        *current = Some(Progress::new(name, bytes, unit));
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = &*self.current.lock().expect("no bar panics") {
            bar.advance(bytes);
        }
    }

    fn interrupted(&self) -> bool {
        interrupt::asked()
    }
}
