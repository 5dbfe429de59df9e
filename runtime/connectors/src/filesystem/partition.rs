//! Columns of PARTITIONED BY: they lie in the names of folders (`day=2026-01-01/country=AT`), not in the files.

use arrow::{
    array::UInt32Array,
    array::{ArrayRef, new_null_array},
    compute::take,
    datatypes::{Field, FieldRef, Schema, SchemaRef},
};
use streamkeeper_types::{Code, Error, Result};

use super::{project, source_failed};
use crate::{
    formats::{BadRows, parse_column},
    registry::TableDefinition,
    text::Column,
};

/// What stands for NULL and for an empty text.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// The partition columns of a table, in the order of PARTITIONED BY.
#[derive(Debug, Clone)]
pub(super) struct PartitionColumns {
    fields: Vec<FieldRef>,
    /// Their positions in the table.
    positions: Vec<usize>,
}

impl PartitionColumns {
    pub(super) fn new(table: &TableDefinition) -> Result<Self> {
        let mut columns = Self { fields: Vec::new(), positions: Vec::new() };
        for name in &table.partitioned_by {
            let position = table.schema.index_of(name).map_err(|_| {
                Error::new(
                    Code::SqlInvalid,
                    format!("table {}: PARTITIONED BY names no physical column `{name}`", table.name),
                )
            })?;
            let field = &table.schema.fields()[position];
            if field.data_type().is_nested() {
                let cause = format!("table {}: `{name}` cannot be a partition column", table.name);
                return Err(Error::new(Code::SqlInvalid, cause).way_out("partition by a scalar column"));
            }
            columns.fields.push(field.clone());
            columns.positions.push(position);
        }
        Ok(columns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The table's schema without these columns.
    pub(super) fn without(&self, schema: &Schema) -> Result<SchemaRef> {
        let rest = project(schema, |name| !self.fields.iter().any(|field| field.name() == name));
        if rest.fields().is_empty() {
            let cause = "all columns are in PARTITIONED BY, none is left for the files";
            return Err(Error::new(Code::SqlInvalid, cause).way_out("leave a column out of PARTITIONED BY"));
        }
        Ok(rest)
    }

    /// Positions of the columns that lie in the files.
    pub(super) fn positions_in_files(&self, columns: usize) -> Vec<usize> {
        (0..columns).filter(|position| !self.positions.contains(position)).collect()
    }

    /// Text columns of a batch of the table, for [`PartitionColumns::write_folder`].
    pub(super) fn columns<'a>(&self, columns: &'a [ArrayRef]) -> Result<Vec<Column<'a>>> {
        self.positions.iter().map(|position| Column::new(&columns[*position])).collect()
    }

    /// Appends `a=1/b=2` of one row.
    pub(super) fn write_folder(&self, columns: &[Column<'_>], row: usize, value: &mut Vec<u8>, out: &mut Vec<u8>) {
        for (index, (field, column)) in self.fields.iter().zip(columns).enumerate() {
            if index > 0 {
                out.push(b'/');
            }
            escape(field.name().as_bytes(), out);
            out.push(b'=');
            value.clear();
            if !column.is_null(row) {
                column.write(row, value);
            }
            if value.is_empty() {
                out.extend_from_slice(NULL_FOLDER.as_bytes());
            } else {
                escape(value, out);
            }
        }
    }

    /// One-row arrays with the values that a file's path gives.
    pub(super) fn values_of(&self, path: &str) -> Result<Vec<ArrayRef>> {
        self.fields.iter().map(|field| value_of(field, path)).collect()
    }

    /// Puts the columns of a file and the values of its path into the table's order.
    pub(super) fn join(&self, columns: Vec<ArrayRef>, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        if self.is_empty() {
            return Ok(columns);
        }
        let rows = columns.first().map_or(0, |column| column.len());
        let first = UInt32Array::from_value(0, rows);
        let mut rest = columns.into_iter();
        let count = rest.len() + values.len();
        (0..count)
            .map(|position| match self.positions.iter().position(|p| *p == position) {
                Some(index) => take(&values[index], &first, None).map_err(|e| Error::internal(e.to_string())),
                None => rest.next().ok_or_else(|| Error::internal("a file has fewer columns than its table")),
            })
            .collect()
    }
}

fn value_of(field: &Field, path: &str) -> Result<ArrayRef> {
    let prefix = format!("{}=", field.name());
    let folder = path
        .rsplit('/')
        .skip(1)
        .find_map(|folder| unescape(folder).strip_prefix(prefix.as_bytes()).map(<[u8]>::to_vec));
    let Some(value) = folder else {
        return Err(source_failed(path.as_ref(), format!("no folder of the path is named `{prefix}…`"))
            .way_out("a table with PARTITIONED BY reads files in folders such as `day=2026-01-01`"));
    };
    if value == NULL_FOLDER.as_bytes() {
        return Ok(new_null_array(field.data_type(), 1));
    }
    let mut bad = BadRows::default();
    let array = parse_column(field.data_type(), b';', std::iter::once(Some(&value[..])), &mut bad)?;
    match bad.into_sorted().pop() {
        Some((_, cause)) => Err(source_failed(path.as_ref(), format!("column `{}`: {cause}", field.name()))),
        None => Ok(array),
    }
}

/// Percent-encodes what has a meaning in paths, in patterns or to Hive.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if byte.is_ascii_control() || b"\"#%'*/:=?\\{}[]^".contains(byte) {
            let hex = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble)];
            out.extend_from_slice(&[b'%', hex(byte >> 4), hex(byte & 15)]);
        } else {
            out.push(*byte);
        }
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let encoded = after.get(..2).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match encoded.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_are_percent_encoded() {
        let mut out = Vec::new();
        escape(b"a/b=c:d 100%\n", &mut out);
        assert_eq!(out, b"a%2Fb%3Dc%3Ad 100%25%0A");
    }

    proptest! {
        #[test]
        fn escaped_names_read_back(text in "\\PC{0,20}") {
            let mut out = Vec::new();
            escape(text.as_bytes(), &mut out);
            let name = String::from_utf8(out).expect("escaping keeps UTF-8");
            prop_assert!(!name.contains('/'));
            prop_assert_eq!(unescape(&name), text.as_bytes());
        }
    }
}
