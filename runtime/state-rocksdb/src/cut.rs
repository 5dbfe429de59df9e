//! Hard links to the files of a database at one moment.

use std::{
    fs,
    path::{Path, PathBuf},
};

use streamkeeper_state::{ColdCut, CutFile};
use streamkeeper_types::{Code, Error, Result};

use crate::{raw, store::Inner};

/// Files of every table, linked into a folder of their own.
#[derive(Debug)]
pub(crate) struct Cut {
    dir: PathBuf,
    tables: Vec<Vec<CutFile>>,
}

impl Cut {
    pub(crate) fn new(inner: &Inner) -> Result<Self> {
        let dir = inner.scratch_path("cut");
        fs::create_dir_all(&dir).map_err(|error| Error::io(Code::NotWritable, dir.display(), &error))?;
        let mut cut = Self { dir, tables: Vec::new() };
        for table in 0..inner.options.len() {
            let files = raw::export(&inner.db, inner.family(table)?, &cut.dir.join(table.to_string()))?;
            let files = files.into_iter().map(cut_file).collect::<Result<_>>()?;
            cut.tables.push(files);
        }
        Ok(cut)
    }
}

fn cut_file(file: raw::SstMeta) -> Result<CutFile> {
    let metadata =
        fs::metadata(&file.path).map_err(|error| Error::io(Code::FileUnreadable, file.path.display(), &error))?;
    let number = file_number(&file.path).ok_or_else(|| Error::internal("a state file's name is no number"))?;
    Ok(CutFile {
        identity: number,
        size: metadata.len(),
        path: file.path,
        level: file.level,
        smallest: file.smallest,
        largest: file.largest,
        smallest_seq: file.smallest_seq,
        largest_seq: file.largest_seq,
    })
}

/// RocksDB's number of a file: within one database never used again (an inode would be).
pub(crate) fn file_number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl ColdCut for Cut {
    fn files(&self, table: usize) -> &[CutFile] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::debug!(path = %self.dir.display(), %error, "links of a cut could not be removed");
        }
    }
}
