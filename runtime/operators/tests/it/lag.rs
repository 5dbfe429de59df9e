//! LAG by arrival and by rowtime.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use proptest::prelude::*;
use streamkeeper_operators::{LagColumn, LagFactory, LagSpec, TimeOrder};
use streamkeeper_types::Millis;

use crate::{
    driver::Driver,
    table::{Row, all_rows, sorted},
};

/// Key, number, stand-in for the first row, time.
type Input = (i64, Option<i64>, i64, Millis);

const NUMBER: usize = 1;
const STAND_IN: usize = 2;
const TIME: usize = 3;

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
        Field::new("d", DataType::Int64, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
    ]))
}

fn batch(rows: &[Input]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>()),
        Arc::new(TimestampMillisecondArray::from(rows.iter().map(|row| row.3).collect::<Vec<_>>())),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// `LAG(n)` and `LAG(n, 1, d)`.
fn driver(order: TimeOrder) -> Driver {
    let mut fields: Vec<Field> = schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.push(Field::new("lag", DataType::Int64, true));
    fields.push(Field::new("lag_or_d", DataType::Int64, true));
    let spec = LagSpec {
        input: schema(),
        keys: vec![0],
        order,
        lags: vec![
            LagColumn { argument: NUMBER, default: None, name: "LAG(n)".to_owned() },
            LagColumn { argument: NUMBER, default: Some(STAND_IN), name: "LAG(n, 1, d)".to_owned() },
        ],
        output: Arc::new(Schema::new(fields)),
        state_ttl: None,
        alias: "before".to_owned(),
    };
    Driver::new(LagFactory::new(spec).unwrap(), &schema(), &[0])
}

/// Rows that passed, with the row before under each key.
#[derive(Default)]
struct Oracle {
    before: BTreeMap<i64, Input>,
    passed: Vec<Row>,
}

impl Oracle {
    fn pass(&mut self, row: Input) {
        let before = self.before.insert(row.0, row);
        let show = |value: Option<i64>| value.map_or_else(|| "NULL".to_owned(), |v| v.to_string());
        let lag = before.and_then(|before| before.1);
        let lag_or_d = before.map_or(Some(row.2), |before| before.1);
        self.passed.push([Some(row.0), row.1, Some(row.2), Some(row.3), lag, lag_or_d].map(show).to_vec());
    }
}

type Step = (Vec<Input>, Option<Millis>, Option<u32>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0..4_i64, prop::option::weighted(0.8, 0..9_i64), 100..103_i64, 0..60_i64);
    let rows = prop::collection::vec(row, 0..15);
    let watermark = prop::option::weighted(0.6, 0..60_i64);
    prop::collection::vec((rows, watermark, prop::option::weighted(0.3, 1..4_u32)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn by_arrival_each_row_sees_the_row_before(steps in steps()) {
        let mut driver = driver(TimeOrder::ProcessingTime);
        let mut oracle = Oracle::default();
        for (rows, _, restart) in steps {
            rows.iter().for_each(|row| oracle.pass(*row));
            if !rows.is_empty() {
                driver.process(&batch(&rows));
            }
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
        }
        prop_assert_eq!(sorted(all_rows(&driver.output)), sorted(oracle.passed));
    }

    #[test]
    fn by_rowtime_rows_pass_in_the_order_of_time_and_lateness_is_judged_by_key(steps in steps()) {
        let mut driver = driver(TimeOrder::Rowtime(TIME));
        let mut oracle = Oracle::default();
        let mut waiting: Vec<Input> = Vec::new();
        let mut late = 0;
        let fire = |waiting: &mut Vec<Input>, oracle: &mut Oracle, watermark: Millis| {
            // Stable: rows of equal time keep the order in which they came.
            waiting.sort_by_key(|row| row.3);
            let due = waiting.partition_point(|row| row.3 <= watermark);
            waiting.drain(..due).for_each(|row| oracle.pass(row));
        };
        for (rows, watermark, restart) in steps {
            for row in &rows {
                if oracle.before.get(&row.0).is_some_and(|passed| row.3 <= passed.3) {
                    late += 1;
                } else {
                    waiting.push(*row);
                }
            }
            if !rows.is_empty() {
                driver.process(&batch(&rows));
            }
            if let Some(watermark) = watermark
                && driver.watermark(watermark)
            {
                fire(&mut waiting, &mut oracle, watermark);
            }
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
        }
        driver.finish();
        fire(&mut waiting, &mut oracle, Millis::MAX);
        prop_assert_eq!(sorted(all_rows(&driver.output)), sorted(oracle.passed));
        prop_assert_eq!(driver.late(), late);
        prop_assert_eq!(driver.groups(), oracle.before.len());
    }
}
