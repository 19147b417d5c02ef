//! Tokens that occurred before: made less likely, or ruled out.

/// The tokens that would complete a sequence of `n` tokens for the second time, ascending.
pub(super) fn blocked(history: &[u32], n: usize) -> Vec<u32> {
    if n == 0 || history.len() + 1 < n {
        return Vec::new();
    }
    let end = &history[history.len() + 1 - n..];
    let repeated = history.windows(n).filter(|window| window[..n - 1] == *end);
    let mut ids: Vec<u32> = repeated.map(|window| window[n - 1]).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The tokens that occurred, ascending.
pub(super) fn occurred(history: &[u32]) -> Vec<u32> {
    let mut ids = history.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_repeat_is_blocked() {
        let history = [1, 2, 3, 1, 2, 4, 1, 2];
        assert_eq!(blocked(&history, 3), [3, 4]);
        assert_eq!(blocked(&history, 2), [3, 4]);
        assert_eq!(blocked(&history, 1), [1, 2, 3, 4]);
        assert_eq!(blocked(&[1, 2, 3, 9, 1, 2, 3], 4), [9]);
        assert_eq!(blocked(&history, 9), [0; 0]);
        assert_eq!(blocked(&history, 0), [0; 0]);
        assert_eq!(blocked(&[], 1), [0; 0]);
    }
}
