//! [`Moment`]: one wall-clock time, whatever Arrow type it came in, and columns of them.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    compute::cast,
    datatypes::{DataType, Date32Type, Int64Type, TimeUnit},
};
use chrono::{DateTime, Datelike, MappedLocalTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use chrono_tz::Tz;
use datafusion::{common::Result, logical_expr::ColumnarValue};

use crate::functions::{call::Call, fault::evaluation};

pub(crate) const DAY: i64 = 86_400_000;

/// A wall-clock time: milliseconds since 1970-01-01 00:00 on that clock, and the nanoseconds below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub millis: i64,
    /// 0 to 999,999.
    pub nanos: u32,
}

impl Moment {
    pub(crate) fn of_millis(millis: i64) -> Self {
        Self { millis, nanos: 0 }
    }

    pub(crate) fn of_days(days: i64) -> Self {
        Self::of_millis(days.saturating_mul(DAY))
    }

    pub(crate) fn new(date: NaiveDate, millis_of_day: i64, nanos: u32) -> Self {
        Self { millis: days_of(date) * DAY + millis_of_day, nanos }
    }

    /// `None` outside the years that a calendar has.
    pub(crate) fn naive(self) -> Option<NaiveDateTime> {
        let subsecond = u32::try_from(self.millis.rem_euclid(1_000)).ok()? * 1_000_000 + self.nanos;
        DateTime::from_timestamp(self.millis.div_euclid(1_000), subsecond).map(|time| time.naive_utc())
    }

    pub(crate) fn date(self) -> Option<NaiveDate> {
        self.naive().map(|time| time.date())
    }

    pub(crate) fn days(self) -> i64 {
        self.millis.div_euclid(DAY)
    }

    pub(crate) fn millis_of_day(self) -> i64 {
        self.millis.rem_euclid(DAY)
    }

    /// Nanoseconds within the second.
    pub(crate) fn subsecond(self) -> i64 {
        self.millis.rem_euclid(1_000) * 1_000_000 + i64::from(self.nanos)
    }

    /// In a unit of Arrow; digits below it are cut.
    pub(crate) fn in_unit(self, unit: TimeUnit) -> Option<i64> {
        match unit {
            TimeUnit::Second => Some(self.millis.div_euclid(1_000)),
            TimeUnit::Millisecond => Some(self.millis),
            TimeUnit::Microsecond => self.millis.checked_mul(1_000)?.checked_add(i64::from(self.nanos / 1_000)),
            TimeUnit::Nanosecond => self.millis.checked_mul(1_000_000)?.checked_add(i64::from(self.nanos)),
        }
    }

    pub(crate) fn from_unit(value: i64, unit: TimeUnit) -> Self {
        let per_milli = match unit {
            TimeUnit::Second => return Self::of_millis(value.saturating_mul(1_000)),
            TimeUnit::Millisecond => return Self::of_millis(value),
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1_000_000,
        };
        let below = value.rem_euclid(per_milli) * (1_000_000 / per_milli);
        Self { millis: value.div_euclid(per_milli), nanos: u32::try_from(below).unwrap_or(0) }
    }

    /// The wall clock of a zone at an instant.
    pub(crate) fn to_zone(self, zone: Tz) -> Self {
        if zone == Tz::UTC {
            return self;
        }
        let Some(utc) = self.naive() else { return self };
        let offset = i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc());
        Self { millis: self.millis.saturating_add(offset * 1_000), ..self }
    }

    /// The instant at which a zone's wall clock shows this. Of an hour that comes twice the first counts; a time in the
    /// gap of spring is moved by the gap, as Java does.
    pub(crate) fn to_instant(self, zone: Tz) -> Self {
        if zone == Tz::UTC {
            return self;
        }
        let Some(local) = self.naive() else { return self };
        let offset = match zone.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(offset, _) => offset.fix(),
            // The offset that held before the gap.
            MappedLocalTime::None => zone.offset_from_utc_datetime(&(local - chrono::Duration::hours(24))).fix(),
        };
        Self { millis: self.millis.saturating_sub(i64::from(offset.local_minus_utc()) * 1_000), ..self }
    }
}

/// Days since 1970-01-01.
pub(crate) fn days_of(date: NaiveDate) -> i64 {
    i64::from(date.num_days_from_ce()) - 719_163
}

/// A column of moments, on the wall clock: instants are shown in the session's zone.
pub(crate) struct Moments {
    values: PrimitiveArray<Int64Type>,
    constant: bool,
    kind: Kind,
    zone: Option<Tz>,
}

#[derive(Clone, Copy)]
enum Kind {
    Days,
    Unit(TimeUnit),
}

impl Moments {
    pub(crate) fn new(call: &Call, index: usize) -> Result<Self> {
        let argument = call.argument(index)?;
        let (array, constant) = match argument {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(value) => (value.to_array()?, true),
        };
        let (kind, zone) = match array.data_type() {
            DataType::Date32 => (Kind::Days, None),
            DataType::Timestamp(unit, None) | DataType::Time32(unit) | DataType::Time64(unit) => {
                (Kind::Unit(*unit), None)
            }
            DataType::Timestamp(unit, Some(_)) => (Kind::Unit(*unit), Some(call.zone()?)),
            other => return Err(evaluation(format!("a value of type {other} is no time"))),
        };
        let values = match array.as_primitive_opt::<Date32Type>() {
            Some(days) => days.unary(i64::from),
            None => {
                let whole = if matches!(array.data_type(), DataType::Time32(_)) {
                    cast(&cast(&array, &DataType::Int32)?, &DataType::Int64)?
                } else {
                    cast(&array, &DataType::Int64)?
                };
                whole.as_primitive::<Int64Type>().clone()
            }
        };
        Ok(Self { values, constant, kind, zone })
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<Moment> {
        self.instant(row).map(|moment| self.zone.map_or(moment, |zone| moment.to_zone(zone)))
    }

    /// As it is stored: an instant stays one.
    #[inline]
    pub(crate) fn instant(&self, row: usize) -> Option<Moment> {
        let row = if self.constant { 0 } else { row };
        if self.values.is_null(row) {
            return None;
        }
        let value = self.values.value(row);
        Some(match self.kind {
            Kind::Days => Moment::of_days(value),
            Kind::Unit(unit) => Moment::from_unit(value, unit),
        })
    }
}

/// Moments of the wall clock as an array of the call's return type.
pub(crate) fn to_array(call: &Call, mut row: impl FnMut(usize) -> Result<Option<Moment>>) -> Result<ArrayRef> {
    let data_type = call.return_type();
    let zone = if matches!(data_type, DataType::Timestamp(_, Some(_))) { Some(call.zone()?) } else { None };
    instants_to_array(call, |i| {
        let moment = row(i)?;
        Ok(match zone {
            Some(zone) => moment.map(|moment| moment.to_instant(zone)),
            None => moment,
        })
    })
}

/// As [`to_array`] for what is an instant already.
pub(crate) fn instants_to_array(call: &Call, mut row: impl FnMut(usize) -> Result<Option<Moment>>) -> Result<ArrayRef> {
    let data_type = call.return_type();
    let convert = |moment: Moment| -> Result<i64> {
        let value = match data_type {
            DataType::Date32 => Some(moment.days()),
            DataType::Timestamp(unit, _) => moment.in_unit(*unit),
            DataType::Time32(unit) | DataType::Time64(unit) => {
                Moment { millis: moment.millis_of_day(), nanos: moment.nanos }.in_unit(*unit)
            }
            _ => None,
        };
        value.ok_or_else(|| evaluation(format!("a time lies outside of what {data_type} can hold")))
    };
    let values: PrimitiveArray<Int64Type> =
        (0..call.rows()).map(|i| row(i)?.map(convert).transpose()).collect::<Result<_>>()?;
    let values: ArrayRef = Arc::new(values);
    if matches!(data_type, DataType::Date32 | DataType::Time32(_)) {
        return Ok(cast(&cast(&values, &DataType::Int32)?, data_type)?);
    }
    Ok(cast(&values, data_type)?)
}

/// Hours, minutes and seconds of a time of day.
pub(crate) fn clock_of(moment: Moment) -> (i64, i64, i64) {
    let seconds = moment.millis_of_day() / 1_000;
    (seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// For patterns that want chrono's own parts.
pub(crate) fn hour12(moment: Moment) -> (bool, u32) {
    moment.naive().map_or((false, 12), |time| time.hour12())
}
