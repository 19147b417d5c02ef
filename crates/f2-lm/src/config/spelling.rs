//! Finds the name that was probably meant.

/// The candidate that takes the fewest edits to reach from `name`, unless it takes so many that
/// it cannot have been meant.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (closeness(name, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= candidate.len().max(name.len()).div_ceil(2))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between a key and a known one. A key without its section is compared with the last
/// part alone, since forgetting the section is the likelier slip.
fn closeness(name: &str, candidate: &str) -> usize {
    let whole = edits(name, candidate);
    match candidate.rsplit_once('.') {
        Some((_, last)) if !name.contains('.') => whole.min(edits(name, last)),
        _ => whole,
    }
}

/// Levenshtein distance, one row at a time.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_known_pairs() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn a_forgotten_section_is_found_and_nonsense_is_not() {
        let keys = ["model.layers", "optimiser.learning_rate", "batch.size"];
        assert_eq!(nearest("learning_rate", keys), Some("optimiser.learning_rate"));
        assert_eq!(nearest("model.layer", keys), Some("model.layers"));
        assert_eq!(nearest("zzzzzzzzzzzzzzz", keys), None);
    }
}
