//! What one thread can do at most: the benchmarks' computations as plain loops over the batches that the connector
//! reads, without state backend, checkpoints, exchange or planner. `limit <project|count|tumble|dedup> <file> [keys]`;
//! the files are those of `e2e/bench/inputs.py`.
//!
//! Prints rows read, rows put out and a sum over the output, so that nothing can be left out by the compiler and
//! two implementations can be compared.

mod reading;

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, TimestampMillisecondArray},
    compute::{filter, sum},
    datatypes::Int64Type,
};
use hashbrown::{HashMap, HashSet};
use streamkeeper_types::{Error, Result};

const BIDS: [&str; 7] = ["auction:bigint", "bidder:bigint", "price:bigint", "channel", "url", "ts:bigint", "extra"];
const KV: [&str; 4] = ["key:bigint", "id:bigint", "ts:bigint", "val:bigint"];
const IDS: [&str; 2] = ["id", "val:bigint"];
/// Milliseconds of a window, and by how much the watermark trails the latest row.
const MINUTE: i64 = 60_000;
const DELAY: i64 = 4_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (columns, path, mut work): (&[&str], _, Box<dyn Work>) = match arguments[..] {
        ["project", path] => (&BIDS, path, Box::new(Project)),
        ["count", path] => (&KV, path, Box::new(Count::default())),
        ["tumble", path, keys] => (&KV, path, Box::new(Tumble::new(keys)?)),
        ["dedup", path] => (&KV, path, Box::new(Dedup::default())),
        ["dedup-text", path] => (&IDS, path, Box::new(DedupText::default())),
        _ => return Err(Error::internal("usage: limit <project|count|tumble|dedup|dedup-text> <file> [keys]")),
    };
    let mut output = Output::default();
    let mut rows = 0;
    reading::read(&reading::table("csv", path, columns)?, |batch| {
        rows += batch.num_rows();
        work.process(&batch, &mut output)
    })?;
    work.end(&mut output);
    println!("{rows} rows, {} rows out, sum {}", output.rows, output.sum);
    Ok(())
}

/// Stands for a sink: looks at what it is given and forgets it.
#[derive(Default)]
struct Output {
    rows: usize,
    sum: i64,
}

impl Output {
    /// `columns` have equal lengths; the first number column is summed up.
    fn put(&mut self, columns: &[ArrayRef]) {
        self.rows += columns.first().map_or(0, Array::len);
        let number = columns.iter().rev().find_map(|column| column.as_primitive_opt::<Int64Type>());
        self.sum = self.sum.wrapping_add(number.and_then(sum).unwrap_or(0));
        std::hint::black_box(columns);
    }
}

trait Work {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()>;

    /// After the last batch.
    fn end(&mut self, _output: &mut Output) {}
}

/// Five columns of a bid, one of them with another type.
struct Project;

impl Work for Project {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()> {
        let time: TimestampMillisecondArray = numbers(batch, 5).reinterpret_cast();
        let column = |index: usize| Arc::clone(batch.column(index));
        output.put(&[column(0), column(1), column(2), Arc::new(time), column(6)]);
        Ok(())
    }
}

/// A count per key, with an update row for each row.
#[derive(Default)]
struct Count(HashMap<i64, i64>);

impl Work for Count {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()> {
        let keys = numbers(batch, 0);
        let count = |key: &i64| {
            let count = self.0.entry(*key).or_default();
            *count += 1;
            *count
        };
        let counts: Int64Array = keys.values().iter().map(count).collect::<Vec<_>>().into();
        output.put(&[Arc::clone(batch.column(0)), Arc::new(counts)]);
        Ok(())
    }
}

/// A count per key and minute, put out when the watermark passes the minute's end.
struct Tumble {
    keys: i64,
    windows: BTreeMap<i64, HashMap<i64, i64>>,
}

impl Tumble {
    fn new(keys: &str) -> Result<Self> {
        let keys = keys.parse().map_err(|_| Error::internal(format!("{keys} is no number of keys")))?;
        Ok(Self { keys, windows: BTreeMap::new() })
    }

    fn close_before(&mut self, watermark: i64, output: &mut Output) {
        while let Some(first) = self.windows.first_entry().filter(|first| first.key() + MINUTE <= watermark) {
            let (start, counts) = first.remove_entry();
            let starts = TimestampMillisecondArray::from_value(start, counts.len());
            let (keys, counts): (Vec<i64>, Vec<i64>) = counts.into_iter().unzip();
            output.put(&[Arc::new(Int64Array::from(keys)), Arc::new(starts), Arc::new(Int64Array::from(counts))]);
        }
    }
}

impl Work for Tumble {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()> {
        let (keys, times) = (numbers(batch, 0).values(), numbers(batch, 2).values());
        let mut at = 0;
        // Rows come in order of time: one look-up of the window for each run of rows of the same minute.
        while at < times.len() {
            let start = times[at].div_euclid(MINUTE) * MINUTE;
            let run = times[at..].iter().take_while(|time| (start..start + MINUTE).contains(*time)).count();
            let counts = self.windows.entry(start).or_default();
            for key in &keys[at..at + run] {
                *counts.entry(key % self.keys).or_default() += 1;
            }
            at += run;
        }
        self.close_before(times.last().map_or(i64::MIN, |last| last - DELAY), output);
        Ok(())
    }

    fn end(&mut self, output: &mut Output) {
        self.close_before(i64::MAX, output);
    }
}

/// The first row of each id.
#[derive(Default)]
struct Dedup(HashSet<i64>);

impl Work for Dedup {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()> {
        let new: BooleanArray = numbers(batch, 1).values().iter().map(|id| Some(self.0.insert(*id))).collect();
        output.put(&[filtered(batch, 1, &new)?, filtered(batch, 3, &new)?]);
        Ok(())
    }
}

/// The first row of each id, where ids are text.
#[derive(Default)]
struct DedupText(HashSet<Box<str>>);

impl Work for DedupText {
    fn process(&mut self, batch: &RecordBatch, output: &mut Output) -> Result<()> {
        let ids = batch.column(0).as_string::<i32>();
        let is_new = |index| {
            let id = ids.value(index);
            Some(!self.0.contains(id) && self.0.insert(id.into()))
        };
        let new: BooleanArray = (0..ids.len()).map(is_new).collect();
        output.put(&[filtered(batch, 0, &new)?, filtered(batch, 1, &new)?]);
        Ok(())
    }
}

fn numbers(batch: &RecordBatch, column: usize) -> &Int64Array {
    batch.column(column).as_primitive()
}

fn filtered(batch: &RecordBatch, column: usize, rows: &BooleanArray) -> Result<ArrayRef> {
    filter(batch.column(column), rows).map_err(|error| Error::internal(error.to_string()))
}
