//! Functions of the clock. Each is evaluated for every batch, never folded.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, TimeUnit},
};
use datafusion::common::Result;

use super::{Moment, instants_to_array};
use crate::functions::{
    call::Call,
    clock,
    definition::{
        Definition, Types,
        returns::{date, timestamp, timestamp_ltz},
    },
};

pub(crate) static FUNCTIONS: [Definition; 5] = [
    Definition::new("proctime", "PROCTIME() → TIMESTAMP_LTZ(3)", &[], timestamp_ltz, instant)
        .volatile()
        .note("A processing-time attribute: the moment at which the record is processed."),
    Definition::new("current_timestamp", "CURRENT_TIMESTAMP → TIMESTAMP_LTZ(3)", &[], timestamp_ltz, instant)
        .alias(&["now", "current_row_timestamp"])
        .volatile()
        .note("Also NOW() and CURRENT_ROW_TIMESTAMP()."),
    Definition::new("localtimestamp", "LOCALTIMESTAMP → TIMESTAMP(3)", &[], timestamp, local)
        .volatile()
        .note("The session's zone."),
    Definition::new("current_date", "CURRENT_DATE → DATE", &[], date, local).volatile().note("The session's zone."),
    Definition::new("current_time", "CURRENT_TIME → TIME(0)", &[], time, local)
        .alias(&["localtime"])
        .volatile()
        .note("The session's zone."),
];

fn time(_: &Types) -> Result<DataType> {
    Ok(DataType::Time32(TimeUnit::Millisecond))
}

fn instant(call: &Call) -> Result<ArrayRef> {
    let now = Moment::of_millis(clock::now());
    instants_to_array(call, |_| Ok(Some(now)))
}

fn local(call: &Call) -> Result<ArrayRef> {
    let now = Moment::of_millis(clock::now()).to_zone(call.zone()?);
    instants_to_array(call, |_| Ok(Some(now)))
}
