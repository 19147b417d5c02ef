//! Learning curves as `TensorBoard` reads them: event files of framed protocol buffers.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crc32c::crc32c;
use f2_files::{OutputFile, disk};

/// An event file `TensorBoard` reads: one record per scalar, appended as it comes.
#[derive(Debug)]
pub struct TensorBoard {
    file: OutputFile,
}

impl TensorBoard {
    /// Starts an event file in `folder`, which is created if needed. Every session of a run has
    /// its own; `TensorBoard` reads them as one.
    pub fn create(folder: &Path) -> io::Result<Self> {
        disk::create_folders(folder)?;
        let seconds = now() as u64;
        let name = format!("events.out.tfevents.{seconds:010}.f2.{}", std::process::id());
        let mut writer = Self { file: OutputFile::create(&folder.join(name))? };
        let mut version = Message::default();
        version.double(1, now());
        version.bytes(3, b"brain.Event:2");
        writer.record(&version.0)?;
        Ok(writer)
    }

    /// Appends the value of a curve at a step.
    pub fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()> {
        self.record(&scalar_event(tag, step, value, now()))
    }

    /// Length, its checksum, content, its checksum.
    fn record(&mut self, content: &[u8]) -> io::Result<()> {
        let length = (content.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(content.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(content);
        record.extend_from_slice(&masked(content).to_le_bytes());
        self.file.write_all(&record)
    }
}

/// The checksum as records store it: CRC-32C, rotated and shifted, so that a record which contains
/// checksums has one that is unlike them.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// `Event { wall_time = 1, step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2 } } }`.
fn scalar_event(tag: &str, step: u64, value: f64, wall_time: f64) -> Vec<u8> {
    let mut point = Message::default();
    point.bytes(1, tag.as_bytes());
    point.float(2, value as f32);
    let mut summary = Message::default();
    summary.bytes(1, &point.0);
    let mut event = Message::default();
    event.double(1, wall_time);
    event.integer(2, step);
    event.bytes(5, &summary.0);
    event.0
}

/// A protocol buffer, field by field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Frozen from Python's protobuf runtime with TensorFlow's published event schema.
    #[test]
    fn a_scalar_is_encoded_as_the_schema_says() {
        let expected: &[u8] = &[
            0x09, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F, // wall_time = 1.5
            0x10, 0xAC, 0x02, // step = 300
            0x2A, 0x0D, // summary
            0x0A, 0x0B, // value
            0x0A, 0x04, b'l', b'o', b's', b's', // tag
            0x15, 0, 0, 0x60, 0x40, // simple_value = 3.5
        ];
        assert_eq!(scalar_event("loss", 300, 3.5, 1.5), expected);
    }

    /// The check value of the catalogue of CRC algorithms, and RFC 3720's example of 32 zeros.
    #[test]
    fn checksums_have_the_castagnoli_polynomial() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(masked(b""), 0xA282_EAD8);
    }

    #[test]
    fn records_follow_one_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = TensorBoard::create(folder.path()).unwrap();
        writer.scalar("loss", 1, 2.0).unwrap();
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(path).unwrap();
        let mut lengths = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            assert_eq!(bytes[8..12], masked(&bytes[..8]).to_le_bytes());
            let content = &bytes[12..12 + length];
            assert_eq!(bytes[12 + length..16 + length], masked(content).to_le_bytes());
            lengths.push(length);
            bytes.drain(..16 + length);
        }
        assert_eq!(lengths.len(), 2);
    }
}
