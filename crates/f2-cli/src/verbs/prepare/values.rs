//! Values of flags: document boundaries, sizes and shares.

use f2_corpus::{Boundaries, Fractions};

/// Parses the name of a rule, or a number of lines.
pub(super) fn boundaries(text: &str) -> Result<Boundaries, String> {
    Ok(match text {
        "auto" => Boundaries::Auto,
        "blank-lines" => Boundaries::BlankLines,
        "lines" => Boundaries::Lines,
        "files" => Boundaries::Files,
        "articles" => Boundaries::Articles,
        "chapters" => Boundaries::Chapters,
        lines => Boundaries::Pieces(lines.parse().map_err(
            |_| "expected auto, blank-lines, lines, files, articles, chapters or a number of lines",
        )?),
    })
}

/// Parses `1000000`, `64K`, `256M` or `2G`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let unit = |unit: char| match unit.to_ascii_uppercase() {
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        _ => None,
    };
    let shift = text.chars().next_back().and_then(unit);
    let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let size = digits.parse::<u64>().ok().filter(|&size| size > 0);
    let size = size.and_then(|size| size.checked_mul(1 << shift.unwrap_or(0)));
    size.filter(|&size| size < u64::MAX / 2)
        .ok_or_else(|| "expected a number of bytes, as 1000000, 64K, 256M or 2G".to_owned())
}

/// Parses `0.8,0.1,0.1`.
pub(super) fn shares(text: &str) -> Result<Fractions, String> {
    let shares: Result<Vec<f64>, _> = text.split(',').map(|share| share.trim().parse()).collect();
    match shares.as_deref() {
        Ok(&[train, valid, test]) => Ok(Fractions { train, valid, test }),
        _ => Err("expected three numbers, as in 0.8,0.1,0.1".to_owned()),
    }
}
