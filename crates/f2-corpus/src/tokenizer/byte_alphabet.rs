//! GPT-2's alphabet: a printable character for each of the 256 bytes.

use std::sync::LazyLock;

/// The character for each byte. Printable bytes stand for themselves; the others take the code
/// points from 256 upwards, in order.
static CHARACTERS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 256_u32;
    std::array::from_fn(|byte| {
        let byte = byte as u8;
        match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).expect("68 code points from 256 on are characters")
            }
        }
    })
});

/// Writes `text`, byte by byte, in that alphabet.
pub(crate) fn spell(text: &str, out: &mut String) {
    out.extend(text.bytes().map(|byte| CHARACTERS[byte as usize]));
}

/// All 256 characters.
pub(crate) fn alphabet() -> impl Iterator<Item = char> {
    CHARACTERS.iter().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    #[test]
    fn it_is_the_alphabet_of_byte_level_tokenizers() {
        let theirs: BTreeSet<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!(super::alphabet().collect::<BTreeSet<char>>(), theirs);
        let mut spelled = String::new();
        super::spell(" é\n", &mut spelled);
        assert_eq!(spelled, "ĠÃ©Ċ");
    }
}
