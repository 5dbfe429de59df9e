//! Texts of integers.

use std::fmt::Write;

use arrow::{array::ArrayRef, datatypes::Int64Type};
use datafusion::common::{Result, plan_err};

use crate::functions::{
    call::Call,
    definition::{
        Definition,
        Param::{Any, Integer},
        Types, is_text,
        returns::text,
    },
};

pub(crate) static FUNCTIONS: [Definition; 2] = [
    Definition::new("bin", "BIN(x BIGINT) → STRING", &[Integer], text, bin),
    Definition::new("hex", "HEX(x BIGINT | STRING) → STRING", &[Any], hexed, hex),
];

fn hexed(types: &Types) -> Result<arrow::datatypes::DataType> {
    let given = types.of(0);
    if is_text(&given) || given.is_integer() { text(types) } else { plan_err!("HEX takes an integer or a STRING") }
}

fn bin(call: &Call) -> Result<ArrayRef> {
    let values = call.number::<Int64Type>(0)?;
    // Writing to a String cannot fail.
    call.texts(|row, out| Ok(values.get(row).and_then(|value| write!(out, "{value:b}").ok())))
}

fn hex(call: &Call) -> Result<ArrayRef> {
    if is_text(call.array(0)?.data_type()) {
        let values = call.text(0)?;
        return call.texts(|row, out| {
            Ok(values.get(row).map(|text| {
                for byte in text.bytes() {
                    let _ = write!(out, "{byte:02X}");
                }
            }))
        });
    }
    let values = call.number::<Int64Type>(0)?;
    call.texts(|row, out| Ok(values.get(row).and_then(|value| write!(out, "{value:X}").ok())))
}
