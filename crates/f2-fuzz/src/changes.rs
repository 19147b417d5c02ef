//! Random changes to a file.

use crate::random::Random;
use crate::seeds::Seeds;

/// Values that parsers may not expect.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "2",
    "255",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "-1e308",
    "1e-320",
    "0.5",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"x\"",
    "[[[[[[[[[[[[[[[[",
    "\\u0000",
    "\u{feff}",
];

/// Makes a few changes.
pub(crate) fn change(bytes: &mut Vec<u8>, seeds: &Seeds, random: &mut Random) {
    for _ in 0..=random.below(4) {
        change_once(bytes, seeds, random);
    }
}

fn change_once(bytes: &mut Vec<u8>, seeds: &Seeds, random: &mut Random) {
    // Half of all changes are near the beginning, where headers are.
    let near = random.below(2) == 0;
    let place = random.below(if near { bytes.len().min(400) } else { bytes.len() });
    let length = 1 + random.below(16);
    let end = (place + length).min(bytes.len());
    match random.below(10) {
        0 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[place] = random.next() as u8,
        2 => bytes.truncate(place),
        3 => drop(bytes.drain(place..end)),
        4 => {
            let copy = bytes[place..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => drop(bytes.splice(place..place, random.one_of(&WORDS).bytes())),
        6 => splice_from_another(bytes, place, end, seeds, random),
        7 => replace_binary_number(bytes, place, random),
        _ => replace_number(bytes, place, random),
    }
}

/// Replaces some bytes by bytes of another file, of the same seed or another.
fn splice_from_another(
    bytes: &mut Vec<u8>,
    place: usize,
    end: usize,
    seeds: &Seeds,
    random: &mut Random,
) {
    let files = seeds.files(random.below(seeds.len()));
    let (_, other) = random.one_of(files);
    let start = random.below(other.len());
    let until = (start + 1 + random.below(64)).min(other.len());
    bytes.splice(place..end, other[start..until].iter().copied());
}

/// Replaces the next number in a text.
fn replace_number(bytes: &mut Vec<u8>, place: usize, random: &mut Random) {
    let Some(start) = (place..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) else { return };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, random.one_of(&WORDS).bytes());
}

/// Replaces two, four or eight bytes by a small number, a large one, or one near a power of two.
fn replace_binary_number(bytes: &mut [u8], place: usize, random: &mut Random) {
    let number = match random.below(3) {
        0 => random.next() % 300,
        1 => (1_u64 << random.below(64)).wrapping_sub(random.next() % 3),
        _ => u64::MAX - random.next() % 300,
    };
    let width = *random.one_of(&[2, 4, 8]);
    if let Some(to) = bytes.get_mut(place..place + width) {
        to.copy_from_slice(&number.to_le_bytes()[..width]);
    }
}
