//! Tokens under other ids.

use std::ops::Range;

use super::TokenSource;

/// The tokens of a source, every `id` replaced by `ids[id]`.
#[derive(Clone, Debug)]
pub struct RenamedTokens<S> {
    /// The tokens under their old ids.
    pub tokens: S,
    /// The new id of each old one.
    pub ids: Vec<u32>,
}

impl<S: TokenSource> TokenSource for RenamedTokens<S> {
    fn len(&self) -> u64 {
        self.tokens.len()
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        self.tokens.read(range, out);
        // An unknown id becomes one outside every vocabulary, which is refused later.
        out.iter_mut().for_each(|id| *id = self.ids.get(*id as usize).copied().unwrap_or(u32::MAX));
    }

    fn documents(&self) -> Vec<Range<u64>> {
        self.tokens.documents()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_its_new_id() {
        let renamed = RenamedTokens { tokens: vec![2, 0, 1, 7], ids: vec![5, 3, 4] };
        let mut read = [0; 3];
        renamed.read(1..4, &mut read);
        assert_eq!(read, [5, 3, u32::MAX]);
        assert_eq!(renamed.len(), 4);
    }
}
