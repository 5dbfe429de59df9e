//! Version 1 of the file that holds a delta, or a base of the memory backend.
//!
//! ```text
//! "SKSTATE1"            8 bytes
//! length of the header  u32 LE
//! header                JSON: table names and schemas, and table, rows and bytes of each section
//! sections              one Arrow IPC stream each, applied in order
//! XXH3-64 of all before u64 LE
//! ```

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

use arrow::{array::RecordBatch, ipc::writer::StreamWriter};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use streamkeeper_types::{Code, Error, Result, ResultExt, key_group, snapshot::TableSchema};

use super::read_stream;

const MAGIC: &[u8; 8] = b"SKSTATE1";

/// Smaller sections stay in memory until the next checkpoint.
const LOCAL_FILE_FROM: usize = 16 << 10;

/// Encoded rows of one table, complete in themselves.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    table: usize,
    rows: u64,
    bytes: SectionBytes,
}

#[derive(Debug, Clone)]
enum SectionBytes {
    Memory(Bytes),
    File(Arc<LocalFile>),
}

/// A file of this process alone, removed with the last reference.
#[derive(Debug)]
struct LocalFile {
    path: PathBuf,
    size: u64,
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "a spilled section could not be removed");
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    tables: Vec<TableEntry>,
    sections: Vec<SectionEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TableEntry {
    name: String,
    schema: TableSchema,
}

#[derive(Debug, Serialize, Deserialize)]
struct SectionEntry {
    table: usize,
    rows: u64,
    length: u64,
}

impl Section {
    pub(crate) fn encode(table: usize, batch: &RecordBatch) -> Result<Self> {
        let encode = || {
            let mut writer =
                StreamWriter::try_new(Vec::with_capacity(batch.get_array_memory_size()), batch.schema_ref())?;
            writer.write(batch)?;
            writer.into_inner()
        };
        let bytes = encode().or_code(Code::Internal, || "encoding rows of state".into())?;
        Ok(Self { table, rows: batch.num_rows() as u64, bytes: SectionBytes::Memory(bytes.into()) })
    }

    /// Moves a large section out of memory into a file in `dir`.
    pub(crate) fn into_local_file(self, dir: &Path) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let bytes = match &self.bytes {
            SectionBytes::Memory(bytes) if bytes.len() >= LOCAL_FILE_FROM => bytes,
            _ => return Ok(self),
        };
        let path = dir.join(format!("changes-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&path, bytes).map_err(|error| Error::io(Code::NotWritable, path.display(), &error))?;
        let file = LocalFile { path, size: bytes.len() as u64 };
        Ok(Self { bytes: SectionBytes::File(Arc::new(file)), ..self })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes, wherever they are.
    pub(crate) fn len(&self) -> u64 {
        match &self.bytes {
            SectionBytes::Memory(bytes) => bytes.len() as u64,
            SectionBytes::File(file) => file.size,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.bytes {
            SectionBytes::Memory(bytes) => bytes.len(),
            SectionBytes::File(_) => 0,
        }
    }

    fn append_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        match &self.bytes {
            SectionBytes::Memory(bytes) => out.write_all(bytes),
            SectionBytes::File(file) => std::io::copy(&mut fs::File::open(&file.path)?, out).map(|_| ()),
        }
    }
}

/// Sections with the tables that they are of: the content of one file.
#[derive(Debug)]
pub(crate) struct StateObject {
    header: Header,
    sections: Vec<Section>,
}

impl StateObject {
    /// `tables` by number, as the sections name them.
    pub(crate) fn new(tables: Vec<(String, TableSchema)>, sections: Vec<Section>) -> Self {
        let entry =
            |section: &Section| SectionEntry { table: section.table, rows: section.rows, length: section.len() };
        let header = Header {
            tables: tables.into_iter().map(|(name, schema)| TableEntry { name, schema }).collect(),
            sections: sections.iter().map(entry).collect(),
        };
        Self { header, sections }
    }

    /// Bytes of the file, but for the header's few.
    pub(crate) fn size(&self) -> u64 {
        self.sections.iter().map(Section::len).sum()
    }

    /// Writes the whole file.
    pub(crate) fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut out = Hashing { out, hash: xxhash_rust::xxh3::Xxh3::new() };
        let header = serde_json::to_vec(&self.header)?;
        out.write_all(MAGIC)?;
        let length = u32::try_from(header.len()).map_err(std::io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&header)?;
        self.sections.iter().try_for_each(|section| section.append_to(&mut out))?;
        let hash = out.hash.digest();
        out.out.write_all(&hash.to_le_bytes())
    }

    /// Takes a file apart; its sections are decoded by [`Self::for_each_batch`].
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for anything that [`Self::write`] did not write, `SNAPSHOT_FOREIGN` for another version.
    pub(crate) fn read(bytes: &Bytes) -> Result<Self> {
        let corrupt = || Error::new(Code::SnapshotCorrupt, "the file is torn or no state file");
        if bytes.len() >= MAGIC.len() && bytes.starts_with(&MAGIC[..7]) && !bytes.starts_with(MAGIC) {
            return Err(Error::new(
                Code::SnapshotForeign,
                "the state file has a version that this program cannot read",
            ));
        }
        let content_end = bytes.len().checked_sub(8).ok_or_else(corrupt)?;
        let (content, trailer) = bytes.split_at(content_end);
        if !content.starts_with(MAGIC) || key_group::hash(content).to_le_bytes() != *trailer {
            return Err(corrupt());
        }
        let length = content.get(8..12).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes).ok_or_else(corrupt)?;
        let header_end = 12_usize.checked_add(length as usize).ok_or_else(corrupt)?;
        let header = content.get(12..header_end).ok_or_else(corrupt)?;
        let header: Header = serde_json::from_slice(header).map_err(|_| corrupt())?;
        let mut at = header_end;
        let mut sections = Vec::with_capacity(header.sections.len());
        for entry in &header.sections {
            let end = usize::try_from(entry.length).ok().and_then(|length| at.checked_add(length));
            let end = end.filter(|end| *end <= content_end && entry.table < header.tables.len()).ok_or_else(corrupt)?;
            let bytes = SectionBytes::Memory(bytes.slice(at..end));
            sections.push(Section { table: entry.table, rows: entry.rows, bytes });
            at = end;
        }
        if at != content_end {
            return Err(corrupt());
        }
        Ok(Self { header, sections })
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &TableSchema)> {
        self.header.tables.iter().map(|table| (&table.name[..], &table.schema))
    }

    /// Calls `visit` for the batches of all sections in order, with their table's name.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for a section that is no Arrow stream, or the visitor's error.
    pub(crate) fn for_each_batch(&self, mut visit: impl FnMut(&str, &RecordBatch) -> Result<()>) -> Result<()> {
        for section in &self.sections {
            let SectionBytes::Memory(bytes) = &section.bytes else { continue };
            read_stream(bytes, |batch| visit(&self.header.tables[section.table].name, batch))?;
        }
        Ok(())
    }
}

struct Hashing<'a, W> {
    out: &'a mut W,
    hash: xxhash_rust::xxh3::Xxh3,
}

impl<W: Write> Write for Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_types::snapshot::FieldSchema;

    use super::*;

    /// Golden header of version 1: a change here is a new version of every stored delta.
    const HEADER: &str = concat!(
        r#"{"tables":[{"name":"t","schema":{"version":1,"key":[{"name":"k","data_type":"int64"}],"#,
        r#""prefix":0,"hashed":1,"values":[],"ttl":false}}],"sections":[]}"#,
    );

    #[test]
    fn the_frame_has_its_golden_bytes_and_is_read_back() {
        let schema = TableSchema {
            version: 1,
            key: vec![FieldSchema { name: "k".into(), data_type: "int64".into() }],
            prefix: 0,
            hashed: 1,
            values: Vec::new(),
            ttl: false,
        };
        let mut written = Vec::new();
        StateObject::new(vec![("t".into(), schema.clone())], Vec::new()).write(&mut written).unwrap();

        let mut expected = b"SKSTATE1".to_vec();
        expected.extend_from_slice(&u32::try_from(HEADER.len()).unwrap().to_le_bytes());
        expected.extend_from_slice(HEADER.as_bytes());
        let hash = key_group::hash(&expected);
        expected.extend_from_slice(&hash.to_le_bytes());
        assert_eq!(written, expected);

        let read = StateObject::read(&written.into()).unwrap();
        assert_eq!(read.tables().collect::<Vec<_>>(), [("t", &schema)]);
    }
}
