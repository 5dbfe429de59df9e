//! TUMBLE and HOP against brute force: random rows out of order, watermarks between them, restarts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{ArrayRef, Int32Array, Int64Array, RecordBatch, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use proptest::prelude::*;
use streamkeeper_operators::{
    AggregateFunction::{self, Avg, Count, Max, Min, Sum},
    AggregateSpec, WindowAggregateFactory, WindowAggregateSpec, WindowAssignFactory, WindowAssignSpec, WindowSpec,
    WindowTime, changelog,
};
use streamkeeper_types::{Code, Millis, RowKind};

use crate::{
    driver::Driver,
    table::{Row, all_rows, sorted},
};

/// Key, number, time.
type Input = (i32, Option<i64>, Millis);

/// Columns of the input.
const KEY: usize = 0;
const NUMBER: usize = 1;
const TIME: usize = 2;

fn schema(zone: Option<&str>) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int32, true),
        Field::new("n", DataType::Int64, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, zone.map(Into::into)), true),
    ]))
}

fn batch(schema: &SchemaRef, rows: &[Input]) -> RecordBatch {
    let times: Vec<Millis> = rows.iter().map(|row| row.2).collect();
    let zone = match schema.field(TIME).data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
        Arc::new(TimestampMillisecondArray::from(times).with_timezone_opt(zone)),
    ];
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

fn aggregate(function: AggregateFunction, argument: Option<usize>, name: &str) -> AggregateSpec {
    AggregateSpec { function, argument, filter: None, distinct: false, name: name.to_owned() }
}

fn aggregates() -> Vec<AggregateSpec> {
    let distinct = |function, name: &str| AggregateSpec { distinct: true, ..aggregate(function, Some(NUMBER), name) };
    vec![
        aggregate(Count, None, "COUNT(*)"),
        aggregate(Sum, Some(NUMBER), "SUM(n)"),
        aggregate(Min, Some(NUMBER), "MIN(n)"),
        aggregate(Max, Some(NUMBER), "MAX(n)"),
        aggregate(Avg, Some(NUMBER), "AVG(n)"),
        distinct(Count, "COUNT(DISTINCT n)"),
        distinct(Sum, "SUM(DISTINCT n)"),
    ]
}

/// The results of [`aggregates`] over a window's rows of one key.
fn expected(numbers: &[Option<i64>]) -> Row {
    let present: Vec<i64> = numbers.iter().flatten().copied().collect();
    let distinct: BTreeSet<i64> = present.iter().copied().collect();
    let show = |value: Option<i64>| value.map_or_else(|| "NULL".to_owned(), |v| v.to_string());
    let sum = (!present.is_empty()).then(|| present.iter().sum::<i64>());
    vec![
        numbers.len().to_string(),
        show(sum),
        show(present.iter().min().copied()),
        show(present.iter().max().copied()),
        show(sum.map(|sum| sum / present.len() as i64)),
        distinct.len().to_string(),
        show((!distinct.is_empty()).then(|| distinct.iter().sum())),
    ]
}

struct Case {
    window: WindowSpec,
    time: WindowTime,
    zone: Option<chrono_tz::Tz>,
    keys: Vec<usize>,
    aggregates: Vec<AggregateSpec>,
    lateness: Duration,
}

impl Case {
    fn rowtime(window: WindowSpec) -> Self {
        let time = WindowTime::Rowtime(TIME);
        let lateness = Duration::ZERO;
        Self { window, time, zone: None, keys: vec![KEY], aggregates: aggregates(), lateness }
    }

    fn output(&self, input: &SchemaRef) -> SchemaRef {
        let mut fields: Vec<Field> = self.keys.iter().map(|key| input.field(*key).clone()).collect();
        for aggregate in &self.aggregates {
            fields.push(Field::new(&aggregate.name, aggregate.result_type(input).unwrap(), true));
        }
        fields.extend(window_fields(input));
        let data = Schema::new(fields);
        if self.lateness.is_zero() { Arc::new(data) } else { changelog::updating_schema(&data) }
    }

    fn driver(&self, input: &SchemaRef) -> Driver {
        let factory = WindowAggregateFactory::new(WindowAggregateSpec {
            input: input.clone(),
            window: self.window,
            time: self.time,
            zone: self.zone,
            keys: self.keys.clone(),
            aggregates: self.aggregates.clone(),
            lateness: self.lateness,
            output: self.output(input),
            alias: "windows".to_owned(),
        });
        Driver::new(factory.unwrap(), input, &self.keys)
    }
}

fn window_fields(input: &SchemaRef) -> [Field; 3] {
    let wall = DataType::Timestamp(TimeUnit::Millisecond, None);
    let time = input.fields().last().unwrap().data_type().clone();
    [
        Field::new("window_start", wall.clone(), false),
        Field::new("window_end", wall, false),
        Field::new("window_time", time, false),
    ]
}

/// Windows by brute force: every row against every window that contains it.
#[derive(Default)]
struct Oracle {
    windows: BTreeMap<(Millis, i32), Vec<Option<i64>>>,
    late: u64,
}

impl Oracle {
    fn add(&mut self, row: Input, size: Millis, slide: Millis, offset: Millis, watermark: Millis) {
        let (key, number, time) = row;
        // All starts around the time, by counting instead of by remainders.
        let near = (time - offset) / slide;
        let starts = (near - size / slide - 2..=near + 2).map(|n| n * slide + offset);
        let ends = starts.filter(|start| *start <= time && time < start + size).map(|start| start + size);
        let open: Vec<Millis> = ends.filter(|end| end - 1 > watermark).collect();
        self.late += u64::from(open.is_empty());
        for end in open {
            self.windows.entry((end, key)).or_default().push(number);
        }
    }

    fn rows(&self, size: Millis) -> Vec<Row> {
        let row = |((end, key), numbers): (&(Millis, i32), &Vec<Option<i64>>)| {
            let mut row = vec![key.to_string()];
            row.extend(expected(numbers));
            row.extend([end - size, *end, end - 1].map(|t| t.to_string()));
            row
        };
        sorted(self.windows.iter().map(row).collect())
    }
}

fn steps() -> impl Strategy<Value = Vec<(Vec<Input>, Option<Millis>, Option<u32>)>> {
    let number = prop_oneof![1 => Just(None), 6 => (-3..4_i64).prop_map(Some)];
    let row = (0..3_i32, number, -150..400_i64);
    let rows = prop::collection::vec(row, 0..20);
    let watermark = prop::option::weighted(0.7, -100..400_i64);
    prop::collection::vec((rows, watermark, prop::option::weighted(0.3, 1..4_u32)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn windows_equal_brute_force_with_late_rows_and_restarts(
        steps in steps(), slide in 5..60_i64, slices in 1..5_i64, shift in -4..5_i64,
    ) {
        let size = slide * slices;
        let schema = schema(None);
        let case = Case::rowtime(WindowSpec::hop(size, slide, shift).unwrap());
        let mut driver = case.driver(&schema);
        let mut oracle = Oracle::default();
        let mut seen = Millis::MIN;
        for (rows, watermark, restart) in steps {
            rows.iter().for_each(|row| oracle.add(*row, size, slide, shift, seen));
            if !rows.is_empty() {
                driver.process(&batch(&schema, &rows));
            }
            if let Some(watermark) = watermark {
                seen = seen.max(watermark);
                driver.watermark(watermark);
            }
            // R13, B65: after it the operator hears of no watermark until the next step that has one.
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
        }
        driver.finish();
        prop_assert_eq!(sorted(all_rows(&driver.output)), oracle.rows(size));
        prop_assert_eq!(driver.late(), oracle.late);
        prop_assert_eq!(driver.groups(), 0, "slices leave the state with their last window");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Brute force by a watermark that lies so much further back: the same rows count, and the same are late.
    #[test]
    fn windows_with_an_allowed_lateness_fold_to_brute_force(
        steps in steps(), slide in 5..60_i64, slices in 1..4_i64, lateness in 1..120_i64,
    ) {
        let size = slide * slices;
        let schema = schema(None);
        let mut case = Case::rowtime(WindowSpec::hop(size, slide, 0).unwrap());
        case.lateness = Duration::from_millis(lateness.unsigned_abs());
        if slices > 1 {
            case.aggregates.truncate(5);
        }
        let columns = 1 + case.aggregates.len();
        let mut driver = case.driver(&schema);
        let mut oracle = Oracle::default();
        let mut seen = Millis::MIN;
        for (rows, watermark, restart) in steps {
            rows.iter().for_each(|row| oracle.add(*row, size, slide, 0, seen.saturating_sub(lateness)));
            if !rows.is_empty() {
                driver.process(&batch(&schema, &rows));
            }
            if let Some(watermark) = watermark {
                seen = seen.max(watermark);
                driver.watermark(watermark);
            }
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
        }
        driver.finish();
        let mut folded = changelog::FoldedTable::new(&case.output(&schema)).unwrap();
        driver.output.iter().for_each(|batch| folded.apply(batch).unwrap());
        let without_distinct = |row: Row| [&row[..columns], &row[row.len() - 3..]].concat();
        let expected: Vec<Row> = oracle.rows(size).into_iter().map(without_distinct).collect();
        prop_assert_eq!(sorted(all_rows(&[folded.rows().unwrap()])), sorted(expected));
        prop_assert_eq!(driver.late(), oracle.late);
        prop_assert_eq!(driver.groups(), 0, "slices leave the state when the lateness is over");
    }
}

#[test]
fn a_row_within_the_lateness_updates_the_window_and_one_behind_it_is_dropped_and_counted() {
    let schema = schema(None);
    let mut case = Case::rowtime(WindowSpec::tumble(10, 0).unwrap());
    case.aggregates.truncate(1);
    case.lateness = Duration::from_millis(5);
    let mut driver = case.driver(&schema);
    driver.process(&batch(&schema, &[(1, None, 3)]));
    driver.watermark(9);
    driver.restart(2);
    driver.process(&batch(&schema, &[(1, None, 4), (2, None, 5)]));
    driver.watermark(13);
    driver.process(&batch(&schema, &[(1, None, 6)]));
    driver.watermark(14);
    driver.process(&batch(&schema, &[(1, None, 7)]));
    let kinds = driver.output.iter().flat_map(|batch| changelog::row_kinds(batch).unwrap().unwrap().to_vec());
    let changes: Vec<(i8, String, String)> =
        kinds.zip(all_rows(&driver.output)).map(|(kind, row)| (kind, row[0].clone(), row[1].clone())).collect();
    let change = |kind: RowKind, key: &str, count: &str| (kind.code(), key.to_owned(), count.to_owned());
    let (insert, before, after) = (RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter);
    assert_eq!(changes[0], change(insert, "1", "1"));
    // The keys lie in different subtasks, in any order.
    let mut second = changes[1..4].to_vec();
    second.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(second, [change(before, "1", "1"), change(after, "1", "2"), change(insert, "2", "1")]);
    assert_eq!(changes[4..], [change(before, "1", "2"), change(after, "1", "3")]);
    assert_eq!((driver.late(), driver.groups()), (1, 0));
}

#[test]
fn distinct_in_hopping_windows_with_a_lateness_is_refused() {
    let schema = schema(None);
    let mut case = Case::rowtime(WindowSpec::hop(20, 10, 0).unwrap());
    case.lateness = Duration::from_millis(5);
    let output = case.output(&schema);
    let factory = WindowAggregateFactory::new(WindowAggregateSpec {
        input: schema.clone(),
        window: case.window,
        time: case.time,
        zone: None,
        keys: case.keys,
        aggregates: case.aggregates,
        lateness: case.lateness,
        output,
        alias: String::new(),
    });
    assert_eq!(factory.err().map(|error| error.code), Some(Code::SqlUnsupported));
}

#[test]
fn windows_fire_in_the_order_of_their_ends() {
    let schema = schema(None);
    let mut driver = Case::rowtime(WindowSpec::hop(60, 20, 0).unwrap()).driver(&schema);
    driver.process(&batch(&schema, &[(1, None, 95), (2, None, 5), (1, None, 50)]));
    driver.watermark(1_000);
    let ends: Vec<i64> = all_rows(&driver.output).iter().map(|row| row[row.len() - 2].parse().unwrap()).collect();
    assert_eq!(ends, [20, 40, 60, 60, 80, 100, 120, 140]);
}

#[test]
fn b66_a_row_late_for_the_first_windows_of_its_slice_counts_in_the_open_ones() {
    let schema = schema(None);
    let mut case = Case::rowtime(WindowSpec::hop(30, 10, 0).unwrap());
    case.aggregates.truncate(1);
    let mut driver = case.driver(&schema);
    driver.process(&batch(&schema, &[(1, None, 5)]));
    driver.watermark(19);
    driver.process(&batch(&schema, &[(1, None, 6), (1, None, -15)]));
    driver.watermark(100);
    let counts: Vec<Vec<String>> = all_rows(&driver.output).iter().map(|r| vec![r[1].clone(), r[3].clone()]).collect();
    assert_eq!(counts, [["1", "10"], ["1", "20"], ["2", "30"]]);
    assert_eq!(driver.late(), 1);
}

#[test]
fn b65_windows_that_fired_before_a_restart_do_not_fire_again() {
    let schema = schema(None);
    let mut case = Case::rowtime(WindowSpec::hop(30, 10, 0).unwrap());
    case.aggregates.truncate(1);
    let mut driver = case.driver(&schema);
    driver.process(&batch(&schema, &[(1, None, 5), (2, None, 5), (3, None, 5)]));
    driver.watermark(9);
    assert_eq!(all_rows(&driver.output).len(), 3);
    driver.restart(3);
    driver.watermark(19);
    assert_eq!(all_rows(&driver.output).len(), 6);
}

#[test]
fn windows_over_all_rows_have_no_key() {
    let schema = schema(None);
    for (slide, expected) in
        [(20, vec![["2", "0"], ["1", "20"]]), (10, vec![["1", "-10"], ["2", "0"], ["1", "10"], ["1", "20"]])]
    {
        let mut case = Case::rowtime(WindowSpec::hop(20, slide, 0).unwrap());
        case.keys.clear();
        case.aggregates = vec![AggregateSpec { distinct: true, ..aggregate(Count, Some(NUMBER), "COUNT(DISTINCT n)") }];
        let mut driver = case.driver(&schema);
        driver.process(&batch(&schema, &[(1, Some(7), 3), (2, Some(7), 4), (3, Some(8), 11), (4, Some(8), 25)]));
        driver.finish();
        let counts: Vec<Row> = all_rows(&driver.output).iter().map(|row| row[..2].to_vec()).collect();
        assert_eq!(counts, expected, "slide {slide}");
    }
}

#[test]
fn windows_of_local_time_have_23_and_25_hours_when_clocks_change() {
    const HOUR: Millis = 3_600_000;
    let schema = schema(Some("UTC"));
    let mut case = Case::rowtime(WindowSpec::tumble(24 * HOUR, 0).unwrap());
    case.zone = Some(chrono_tz::Tz::Europe__Berlin);
    case.keys.clear();
    case.aggregates.truncate(1);
    let mut driver = case.driver(&schema);
    // One row an hour from 2024-10-26T22:00Z (local midnight of the long day) for 30 hours.
    let midnight = 1_729_980_000_000;
    let rows: Vec<Input> = (0..30).map(|hour| (1, None, midnight + hour * HOUR)).collect();
    driver.process(&batch(&schema, &rows));
    // Local midnight, 25 hours later: the day is over at its last millisecond and not before.
    driver.watermark(midnight + 25 * HOUR - 2);
    assert_eq!(driver.output.len(), 0);
    driver.watermark(midnight + 25 * HOUR - 1);
    let local_midnight = midnight + 2 * HOUR;
    let day = [25, local_midnight, local_midnight + 24 * HOUR, midnight + 25 * HOUR - 1].map(|v| v.to_string());
    assert_eq!(all_rows(&driver.output), [day]);
}

#[test]
fn windows_by_processing_time_fire_by_the_clock() {
    let schema = schema(None);
    let mut case = Case::rowtime(WindowSpec::tumble(60, 0).unwrap());
    case.time = WindowTime::ProcessingTime;
    case.aggregates.truncate(1);
    let mut driver = case.driver(&schema);
    driver.advance_clock(10);
    driver.process(&batch(&schema, &[(1, None, 0), (1, None, 0)]));
    driver.restart(2);
    driver.advance_clock(59);
    assert_eq!(driver.output.len(), 0);
    driver.advance_clock(60);
    assert_eq!(all_rows(&driver.output), [["1", "2", "0", "60", "59"]]);
    driver.process(&batch(&schema, &[(1, None, 0)]));
    driver.finish();
    assert_eq!(all_rows(&driver.output).last().unwrap(), &["1", "1", "60", "120", "119"]);
}

#[test]
fn windows_may_be_aggregated_again_by_the_windows_they_have() {
    let schema = schema(None);
    let mut inner_case = Case::rowtime(WindowSpec::tumble(10, 0).unwrap());
    inner_case.aggregates.truncate(1);
    let mut inner = inner_case.driver(&schema);
    inner.process(&batch(&schema, &[(1, None, 1), (1, None, 2), (2, None, 3), (1, None, 15)]));
    inner.watermark(100);

    let inner_schema = inner_case.output(&schema);
    let outer = |time, window| Case {
        window,
        time,
        zone: None,
        keys: vec![],
        aggregates: vec![aggregate(Max, Some(1), "MAX(c)")],
        lateness: Duration::ZERO,
    };
    // By the inner window itself, and by a longer one over window_time.
    let mut same = outer(WindowTime::Attached(3), WindowSpec::tumble(10, 0).unwrap()).driver(&inner_schema);
    let mut longer = outer(WindowTime::Rowtime(4), WindowSpec::tumble(20, 0).unwrap()).driver(&inner_schema);
    for driver in [&mut same, &mut longer] {
        // Rows of a window come before the watermark that fired it.
        inner.output.iter().for_each(|batch| driver.process(batch));
        driver.watermark(100);
        assert_eq!(driver.late(), 0);
    }
    assert_eq!(all_rows(&same.output), [["2", "0", "10", "9"], ["1", "10", "20", "19"]]);
    assert_eq!(all_rows(&longer.output), [["2", "0", "20", "19"]]);
}

#[test]
fn assigned_rows_come_once_for_each_window_the_latest_first() {
    let schema = schema(None);
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.extend(window_fields(&schema));
    let factory = WindowAssignFactory::new(WindowAssignSpec {
        window: WindowSpec::hop(20, 10, 0).unwrap(),
        time: WindowTime::Rowtime(TIME),
        zone: None,
        output: Arc::new(Schema::new(fields)),
    });
    let mut driver = Driver::new(factory.unwrap(), &schema, &[KEY]);
    driver.process(&batch(&schema, &[(1, Some(7), 15)]));
    let expected = [["1", "7", "15", "10", "30", "29"], ["1", "7", "15", "0", "20", "19"]];
    assert_eq!(all_rows(&driver.output), expected);
}

#[test]
fn a_rowtime_that_is_null_and_an_updating_input_are_refused() {
    let schema = schema(None);
    let case = Case::rowtime(WindowSpec::tumble(10, 0).unwrap());
    let nulls: ArrayRef = Arc::new(TimestampMillisecondArray::new_null(1));
    let with_null = batch(&schema, &[(1, None, 0)]);
    let columns = vec![with_null.column(KEY).clone(), with_null.column(NUMBER).clone(), nulls];
    let error = case.driver(&schema).try_process(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap_err();
    assert_eq!(error.code, Code::RecordInvalid);

    let updating = changelog::updating_schema(&schema);
    let spec = WindowAggregateSpec {
        input: updating,
        window: case.window,
        time: case.time,
        zone: None,
        keys: vec![],
        aggregates: vec![],
        lateness: Duration::ZERO,
        output: schema,
        alias: String::new(),
    };
    assert_eq!(WindowAggregateFactory::new(spec).err().map(|error| error.code), Some(Code::SqlUnsupported));
}
