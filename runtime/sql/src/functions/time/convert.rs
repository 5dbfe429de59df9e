//! Times from texts and numbers, and back.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use arrow::{
    array::{Array, ArrayRef, StringArray},
    datatypes::{DataType, Float64Type, Int64Type, TimeUnit},
};
use chrono_tz::Tz;
use datafusion::common::{Result, plan_err};

use super::{
    Moment, Moments, instants_to_array, parse_zone,
    pattern::{Pattern, parse_date, parse_timestamp, write_timestamp},
    to_array,
};
use crate::functions::{
    call::{Call, Column},
    clock,
    definition::{
        Definition,
        Param::{Any, Integer, Text},
        Types, is_text, returns,
    },
    fault::{evaluation, invalid},
};

pub(crate) static FUNCTIONS: [Definition; 7] = [
    Definition::new("date_format", "DATE_FORMAT(time TIMESTAMP | STRING, pattern STRING) → STRING", &[Any, Text], formatted, date_format)
        .note("Java's pattern letters y M d D H h k K m s S n a E."),
    Definition::new("to_timestamp", "TO_TIMESTAMP(text STRING [, pattern STRING]) → TIMESTAMP(3)", &[Text, Text], parsed_timestamp, to_timestamp)
        .required(1)
        .note("NULL for a text that does not fit."),
    Definition::new("to_date", "TO_DATE(text STRING [, pattern STRING]) → DATE", &[Text, Text], parsed_date, to_date)
        .required(1)
        .note("NULL for a text that does not fit."),
    Definition::new(
        "to_timestamp_ltz",
        "TO_TIMESTAMP_LTZ(number [, precision]) | TO_TIMESTAMP_LTZ(text STRING [, pattern STRING [, zone STRING]]) → TIMESTAMP_LTZ(3)",
        &[Any, Any, Text],
        ltz,
        to_timestamp_ltz,
    )
    .required(1)
    .note("Numbers are milliseconds (precision 3, the default) or seconds (0)."),
    Definition::new("from_unixtime", "FROM_UNIXTIME(seconds BIGINT [, pattern STRING]) → STRING", &[Integer, Text], unix_text, from_unixtime)
        .required(1)
        .note("In the session's zone."),
    Definition::new("unix_timestamp", "UNIX_TIMESTAMP([text STRING [, pattern STRING]]) → BIGINT", &[Text, Text], unix, unix_timestamp)
        .required(0)
        .volatile()
        .note("Seconds; in the session's zone. The least BIGINT for a text that does not fit, as in Flink."),
    Definition::new("convert_tz", "CONVERT_TZ(text STRING, from STRING, to STRING) → STRING", &[Text, Text, Text], returns::text, convert_tz)
        .note("NULL for a text that does not fit."),
];

const CACHED: usize = 64;

thread_local! {
    static PATTERNS: RefCell<HashMap<String, Rc<Pattern>>> = RefCell::new(HashMap::new());
}

fn compiled(pattern: &str) -> Result<Rc<Pattern>> {
    PATTERNS.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(pattern) {
            return Ok(Rc::clone(known));
        }
        let compiled = Rc::new(Pattern::new(pattern).map_err(|reason| bad_pattern(&reason))?);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(pattern.to_owned(), Rc::clone(&compiled));
        Ok(compiled)
    })
}

fn bad_pattern(reason: &str) -> datafusion::common::DataFusionError {
    invalid(reason, "letters are y M d D H h k K m s S n a E; put other text into '…', as in 'yyyy-MM-dd''T''HH:mm'")
}

/// Checks a literal pattern while the call is planned.
fn check(types: &Types, index: usize) -> Result<()> {
    types
        .literal(index)
        .map_or(Ok(()), |pattern| Pattern::new(pattern).map(drop).map_err(|reason| bad_pattern(&reason)))
}

fn formatted(types: &Types) -> Result<DataType> {
    let given = types.of(0);
    if !is_text(&given) && !matches!(given, DataType::Timestamp(..) | DataType::Date32 | DataType::Null) {
        return plan_err!("DATE_FORMAT takes a TIMESTAMP or a STRING");
    }
    check(types, 1).and_then(|()| returns::text(types))
}

fn parsed_timestamp(types: &Types) -> Result<DataType> {
    check(types, 1).and_then(|()| returns::timestamp(types))
}

fn parsed_date(types: &Types) -> Result<DataType> {
    check(types, 1).and_then(|()| returns::date(types))
}

fn unix_text(types: &Types) -> Result<DataType> {
    check(types, 1).and_then(|()| returns::text(types))
}

fn unix(types: &Types) -> Result<DataType> {
    check(types, 1).and_then(|()| returns::bigint(types))
}

fn ltz(types: &Types) -> Result<DataType> {
    let given = types.of(0);
    if is_text(&given) {
        check(types, 1)?;
    } else if !given.is_numeric() {
        return plan_err!("TO_TIMESTAMP_LTZ takes a number or a STRING");
    } else if types.literal_integer(1).is_some_and(|precision| precision != 0 && precision != 3) {
        return plan_err!("the precision of TO_TIMESTAMP_LTZ is 0 for seconds or 3 for milliseconds");
    }
    Ok(DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())))
}

/// Patterns row by row, compiled once for a literal.
struct Patterns<'a> {
    column: Option<Column<'a, StringArray>>,
    constant: Option<Rc<Pattern>>,
}

impl<'a> Patterns<'a> {
    fn new(call: &Call<'a>, index: usize) -> Result<Self> {
        if call.len() <= index {
            return Ok(Self { column: None, constant: None });
        }
        let column = call.text(index)?;
        let constant = match column.get(0) {
            Some(pattern) if column.is_constant() => Some(compiled(pattern)?),
            _ => None,
        };
        Ok(Self { column: Some(column), constant })
    }

    fn is_given(&self) -> bool {
        self.column.is_some()
    }

    fn get(&self, row: usize) -> Result<Option<Rc<Pattern>>> {
        if let Some(pattern) = &self.constant {
            return Ok(Some(Rc::clone(pattern)));
        }
        self.column.as_ref().and_then(|column| column.get(row)).map(compiled).transpose()
    }
}

/// Wall-clock times of texts, `None` for texts that do not fit.
struct Parsed<'a> {
    texts: Column<'a, StringArray>,
    patterns: Patterns<'a>,
    fixed: fn(&str) -> Option<Moment>,
}

impl<'a> Parsed<'a> {
    fn new(call: &Call<'a>, fixed: fn(&str) -> Option<Moment>) -> Result<Self> {
        Ok(Self { texts: call.text(0)?, patterns: Patterns::new(call, 1)?, fixed })
    }

    fn get(&self, row: usize) -> Result<Option<Moment>> {
        let Some(text) = self.texts.get(row) else { return Ok(None) };
        if !self.patterns.is_given() {
            return Ok((self.fixed)(text));
        }
        Ok(self.patterns.get(row)?.and_then(|pattern| pattern.parse(text)))
    }
}

fn date_format(call: &Call) -> Result<ArrayRef> {
    let patterns = Patterns::new(call, 1)?;
    let write = |moment: Option<Moment>, row: usize, out: &mut String| {
        let Some((moment, pattern)) = moment.zip(patterns.get(row)?) else { return Ok(None) };
        Ok(pattern.format(moment, out))
    };
    if is_text(call.array(0)?.data_type()) {
        let texts = call.text(0)?;
        return call.texts(|row, out| write(texts.get(row).and_then(parse_timestamp), row, out));
    }
    let moments = Moments::new(call, 0)?;
    call.texts(|row, out| write(moments.get(row), row, out))
}

fn to_timestamp(call: &Call) -> Result<ArrayRef> {
    let parsed = Parsed::new(call, parse_timestamp)?;
    to_array(call, |row| parsed.get(row))
}

fn to_date(call: &Call) -> Result<ArrayRef> {
    let parsed = Parsed::new(call, parse_date)?;
    to_array(call, |row| parsed.get(row))
}

fn to_timestamp_ltz(call: &Call) -> Result<ArrayRef> {
    let first = call.array(0)?;
    if is_text(first.data_type()) {
        return ltz_of_text(call);
    }
    let precisions = if call.len() > 1 { Some(call.number::<Int64Type>(1)?) } else { None };
    let factor = |row: usize| match precisions.as_ref().map_or(Some(3), |precisions| precisions.get(row)) {
        Some(3) => Ok(Some(1)),
        Some(0) => Ok(Some(1_000)),
        Some(other) => Err(evaluation(format!("{other} is no precision: it is 0 for seconds or 3 for milliseconds"))),
        None => Ok(None),
    };
    let overflow = || evaluation("a number is too large for a time");
    if first.data_type().is_floating() || matches!(first.data_type(), DataType::Decimal128(..)) {
        let numbers = call.number::<Float64Type>(0)?;
        return instants_to_array(call, |row| {
            let Some((number, factor)) = numbers.get(row).zip(factor(row)?) else { return Ok(None) };
            #[expect(clippy::cast_possible_truncation, reason = "cut towards zero on purpose")]
            let millis = (number * f64::from(factor)) as i64;
            Ok(Some(Moment::of_millis(millis)))
        });
    }
    let numbers = call.number::<Int64Type>(0)?;
    instants_to_array(call, |row| {
        let Some((number, factor)) = numbers.get(row).zip(factor(row)?) else { return Ok(None) };
        number.checked_mul(i64::from(factor)).map(|millis| Some(Moment::of_millis(millis))).ok_or_else(overflow)
    })
}

fn ltz_of_text(call: &Call) -> Result<ArrayRef> {
    let parsed = Parsed::new(call, parse_timestamp)?;
    let zones = if call.len() > 2 { Some(call.text(2)?) } else { None };
    let session = if call.len() > 2 { call.zone()? } else { Tz::UTC };
    instants_to_array(call, |row| {
        let Some(moment) = parsed.get(row)? else { return Ok(None) };
        let zone = match &zones {
            Some(zones) => zones.get(row).map(zone).transpose()?.unwrap_or(session),
            // Without a zone the text is UTC, as in Flink.
            None => session,
        };
        Ok(Some(moment.to_instant(zone)))
    })
}

fn zone(name: &str) -> Result<Tz> {
    parse_zone(name).ok_or_else(|| evaluation(format!("`{name}` is no time zone; write for example Europe/Berlin")))
}

fn from_unixtime(call: &Call) -> Result<ArrayRef> {
    let (seconds, patterns, zone) = (call.number::<Int64Type>(0)?, Patterns::new(call, 1)?, call.zone()?);
    call.texts(|row, out| {
        let Some(millis) = seconds.get(row).and_then(|seconds| seconds.checked_mul(1_000)) else { return Ok(None) };
        let moment = Moment::of_millis(millis).to_zone(zone);
        if !patterns.is_given() {
            return Ok(write_timestamp(moment, 0, out));
        }
        Ok(patterns.get(row)?.and_then(|pattern| pattern.format(moment, out)))
    })
}

fn unix_timestamp(call: &Call) -> Result<ArrayRef> {
    if call.len() == 0 {
        let now = clock::now().div_euclid(1_000);
        return call.numbers::<Int64Type>(|_| Ok(Some(now)));
    }
    let (parsed, zone) = (Parsed::new(call, parse_timestamp)?, call.zone()?);
    call.numbers::<Int64Type>(|row| {
        if parsed.texts.get(row).is_none() {
            return Ok(None);
        }
        let seconds = parsed.get(row)?.map(|moment| moment.to_instant(zone).millis.div_euclid(1_000));
        Ok(Some(seconds.unwrap_or(i64::MIN)))
    })
}

fn convert_tz(call: &Call) -> Result<ArrayRef> {
    let (texts, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    call.texts(|row, out| {
        let (Some(text), Some(from), Some(to)) = (texts.get(row), from.get(row), to.get(row)) else { return Ok(None) };
        let Some(moment) = parse_timestamp(text) else { return Ok(None) };
        Ok(write_timestamp(moment.to_instant(zone(from)?).to_zone(zone(to)?), 0, out))
    })
}
