//! Dead letters: bad records as JSON lines, in files that appear when the checkpoint that covers them is complete.

use std::path::Path;

use streamkeeper_engine::SubtaskInfo;
use streamkeeper_types::{CheckpointId, Result};

use super::{
    bad_records::Found,
    staging::{StagedFile, Staging},
};
use crate::{base64, formats::write_json_string, text::write_integer};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 << 10;

pub(super) struct DeadLetters {
    staging: Staging,
    file: Option<StagedFile>,
    lines: Vec<u8>,
}

impl DeadLetters {
    pub(super) fn open(folder: &Path, job: &str, subtask: &SubtaskInfo) -> Result<Self> {
        Ok(Self { staging: Staging::open(folder, job, "dead-letter", subtask)?, file: None, lines: Vec::new() })
    }

    /// `{"file":…,"offset":…,"cause":…,"record":…}`; a record that is not UTF-8 is in `"recordBase64"` instead.
    pub(super) fn write(&mut self, found: Found<'_>) -> Result<()> {
        let out = &mut self.lines;
        out.extend_from_slice(b"{\"file\":");
        write_json_string(found.path, out);
        out.extend_from_slice(b",\"offset\":");
        write_integer(i64::try_from(found.offset).unwrap_or(i64::MAX), out);
        out.extend_from_slice(b",\"cause\":");
        write_json_string(found.cause, out);
        if let Ok(record) = std::str::from_utf8(found.bytes) {
            out.extend_from_slice(b",\"record\":");
            write_json_string(record, out);
        } else {
            out.extend_from_slice(b",\"recordBase64\":\"");
            base64::encode(found.bytes, out);
            out.push(b'"');
        }
        out.extend_from_slice(b"}\n");
        if self.lines.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(self.staging.create("", "jsonl")?);
        }
        if let Some(file) = &mut self.file {
            file.write(&self.lines)?;
        }
        self.lines.clear();
        Ok(())
    }

    pub(super) fn prepare(&mut self, id: CheckpointId) -> Result<()> {
        self.flush()?;
        if let Some(file) = self.file.take() {
            self.staging.finish(file)?;
        }
        self.staging.prepare(id)
    }

    pub(super) fn state(&self) -> Vec<Vec<u8>> {
        self.staging.state()
    }

    pub(super) fn restore(&mut self, items: &[Vec<u8>]) -> Result<()> {
        self.staging.restore(items)
    }

    pub(super) fn commit(&mut self, id: CheckpointId) -> Result<()> {
        self.staging.commit(id)
    }
}
