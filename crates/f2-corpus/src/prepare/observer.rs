//! Progress and interruption of a preparation.

/// Receives the progress of a preparation, and may interrupt it.
pub trait Observer: Sync {
    /// A new stage begins; `bytes` is the amount of input it will read, if known.
    fn stage(&self, name: &str, bytes: Option<u64>);
    /// Another `bytes` bytes of input were read.
    fn advance(&self, bytes: u64);
    /// Whether to stop; nothing is left behind.
    fn interrupted(&self) -> bool;
}

/// Ignores progress and never interrupts.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn stage(&self, _name: &str, _bytes: Option<u64>) {}
    fn advance(&self, _bytes: u64) {}
    fn interrupted(&self) -> bool {
        false
    }
}
