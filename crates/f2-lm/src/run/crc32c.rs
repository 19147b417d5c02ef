//! The checksum of `TensorBoard`'s record format: CRC-32 with the Castagnoli polynomial.

/// The polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// Added after rotating, so that the checksum of data that holds checksums stays telling.
const MASK_DELTA: u32 = 0xA282_EAD8;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
            remainder = remainder >> 1 ^ carry;
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(u32::MAX, |crc, byte| crc >> 8 ^ TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize])
}

/// The checksum as records store it.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of CRC algorithms, and RFC 3720's example of 32 zeros.
    #[test]
    fn known_answers() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
    }
}
