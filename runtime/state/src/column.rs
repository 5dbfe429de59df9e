//! One value column of a table: a value and a validity for each slot.

use arrow::{
    array::{Array, ArrayRef, AsArray},
    buffer::NullBuffer,
    datatypes::DataType,
};
use streamkeeper_types::{Error, Result};

use crate::{
    Slot,
    bytes_store::{ByteStore, Gaps},
    codec::{Codec, Use, View, decode_values},
    physical::{Physical, Values, is_nested, read_f64s, read_i64s, read_i128s, to_array},
    spec::Initial,
};

/// Values of one column by slot, in the column's physical kind.
#[derive(Debug)]
pub enum ValueColumn {
    I64(Fixed<i64>),
    F64(Fixed<f64>),
    I128(Fixed<i128>),
    Bytes(Bytes),
}

/// Values of fixed width. `values[slot]` counts only if `valid[slot]`; else the value is NULL.
#[derive(Debug, Default)]
pub struct Fixed<T> {
    pub values: Vec<T>,
    pub valid: Vec<bool>,
}

/// Values of any length.
#[derive(Debug, Default)]
pub struct Bytes {
    store: ByteStore,
    valid: Vec<bool>,
}

impl Bytes {
    /// The value's bytes; `None` for NULL.
    #[must_use]
    pub fn get(&self, slot: Slot) -> Option<&[u8]> {
        self.valid[slot.index()].then(|| self.store.get(slot.index()))
    }

    pub fn set(&mut self, slot: Slot, value: Option<&[u8]>) {
        self.valid[slot.index()] = value.is_some();
        match value {
            Some(value) => self.store.set(slot.index(), value),
            None => self.store.clear(slot.index()),
        }
    }
}

macro_rules! accessors {
    ($($name:ident $name_mut:ident $variant:ident $type:ty;)+) => {
        impl ValueColumn {$(
            /// The column in this kind, if it is of it.
            #[must_use]
            pub fn $name(&self) -> Option<&$type> {
                match self { Self::$variant(column) => Some(column), _ => None }
            }

            /// The column in this kind, if it is of it.
            pub fn $name_mut(&mut self) -> Option<&mut $type> {
                match self { Self::$variant(column) => Some(column), _ => None }
            }
        )+}
    };
}

accessors! {
    as_i64 as_i64_mut I64 Fixed<i64>;
    as_f64 as_f64_mut F64 Fixed<f64>;
    as_i128 as_i128_mut I128 Fixed<i128>;
    as_bytes as_bytes_mut Bytes Bytes;
}

impl<T: Copy + Default> Fixed<T> {
    fn gather(&self, slots: &[Slot]) -> (Vec<T>, Option<NullBuffer>) {
        let values = slots.iter().map(|slot| self.values[slot.index()]).collect();
        (values, gather_nulls(&self.valid, slots))
    }

    fn scatter(&mut self, values: &[T], nulls: Option<&NullBuffer>, rows: &[u32], slots: &[Slot]) {
        for (row, slot) in rows.iter().zip(slots) {
            self.values[slot.index()] = values[*row as usize];
            self.valid[slot.index()] = nulls.is_none_or(|nulls| nulls.is_valid(*row as usize));
        }
    }
}

fn gather_nulls(valid: &[bool], slots: &[Slot]) -> Option<NullBuffer> {
    if slots.iter().all(|slot| valid[slot.index()]) {
        return None;
    }
    Some(slots.iter().map(|slot| valid[slot.index()]).collect())
}

impl ValueColumn {
    pub(crate) fn new(physical: Physical) -> Self {
        match physical {
            Physical::I64 => Self::I64(Fixed::default()),
            Physical::F64 => Self::F64(Fixed::default()),
            Physical::I128 => Self::I128(Fixed::default()),
            Physical::Bytes => Self::Bytes(Bytes::default()),
        }
    }

    pub(crate) fn push_slot(&mut self) {
        match self {
            Self::I64(column) => column.push_slot(),
            Self::F64(column) => column.push_slot(),
            Self::I128(column) => column.push_slot(),
            Self::Bytes(column) => {
                column.store.push_slot();
                column.valid.push(false);
            }
        }
    }

    /// Puts the value of a new row.
    pub(crate) fn reset(&mut self, slot: usize, initial: Initial) {
        let valid = initial == Initial::Zero;
        match self {
            Self::I64(column) => column.reset(slot, valid),
            Self::F64(column) => column.reset(slot, valid),
            Self::I128(column) => column.reset(slot, valid),
            Self::Bytes(column) => {
                column.store.clear(slot);
                column.valid[slot] = valid;
            }
        }
    }

    /// Bytes in memory that a slot costs, strings apart.
    pub(crate) fn slot_bytes(&self) -> usize {
        match self {
            Self::I64(_) | Self::F64(_) => 9,
            Self::I128(_) => 17,
            Self::Bytes(_) => ByteStore::SLOT_BYTES + 1,
        }
    }

    /// Bytes of strings.
    pub(crate) fn string_bytes(&self) -> usize {
        match self {
            Self::Bytes(column) => column.store.bytes(),
            _ => 0,
        }
    }

    pub(crate) fn compact(&mut self, gaps: Gaps) {
        if let Self::Bytes(column) = self {
            column.store.compact(gaps);
        }
    }

    pub(crate) fn is_valid(&self, slot: usize) -> bool {
        match self {
            Self::I64(column) => column.valid[slot],
            Self::F64(column) => column.valid[slot],
            Self::I128(column) => column.valid[slot],
            Self::Bytes(column) => column.valid[slot],
        }
    }

    /// The values of `slots` as an Arrow array of `data_type`.
    pub(crate) fn gather(&self, slots: &[Slot], data_type: &DataType) -> Result<ArrayRef> {
        match self {
            Self::I64(column) => {
                let (values, nulls) = column.gather(slots);
                to_array(Values::I64(values), nulls, data_type)
            }
            Self::F64(column) => {
                let (values, nulls) = column.gather(slots);
                to_array(Values::F64(values), nulls, data_type)
            }
            Self::I128(column) => {
                let (values, nulls) = column.gather(slots);
                to_array(Values::I128(values), nulls, data_type)
            }
            Self::Bytes(column) if is_nested(data_type) => {
                decode_values(data_type, slots.iter().map(|slot| column.get(*slot)))
            }
            Self::Bytes(column) => {
                let mut data = Vec::new();
                let mut ends = Vec::with_capacity(slots.len());
                for slot in slots {
                    data.extend_from_slice(column.get(*slot).unwrap_or_default());
                    ends.push(data.len());
                }
                to_array(Values::Bytes { ends, data }, gather_nulls(&column.valid, slots), data_type)
            }
        }
    }

    /// Sets `slots[i]` to row `rows[i]` of `array`, whose type is `data_type`.
    pub(crate) fn scatter(
        &mut self,
        array: &ArrayRef,
        data_type: &DataType,
        rows: &[u32],
        slots: &[Slot],
    ) -> Result<()> {
        let nulls = array.logical_nulls();
        match self {
            Self::I64(column) => {
                let mut values = Vec::with_capacity(array.len());
                read_i64s(array, &mut values)?;
                column.scatter(&values, nulls.as_ref(), rows, slots);
            }
            Self::F64(column) => {
                let mut values = Vec::with_capacity(array.len());
                read_f64s(array, &mut values)?;
                column.scatter(&values, nulls.as_ref(), rows, slots);
            }
            Self::I128(column) => {
                let mut values = Vec::with_capacity(array.len());
                read_i128s(array, &mut values)?;
                column.scatter(&values, nulls.as_ref(), rows, slots);
            }
            Self::Bytes(column) if is_nested(data_type) => {
                let view = View::new(array, &Codec::of(data_type, Use::Value)?, Use::Value)?;
                let mut bytes = Vec::new();
                for (row, slot) in rows.iter().zip(slots) {
                    bytes.clear();
                    view.append(*row as usize, &mut bytes);
                    column.set(*slot, (!view.is_null(*row as usize)).then_some(&bytes[..]));
                }
            }
            Self::Bytes(column) => {
                let get = byte_getter(array)?;
                for (row, slot) in rows.iter().zip(slots) {
                    let row = *row as usize;
                    let value = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then(|| get(row));
                    column.set(*slot, value);
                }
            }
        }
        Ok(())
    }
}

impl<T: Copy + Default> Fixed<T> {
    fn push_slot(&mut self) {
        self.values.push(T::default());
        self.valid.push(false);
    }

    fn reset(&mut self, slot: usize, valid: bool) {
        self.values[slot] = T::default();
        self.valid[slot] = valid;
    }
}

/// Access to the bytes of any string or binary array.
fn byte_getter<'a>(array: &'a ArrayRef) -> Result<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    Ok(match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(|row| array.value(row).as_bytes())
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Box::new(|row| array.value(row))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Box::new(|row| array.value(row))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Box::new(|row| array.value(row))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Box::new(|row| array.value(row))
        }
        other => return Err(Error::internal(format!("a column of type {other} where bytes are declared"))),
    })
}
