//! Documents of Parquet files.

use std::fs::File;
use std::path::PathBuf;

use f2_files::ReadError;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::input_file::InputFile;
use super::jsonl::ended_by_break;
use super::open::{Digest, digest_of};
use super::reader::Reading;
use crate::error::{Error, Result};

/// Rows fetched at a time: bounds the memory, whatever the size of a row group.
const ROWS: usize = 256;

/// Documents of a Parquet file: one text column, a document per row.
pub(crate) struct ParquetFile {
    file: SerializedFileReader<File>,
    path: PathBuf,
    column: usize,
    lossy: bool,
    longest: u64,
    row_group: usize,
    /// The text column of the row group being read.
    cells: Option<Cells>,
    /// Bytes of the row groups read so far.
    position: u64,
}

struct Cells {
    reader: ColumnReader,
    fetched: std::vec::IntoIter<ByteArray>,
}

impl ParquetFile {
    pub(crate) fn new(source: &InputFile, reading: &Reading) -> Result<Self> {
        let path = source.path.clone();
        let file = File::open(&path).map_err(ReadError::of(&path))?;
        let file = SerializedFileReader::new(file).map_err(|error| refuse(&path, &error))?;
        let column = text_column(&file, &reading.field)
            .map_err(|reason| Error::Parquet { path: path.clone(), reason })?;
        let (lossy, longest) = (reading.lossy, reading.longest);
        Ok(Self { file, path, column, lossy, longest, row_group: 0, cells: None, position: 0 })
    }

    pub(crate) fn next_document(&mut self) -> Result<Option<String>> {
        while let Some(cell) = self.next_cell()? {
            if cell.len() as u64 > self.longest {
                let (path, longest) = (self.path.clone(), self.longest);
                return Err(Error::DocumentTooLong { path, longest });
            }
            let text = match String::from_utf8(cell.data().to_vec()) {
                Ok(text) => text,
                Err(error) if self.lossy => String::from_utf8_lossy(error.as_bytes()).into_owned(),
                Err(error) => {
                    let reason = format!("row group {}: {error}", self.row_group);
                    return Err(Error::Parquet { path: self.path.clone(), reason });
                }
            };
            if let Some(document) = ended_by_break(text) {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    fn next_cell(&mut self) -> Result<Option<ByteArray>> {
        loop {
            if self.cells.is_none() && !self.open_row_group()? {
                return Ok(None);
            }
            let Some(cells) = &mut self.cells else { continue };
            match cells.next().map_err(|error| refuse(&self.path, &error))? {
                Some(cell) => return Ok(Some(cell)),
                None => self.close_row_group(),
            }
        }
    }

    fn open_row_group(&mut self) -> Result<bool> {
        if self.row_group == self.file.num_row_groups() {
            return Ok(false);
        }
        let reader = self
            .file
            .get_row_group(self.row_group)
            .and_then(|group| group.get_column_reader(self.column))
            .map_err(|error| refuse(&self.path, &error))?;
        self.cells = Some(Cells { reader, fetched: Vec::new().into_iter() });
        Ok(true)
    }

    fn close_row_group(&mut self) {
        self.cells = None;
        self.position += self.file.metadata().row_group(self.row_group).compressed_size() as u64;
        self.row_group += 1;
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn digest(&self) -> Result<Digest> {
        digest_of(&self.path)
    }
}

impl Cells {
    fn next(&mut self) -> std::result::Result<Option<ByteArray>, ParquetError> {
        if let Some(cell) = self.fetched.next() {
            return Ok(Some(cell));
        }
        let ColumnReader::ByteArrayColumnReader(reader) = &mut self.reader else {
            unreachable!("the column was checked to be a text column");
        };
        let mut values = Vec::with_capacity(ROWS);
        // Null cells have a definition level and no value; they are skipped.
        let mut levels = Vec::new();
        while values.is_empty() {
            levels.clear();
            let (rows, _, _) = reader.read_records(ROWS, Some(&mut levels), None, &mut values)?;
            if rows == 0 {
                return Ok(None);
            }
        }
        self.fetched = values.into_iter();
        Ok(self.fetched.next())
    }
}

/// The index of the column `field`, which must hold text, not lists of text.
fn text_column(
    file: &SerializedFileReader<File>,
    field: &str,
) -> std::result::Result<usize, String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let index = names.iter().position(|name| name == field).ok_or_else(|| {
        format!("there is no column \"{field}\"; the columns are {}", names.join(", "))
    })?;
    let column = schema.column(index);
    if is_text(&column) && column.max_rep_level() == 0 {
        Ok(index)
    } else {
        Err(format!("the column \"{field}\" does not hold text"))
    }
}

fn is_text(column: &ColumnDescriptor) -> bool {
    let marked = matches!(column.logical_type_ref(), Some(LogicalType::String))
        || column.converted_type() == ConvertedType::UTF8;
    column.physical_type() == Type::BYTE_ARRAY && marked
}

fn refuse(path: &std::path::Path, error: &ParquetError) -> Error {
    Error::Parquet { path: path.to_path_buf(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use parquet::data_type::{ByteArrayType, Int32Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::super::documents::Boundaries;
    use super::*;

    /// Two row groups of an id and an optional text.
    fn write_example(path: &Path) {
        let schema = "message rows { required int32 id; optional binary text (UTF8); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file =
            SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
        for texts in [[Some("one"), None], [Some("two\n"), Some(" ")]] {
            let mut group = file.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(&[1, 2], None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let levels = texts.map(|text| i16::from(text.is_some()));
            let values: Vec<ByteArray> = texts.into_iter().flatten().map(Into::into).collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        file.close().unwrap();
    }

    fn open(path: &Path, field: &str) -> Result<ParquetFile> {
        let field = field.to_owned();
        let boundaries = Boundaries::Auto;
        let reading = Reading { boundaries, field, pairs: None, lossy: false, longest: 99 };
        ParquetFile::new(&InputFile::file(path), &reading)
    }

    #[test]
    fn rows_are_documents_and_empty_ones_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write_example(&path);
        let mut file = open(&path, "text").unwrap();
        let mut documents = Vec::new();
        while let Some(document) = file.next_document().unwrap() {
            documents.push(document);
        }
        assert_eq!(documents, ["one\n", "two\n"]);
        assert!(file.position() > 0);
        assert_eq!(file.digest().unwrap().bytes, std::fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn wrong_columns_and_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        write_example(&path);
        let message = open(&path, "body").err().unwrap().to_string();
        assert!(message.contains("no column \"body\"; the columns are id, text"), "{message}");
        let message = open(&path, "id").err().unwrap().to_string();
        assert!(message.contains("does not hold text"), "{message}");
        std::fs::write(&path, "not parquet").unwrap();
        let message = open(&path, "text").err().unwrap().to_string();
        assert!(message.contains("rows.parquet"), "{message}");
    }
}
