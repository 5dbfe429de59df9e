//! Sorted rows to one SST file.

use std::path::Path;

use rocksdb::{Options, SstFileWriter};
use streamkeeper_state::ColdRows;
use streamkeeper_types::Result;

use crate::store::failed;

/// Writes one file of sorted, distinct rows.
pub(crate) struct SstFile<'a> {
    writer: SstFileWriter<'a>,
    rows: u64,
}

impl<'a> SstFile<'a> {
    pub(crate) fn create(options: &'a Options, path: &Path) -> Result<Self> {
        let writer = SstFileWriter::create(options);
        writer.open(path).map_err(|error| failed("creating an SST file", &error))?;
        Ok(Self { writer, rows: 0 })
    }

    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.rows += 1;
        self.writer.put(key, value).map_err(|error| failed("writing an SST file", &error))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.rows += 1;
        self.writer.delete(key).map_err(|error| failed("writing an SST file", &error))
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the file; one without rows cannot be ended.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.writer.finish().map_err(|error| failed("writing an SST file", &error))
    }
}

/// Writes sorted rows, of which there is at least one.
pub(crate) fn write(options: &Options, path: &Path, rows: &ColdRows) -> Result<()> {
    let mut file = SstFile::create(options, path)?;
    for (key, value) in rows.iter() {
        match value {
            Some(value) => file.put(key, value)?,
            None => file.delete(key)?,
        }
    }
    file.finish()
}
