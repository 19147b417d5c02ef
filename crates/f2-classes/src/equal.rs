//! Classes with equal numbers of tokens.

/// K classes of ⌊V/K⌋ tokens each, the remainder in the last.
pub(crate) fn equal_tokens(vocabulary: usize, k: usize) -> Vec<usize> {
    let size = vocabulary / k;
    (1..k).map(|class| class * size).chain([vocabulary]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_class_takes_the_remainder() {
        assert_eq!(equal_tokens(11, 3), [3, 6, 11]);
        assert_eq!(equal_tokens(4, 4), [1, 2, 3, 4]);
        assert_eq!(equal_tokens(4, 1), [4]);
    }
}
