//! Deduplication: keep first and keep last, by processing time and by rowtime.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use proptest::prelude::*;
use streamkeeper_operators::{DeduplicateFactory, DeduplicateSpec, Keep, RowNumber, TimeOrder, changelog};
use streamkeeper_types::Millis;

use crate::{
    driver::Driver,
    table::{Row, all_rows, changes, fold, sorted},
};

/// Key, number, time. The key's text is `k` and the number.
type Input = (i64, i64, Millis);

const TIME: usize = 2;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
    ]))
}

fn batch(rows: &[Input]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(format!("k{}", row.0))).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>()),
        Arc::new(TimestampMillisecondArray::from(rows.iter().map(|row| row.2).collect::<Vec<_>>())),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn show(row: &Input) -> Row {
    vec![format!("k{}", row.0), row.1.to_string(), row.2.to_string()]
}

fn driver_with(keep: Keep, order: TimeOrder, row_number: RowNumber, state_ttl: Option<Duration>) -> Driver {
    let mut fields: Vec<Field> = schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    if row_number == RowNumber::Append {
        fields.push(Field::new("rn", DataType::Int64, false));
    }
    let output = Schema::new(fields);
    let output = if keep == Keep::Last { changelog::updating_schema(&output) } else { Arc::new(output) };
    let spec = DeduplicateSpec {
        input: schema(),
        keys: vec![0],
        keep,
        order,
        row_number,
        output,
        state_ttl,
        alias: "kept".to_owned(),
    };
    Driver::new(DeduplicateFactory::new(spec).unwrap(), &schema(), &[0])
}

fn driver(keep: Keep, order: TimeOrder) -> Driver {
    driver_with(keep, order, RowNumber::Omit, None)
}

type Step = (Vec<Input>, Option<Millis>, Option<u32>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0..5_i64, 0..3_i64, 0..60_i64);
    let rows = prop::collection::vec(row, 0..15);
    let watermark = prop::option::weighted(0.6, 0..60_i64);
    prop::collection::vec((rows, watermark, prop::option::weighted(0.3, 1..4_u32)), 1..8)
}

/// Runs the steps; gives each row and each watermark to `oracle` in order.
fn run(driver: &mut Driver, steps: Vec<Step>, mut oracle: impl FnMut(Result<Input, Millis>)) {
    for (rows, watermark, restart) in steps {
        rows.iter().for_each(|row| oracle(Ok(*row)));
        if !rows.is_empty() {
            driver.process(&batch(&rows));
        }
        if let Some(watermark) = watermark {
            driver.watermark(watermark);
            oracle(Err(watermark));
        }
        if let Some(parallelism) = restart {
            driver.restart(parallelism);
        }
    }
    driver.finish();
    oracle(Err(Millis::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn keep_first_by_arrival_passes_each_key_once(steps in steps()) {
        let mut driver = driver(Keep::First, TimeOrder::ProcessingTime);
        let mut first: BTreeMap<i64, Input> = BTreeMap::new();
        run(&mut driver, steps, |event| {
            if let Ok(row) = event {
                first.entry(row.0).or_insert(row);
            }
        });
        prop_assert_eq!(sorted(all_rows(&driver.output)), first.values().map(show).collect::<Vec<_>>());
    }

    #[test]
    fn keep_first_by_rowtime_passes_the_earliest_row_that_is_not_late(steps in steps()) {
        let mut driver = driver(Keep::First, TimeOrder::Rowtime(TIME));
        let (mut waiting, mut passed): (BTreeMap<i64, Input>, BTreeMap<i64, Input>) = Default::default();
        let (mut watermark, mut late) = (Millis::MIN, 0);
        run(&mut driver, steps, |event| match event {
            Ok(row) if row.2 <= watermark => late += 1,
            Ok(row) if passed.contains_key(&row.0) => {}
            Ok(row) => match waiting.entry(row.0) {
                Entry::Vacant(entry) => { entry.insert(row); }
                Entry::Occupied(mut entry) if row.2 < entry.get().2 => { entry.insert(row); }
                Entry::Occupied(_) => {}
            },
            Err(millis) => {
                watermark = watermark.max(millis);
                let due: Vec<Input> = waiting.values().filter(|row| row.2 <= watermark).copied().collect();
                for row in due {
                    waiting.remove(&row.0);
                    passed.insert(row.0, row);
                }
            }
        });
        prop_assert_eq!(sorted(all_rows(&driver.output)), passed.values().map(show).collect::<Vec<_>>());
        prop_assert_eq!(driver.late(), late);
    }

    #[test]
    fn keep_last_by_arrival_holds_the_latest_row(steps in steps()) {
        let mut driver = driver(Keep::Last, TimeOrder::ProcessingTime);
        let mut last: BTreeMap<i64, Input> = BTreeMap::new();
        let mut expected_changes = 0;
        run(&mut driver, steps, |event| {
            let Ok(row) = event else { return };
            expected_changes += match last.insert(row.0, row) {
                None => 1,
                Some(before) if before == row => 0,
                Some(_) => 2,
            };
        });
        prop_assert_eq!(fold(&driver.output, 1), last.values().map(show).collect::<Vec<_>>());
        prop_assert_eq!(changes(&driver.output).len(), expected_changes);
    }

    #[test]
    fn keep_last_by_rowtime_never_shows_an_older_row(steps in steps()) {
        let mut driver = driver(Keep::Last, TimeOrder::Rowtime(TIME));
        let mut last: BTreeMap<i64, Input> = BTreeMap::new();
        let mut expected_changes = 0;
        run(&mut driver, steps, |event| {
            let Ok(row) = event else { return };
            match last.entry(row.0) {
                Entry::Vacant(entry) => {
                    entry.insert(row);
                    expected_changes += 1;
                }
                Entry::Occupied(mut entry) if row.2 >= entry.get().2 => {
                    entry.insert(row);
                    expected_changes += 2;
                }
                Entry::Occupied(_) => {}
            }
        });
        prop_assert_eq!(fold(&driver.output, 1), last.values().map(show).collect::<Vec<_>>());
        prop_assert_eq!(changes(&driver.output).len(), expected_changes);
    }
}

#[test]
fn first_rows_by_rowtime_come_in_the_order_of_time() {
    let mut driver = driver(Keep::First, TimeOrder::Rowtime(TIME));
    driver.process(&batch(&[(1, 0, 30), (2, 0, 10), (3, 0, 20), (1, 1, 15)]));
    driver.watermark(100);
    let times: Vec<String> = all_rows(&driver.output).iter().map(|row| row[TIME].clone()).collect();
    assert_eq!(times, ["10", "15", "20"]);
}

#[test]
fn the_row_number_is_1_where_it_is_wanted() {
    let row = [(1, 7, 30)];
    for (keep, order) in [
        (Keep::First, TimeOrder::ProcessingTime),
        (Keep::First, TimeOrder::Rowtime(TIME)),
        (Keep::Last, TimeOrder::Rowtime(TIME)),
    ] {
        let mut driver = driver_with(keep, order, RowNumber::Append, None);
        driver.process(&batch(&row));
        driver.finish();
        assert_eq!(all_rows(&driver.output), [["k1", "7", "30", "1"]]);
    }
}

#[test]
fn a_key_whose_ttl_passed_is_new_again() {
    let ttl = Some(Duration::from_secs(10));
    let mut driver = driver_with(Keep::First, TimeOrder::ProcessingTime, RowNumber::Omit, ttl);
    driver.process(&batch(&[(1, 1, 0)]));
    driver.advance_clock(9_999);
    driver.process(&batch(&[(1, 2, 0)]));
    driver.advance_clock(10_000);
    driver.process(&batch(&[(1, 3, 0)]));
    let numbers: Vec<String> = all_rows(&driver.output).iter().map(|row| row[1].clone()).collect();
    assert_eq!(numbers, ["1", "3"]);
}
