//! Which columns a key has, and what each is for.

use std::ops::Range;

use arrow::{array::ArrayRef, datatypes::FieldRef};
use streamkeeper_types::{Code, Error, KeyGroup, Result};

use crate::codec::{Codec, Decoded, Use, skip};

/// Columns of a key in the order of their bytes.
///
/// ```text
///  kg │ window end │ user │ value     fields
///       └──────────┘                  scan = 1: scans name these leading columns
///                    └────┘           hashed = 1..2: these choose the key group
/// ```
#[derive(Debug, Clone)]
pub struct KeySchema {
    fields: Vec<FieldRef>,
    codecs: Vec<Codec>,
    hashed: Range<usize>,
    scan: usize,
}

impl KeySchema {
    /// All columns choose the key group; no scan by prefix.
    ///
    /// # Errors
    /// `SQL_UNSUPPORTED` for a column that cannot be a key.
    pub fn new(fields: Vec<FieldRef>) -> Result<Self> {
        let hashed = 0..fields.len();
        Self::with_layout(fields, hashed, 0)
    }

    /// Columns `hashed` choose the key group, the others only order the table; scans name the first `scan` columns.
    ///
    /// The scanned columns either all lie before the hashed ones (few values, as a window's end: the table knows which
    /// exist) or include all of them (many values, as a group's rows).
    ///
    /// # Errors
    /// `SQL_UNSUPPORTED` for a column that cannot be a key, `INTERNAL` for a layout that is none of these.
    pub fn with_layout(fields: Vec<FieldRef>, hashed: Range<usize>, scan: usize) -> Result<Self> {
        let within = hashed.start <= hashed.end && hashed.end <= fields.len();
        let scannable = scan <= hashed.start || (hashed.start == 0 && hashed.end <= scan && scan <= fields.len());
        if !within || !scannable {
            return Err(Error::internal(format!(
                "key layout: {} columns, hashed {hashed:?}, scan {scan}",
                fields.len()
            )));
        }
        let codecs = fields
            .iter()
            .map(|field| Codec::of(field.data_type(), Use::Key).map_err(|e| e.at(format!("column {}", field.name()))))
            .collect::<Result<_>>()?;
        Ok(Self { fields, codecs, hashed, scan })
    }

    #[must_use]
    pub fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// Columns that choose the key group.
    #[must_use]
    pub fn hashed(&self) -> Range<usize> {
        self.hashed.clone()
    }

    /// Number of leading columns that scans name.
    #[must_use]
    pub fn scan(&self) -> usize {
        self.scan
    }

    /// Whether rows with one scan prefix lie in every key group.
    pub(crate) fn scans_all_groups(&self) -> bool {
        self.scan <= self.hashed.start
    }

    /// Whether the table keeps track of the scan prefixes that exist.
    pub(crate) fn tracks_prefixes(&self) -> bool {
        self.scan > 0 && self.scans_all_groups()
    }

    pub(crate) fn codecs(&self) -> &[Codec] {
        &self.codecs
    }

    /// The scan prefix within row bytes, without the key group; `None` for bytes that are no key.
    pub(crate) fn scan_prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let columns = key.get(2..)?;
        let mut rest = columns;
        self.codecs[..self.scan].iter().try_for_each(|codec| skip(codec, &mut rest))?;
        Some(&columns[..columns.len() - rest.len()])
    }

    /// Whether `key` is the row bytes of some key.
    pub(crate) fn is_key(&self, key: &[u8]) -> bool {
        let Some(mut rest) = key.get(2..) else { return false };
        self.codecs.iter().all(|codec| skip(codec, &mut rest).is_some()) && rest.is_empty()
    }

    /// The key columns of encoded rows.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for bytes that are no key.
    pub fn decode<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        self.decode_columns(self.fields.len(), keys.map(|key| key.get(2..)))
    }

    /// The scanned columns of prefixes, as [`Table::prefixes`](crate::Table::prefixes) gives them.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for bytes that are no prefix.
    pub fn decode_prefixes<'a>(&self, prefixes: impl Iterator<Item = &'a KeyPrefix>) -> Result<Vec<ArrayRef>> {
        self.decode_columns(self.scan, prefixes.map(|prefix| Some(&prefix.bytes[..])))
    }

    fn decode_columns<'a>(&self, count: usize, keys: impl Iterator<Item = Option<&'a [u8]>>) -> Result<Vec<ArrayRef>> {
        let mut columns: Vec<Decoded> = self.codecs[..count].iter().map(Decoded::new).collect();
        for key in keys {
            let read = key.and_then(|mut rest| {
                columns.iter_mut().try_for_each(|column| column.push(&mut rest))?;
                rest.is_empty().then_some(())
            });
            read.ok_or_else(|| Error::new(Code::SnapshotCorrupt, "the bytes of a state key are malformed"))?;
        }
        columns.into_iter().zip(&self.fields).map(|(column, field)| column.finish(field.data_type())).collect()
    }
}

/// Encoded leading key columns, to scan by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPrefix {
    /// The key group of all rows with it, if it has one.
    pub(crate) group: Option<KeyGroup>,
    /// Without key group.
    pub(crate) bytes: Box<[u8]>,
}

impl KeyPrefix {
    /// Every row of the table.
    #[must_use]
    pub fn all() -> Self {
        Self { group: None, bytes: Box::default() }
    }
}
