//! Version 1 of a row's value bytes in a cold store.
//!
//! ```text
//! [last use, ms, i64 LE]   only with TTL
//! validity bits, one a column, from the low bit
//! each valid column: 8 bytes LE │ 16 bytes LE │ u32 LE length and bytes
//! ```

use crate::{Slot, column::ValueColumn};

pub(crate) fn encode(columns: &[ValueColumn], used_at: Option<i64>, slot: usize, out: &mut Vec<u8>) {
    if let Some(used_at) = used_at {
        out.extend_from_slice(&used_at.to_le_bytes());
    }
    for columns in columns.chunks(8) {
        let bit = |(i, column): (usize, &ValueColumn)| u8::from(column.is_valid(slot)) << i;
        out.push(columns.iter().enumerate().map(bit).sum());
    }
    for column in columns.iter().filter(|column| column.is_valid(slot)) {
        match column {
            ValueColumn::I64(column) => out.extend_from_slice(&column.values[slot].to_le_bytes()),
            ValueColumn::F64(column) => out.extend_from_slice(&column.values[slot].to_le_bytes()),
            ValueColumn::I128(column) => out.extend_from_slice(&column.values[slot].to_le_bytes()),
            ValueColumn::Bytes(column) => {
                let value = column.get(Slot(slot as u32)).unwrap_or_default();
                out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
                out.extend_from_slice(value);
            }
        }
    }
}

/// Puts a row's values into `slot`; gives the time of last use if the bytes have one. `None` for bytes that are no row.
pub(crate) fn decode(mut bytes: &[u8], has_ttl: bool, columns: &mut [ValueColumn], slot: usize) -> Option<Option<i64>> {
    let used_at = if has_ttl { Some(i64::from_le_bytes(take(&mut bytes)?)) } else { None };
    let (validity, rest) = bytes.split_at_checked(columns.len().div_ceil(8))?;
    bytes = rest;
    for (i, column) in columns.iter_mut().enumerate() {
        let valid = validity[i / 8] >> (i % 8) & 1 == 1;
        match column {
            ValueColumn::I64(column) => {
                column.valid[slot] = valid;
                column.values[slot] = if valid { i64::from_le_bytes(take(&mut bytes)?) } else { 0 };
            }
            ValueColumn::F64(column) => {
                column.valid[slot] = valid;
                column.values[slot] = if valid { f64::from_le_bytes(take(&mut bytes)?) } else { 0.0 };
            }
            ValueColumn::I128(column) => {
                column.valid[slot] = valid;
                column.values[slot] = if valid { i128::from_le_bytes(take(&mut bytes)?) } else { 0 };
            }
            ValueColumn::Bytes(column) if valid => {
                let length = u32::from_le_bytes(take(&mut bytes)?) as usize;
                let (value, rest) = bytes.split_at_checked(length)?;
                column.set(Slot(slot as u32), Some(value));
                bytes = rest;
            }
            ValueColumn::Bytes(column) => column.set(Slot(slot as u32), None),
        }
    }
    bytes.is_empty().then_some(used_at)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use streamkeeper_types::hex;

    use super::*;
    use crate::Physical;

    fn columns() -> Vec<ValueColumn> {
        let kinds = [Physical::I64, Physical::F64, Physical::I128, Physical::Bytes, Physical::I64];
        let mut columns: Vec<_> = kinds.into_iter().map(ValueColumn::new).collect();
        columns.iter_mut().for_each(ValueColumn::push_slot);
        columns
    }

    /// Golden bytes of version 1: a change here is a new version of every stored row.
    const GOLDEN: &str = concat!(
        "0500000000000000", // last use
        "0f",               // the last column is NULL
        "feffffffffffffff", // -2
        "000000000000f03f", // 1.0
        "03000000000000000000000000000000",
        "020000006869", // "hi"
    );

    #[test]
    fn rows_have_their_golden_bytes_and_come_back() {
        let mut written = columns();
        let fixed = written[0].as_i64_mut().unwrap();
        (fixed.values[0], fixed.valid[0]) = (-2, true);
        let float = written[1].as_f64_mut().unwrap();
        (float.values[0], float.valid[0]) = (1.0, true);
        let wide = written[2].as_i128_mut().unwrap();
        (wide.values[0], wide.valid[0]) = (3, true);
        written[3].as_bytes_mut().unwrap().set(Slot(0), Some(b"hi"));
        let mut bytes = Vec::new();
        encode(&written, Some(5), 0, &mut bytes);
        assert_eq!(hex::encode(&bytes), GOLDEN);

        let mut read = columns();
        assert_eq!(decode(&bytes, true, &mut read, 0), Some(Some(5)));
        let mut again = Vec::new();
        encode(&read, Some(5), 0, &mut again);
        assert_eq!(again, bytes);
    }

    proptest! {
        #[test]
        fn hostile_row_bytes_are_refused_or_read_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut read = columns();
            if let Some(used_at) = decode(&bytes, true, &mut read, 0) {
                let mut again = Vec::new();
                encode(&read, used_at, 0, &mut again);
                prop_assert_eq!(again.len(), bytes.len());
            }
        }
    }
}
