//! The directive that rank 0 sends the others after every step.

/// The decisions of the clock and the user, made on rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::train) struct Directive {
    /// Seconds of training.
    pub(in crate::train) seconds: f64,
    /// Whether the user asked to stop.
    pub(in crate::train) stop: bool,
    /// Whether a checkpoint is due by the clock.
    pub(in crate::train) save: bool,
}

impl Directive {
    pub(in crate::train) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.seconds.to_le_bytes().to_vec();
        bytes.extend([u8::from(self.stop), u8::from(self.save)]);
        bytes
    }

    pub(in crate::train) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (seconds, [stop, save]) = bytes.split_first_chunk()? else { return None };
        Some(Self { seconds: f64::from_le_bytes(*seconds), stop: *stop != 0, save: *save != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrives_as_it_was_sent() {
        let directive = Directive { seconds: 12.5, stop: false, save: true };
        assert_eq!(Directive::from_bytes(&directive.to_bytes()), Some(directive));
        assert_eq!(Directive::from_bytes(&[1, 2]), None);
    }
}
