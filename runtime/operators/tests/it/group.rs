//! GROUP BY over insert-only and retracting inputs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use proptest::prelude::*;
use streamkeeper_operators::{
    AggregateFunction::{self, Avg, Count, Max, Min, Sum},
    AggregateSpec, GroupAggregateFactory, GroupAggregateSpec, changelog,
};
use streamkeeper_types::{Code, RowKind};

use crate::{
    driver::Driver,
    table::{Row, changes, fold, sorted},
};

/// Columns k, i, s, d, f, flag.
#[derive(Debug, Clone, PartialEq)]
struct Input {
    key: i32,
    number: Option<i32>,
    flag: Option<bool>,
}

impl Input {
    fn text(&self) -> Option<String> {
        self.number.map(|n| format!("t{n}"))
    }
}

fn insert_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int32, true),
        Field::new("i", DataType::Int32, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("d", DataType::Decimal128(10, 2), true),
        Field::new("f", DataType::Float64, true),
        Field::new("flag", DataType::Boolean, true),
    ]))
}

fn columns(rows: &[Input]) -> Vec<ArrayRef> {
    let numbers = || rows.iter().map(|row| row.number);
    let decimals: Decimal128Array = numbers().map(|n| n.map(i128::from)).collect();
    vec![
        Arc::new(rows.iter().map(|row| Some(row.key)).collect::<Int32Array>()),
        Arc::new(numbers().collect::<Int32Array>()),
        Arc::new(rows.iter().map(Input::text).collect::<StringArray>()),
        Arc::new(decimals.with_precision_and_scale(10, 2).unwrap()),
        Arc::new(numbers().map(|n| n.map(f64::from)).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>()),
    ]
}

fn inserts(rows: &[Input]) -> RecordBatch {
    RecordBatch::try_new(insert_schema(), columns(rows)).unwrap()
}

fn changes_of(rows: &[(RowKind, Input)]) -> RecordBatch {
    let inputs: Vec<Input> = rows.iter().map(|(_, input)| input.clone()).collect();
    let kinds = rows.iter().map(|(kind, _)| kind.code()).collect();
    changelog::updating_batch(&changelog::updating_schema(&insert_schema()), columns(&inputs), kinds).unwrap()
}

fn aggregate(function: AggregateFunction, argument: Option<usize>, name: &str) -> AggregateSpec {
    AggregateSpec { function, argument, filter: None, distinct: false, name: name.to_owned() }
}

/// All functions over all kinds of columns.
fn aggregates() -> Vec<AggregateSpec> {
    let distinct =
        |function, argument, name: &str| AggregateSpec { distinct: true, ..aggregate(function, Some(argument), name) };
    let filtered = |mut spec: AggregateSpec| {
        spec.filter = Some(5);
        spec
    };
    vec![
        aggregate(Count, None, "COUNT(*)"),
        aggregate(Count, Some(2), "COUNT(s)"),
        aggregate(Sum, Some(1), "SUM(i)"),
        aggregate(Sum, Some(3), "SUM(d)"),
        aggregate(Min, Some(1), "MIN(i)"),
        aggregate(Max, Some(1), "MAX(i)"),
        aggregate(Min, Some(2), "MIN(s)"),
        aggregate(Max, Some(3), "MAX(d)"),
        aggregate(Avg, Some(1), "AVG(i)"),
        aggregate(Avg, Some(4), "AVG(f)"),
        distinct(Count, 2, "COUNT(DISTINCT s)"),
        distinct(Sum, 1, "SUM(DISTINCT i)"),
        filtered(aggregate(Count, None, "COUNT(*) FILTER")),
        filtered(aggregate(Max, Some(1), "MAX(i) FILTER")),
        filtered(distinct(Count, 1, "COUNT(DISTINCT i) FILTER")),
    ]
}

/// The results of [`aggregates`] over the rows of a group.
fn expected(key: i32, rows: &[Input]) -> Row {
    let numbers: Vec<i64> = rows.iter().filter_map(|row| row.number).map(i64::from).collect();
    let flagged: Vec<&Input> = rows.iter().filter(|row| row.flag == Some(true)).collect();
    let flagged_numbers: Vec<i64> = flagged.iter().filter_map(|row| row.number).map(i64::from).collect();
    let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let show = |value: Option<i64>| text(value.map(|v| v.to_string()));
    let cents = |value: Option<i64>| {
        text(value.map(|v| format!("{}{}.{:02}", if v < 0 { "-" } else { "" }, v.abs() / 100, v.abs() % 100)))
    };
    let sum = (!numbers.is_empty()).then(|| numbers.iter().sum::<i64>());
    let count = numbers.len() as i64;
    let distinct = |numbers: &[i64]| numbers.iter().copied().collect::<BTreeSet<i64>>();
    let texts: BTreeSet<String> = rows.iter().filter_map(Input::text).collect();
    vec![
        key.to_string(),
        rows.len().to_string(),
        count.to_string(),
        show(sum.map(|s| i64::from(s as i32))),
        cents(sum),
        show(numbers.iter().min().copied()),
        show(numbers.iter().max().copied()),
        text(texts.first().cloned()),
        cents(numbers.iter().max().copied()),
        show(sum.map(|s| s / count)),
        text(sum.map(|s| format!("{:?}", s as f64 / count as f64))),
        texts.len().to_string(),
        show((!numbers.is_empty()).then(|| i64::from(distinct(&numbers).iter().sum::<i64>() as i32))),
        flagged.len().to_string(),
        show(flagged_numbers.iter().max().copied()),
        distinct(&flagged_numbers).len().to_string(),
    ]
}

fn expected_table(rows: &[Input]) -> Vec<Row> {
    let mut groups: BTreeMap<i32, Vec<Input>> = BTreeMap::new();
    for row in rows {
        groups.entry(row.key).or_default().push(row.clone());
    }
    sorted(groups.into_iter().map(|(key, rows)| expected(key, &rows)).collect())
}

fn driver(input: &SchemaRef, keys: &[usize], aggregates: Vec<AggregateSpec>, state_ttl: Option<Duration>) -> Driver {
    let mut fields: Vec<Field> = keys.iter().map(|key| input.field(*key).clone()).collect();
    for aggregate in &aggregates {
        fields.push(Field::new(&aggregate.name, aggregate.result_type(input).unwrap(), true));
    }
    let factory = GroupAggregateFactory::new(GroupAggregateSpec {
        input: input.clone(),
        keys: keys.to_vec(),
        aggregates,
        output: changelog::updating_schema(&Schema::new(fields)),
        state_ttl,
        alias: "groups".to_owned(),
    });
    Driver::new(factory.unwrap(), input, keys)
}

fn input() -> impl Strategy<Value = Input> {
    let number = prop_oneof![1 => Just(None), 8 => (-4..5_i32).prop_map(Some), 1 => any::<i32>().prop_map(Some)];
    let flag = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    (0..4_i32, number, flag).prop_map(|(key, number, flag)| Input { key, number, flag })
}

/// A step of a test: rows to add, a share of the rows to take back, and perhaps a restart.
fn steps() -> impl Strategy<Value = Vec<(Vec<Input>, Vec<prop::sample::Index>, Option<u32>)>> {
    let inserts = prop::collection::vec(input(), 0..12);
    let deletes = prop::collection::vec(any::<prop::sample::Index>(), 0..12);
    prop::collection::vec((inserts, deletes, prop::option::weighted(0.3, 1..4_u32)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn folded_changes_of_a_retracting_input_equal_recomputation(steps in steps()) {
        let schema = changelog::updating_schema(&insert_schema());
        let mut driver = driver(&schema, &[0], aggregates(), None);
        let mut present: Vec<Input> = Vec::new();
        for (added, deletes, restart) in steps {
            let mut batch: Vec<(RowKind, Input)> = Vec::new();
            let mut added = added.into_iter();
            // Both kinds mixed within one batch.
            for delete in deletes {
                batch.extend(added.next().map(|row| (RowKind::Insert, row)));
                present.extend(batch.last().filter(|(kind, _)| kind.adds()).map(|(_, row)| row.clone()));
                if !present.is_empty() {
                    batch.push((RowKind::Delete, present.swap_remove(delete.index(present.len()))));
                }
            }
            let rest: Vec<Input> = added.collect();
            present.extend(rest.iter().cloned());
            batch.extend(rest.into_iter().map(|row| (RowKind::UpdateAfter, row)));
            if !batch.is_empty() {
                driver.process(&changes_of(&batch));
            }
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
            prop_assert_eq!(sorted(fold(&driver.output, 1)), expected_table(&present));
            let groups: BTreeSet<i32> = present.iter().map(|row| row.key).collect();
            prop_assert_eq!(driver.groups(), groups.len(), "groups without rows leave the state");
        }
    }

    #[test]
    fn folded_changes_of_an_insert_only_input_equal_recomputation(steps in steps()) {
        let schema = insert_schema();
        let mut driver = driver(&schema, &[0], aggregates(), None);
        let mut present: Vec<Input> = Vec::new();
        for (added, _, restart) in steps {
            if !added.is_empty() {
                driver.process(&inserts(&added));
            }
            present.extend(added);
            if let Some(parallelism) = restart {
                driver.restart(parallelism);
            }
            prop_assert_eq!(sorted(fold(&driver.output, 1)), expected_table(&present));
        }
        // COUNT(*) changes with each row: two changes for each but a group's first.
        let groups: BTreeSet<i32> = present.iter().map(|row| row.key).collect();
        prop_assert_eq!(changes(&driver.output).len(), 2 * present.len() - groups.len());
    }
}

fn row(key: i32, number: i32) -> Input {
    Input { key, number: Some(number), flag: None }
}

fn show(driver: &Driver) -> Vec<String> {
    changes(&driver.output).into_iter().map(|(kind, row)| format!("{kind} {}", row.join(" "))).collect()
}

#[test]
fn each_row_updates_its_group_as_it_comes() {
    let mut driver = driver(&insert_schema(), &[0], vec![aggregate(Sum, Some(1), "SUM(i)")], None);
    driver.process(&inserts(&[row(1, 10), row(2, 20), row(1, 5)]));
    assert_eq!(show(&driver), ["+I 1 10", "+I 2 20", "-U 1 10", "+U 1 15"]);
}

#[test]
fn a_row_that_changes_no_result_is_silent_unless_state_has_a_ttl() {
    let spec = || vec![aggregate(Max, Some(1), "MAX(i)")];
    let mut without = driver(&insert_schema(), &[0], spec(), None);
    without.process(&inserts(&[row(1, 10), row(1, 5)]));
    assert_eq!(show(&without), ["+I 1 10"]);
    let mut with = driver(&insert_schema(), &[0], spec(), Some(Duration::from_secs(60)));
    with.process(&inserts(&[row(1, 10), row(1, 5)]));
    assert_eq!(show(&with), ["+I 1 10", "-U 1 10", "+U 1 10"]);
}

#[test]
fn a_group_whose_ttl_passed_begins_anew() {
    let ttl = Some(Duration::from_secs(60));
    let mut driver = driver(&insert_schema(), &[0], vec![aggregate(Count, None, "COUNT(*)")], ttl);
    driver.process(&inserts(&[row(1, 1)]));
    driver.advance_clock(59_000);
    driver.process(&inserts(&[row(1, 1)]));
    driver.advance_clock(119_000);
    driver.process(&inserts(&[row(1, 1)]));
    assert_eq!(show(&driver), ["+I 1 1", "-U 1 1", "+U 1 2", "+I 1 1"]);
}

#[test]
fn a_group_that_loses_its_last_row_is_deleted_and_may_begin_again_in_the_same_batch() {
    let schema = changelog::updating_schema(&insert_schema());
    let mut driver = driver(&schema, &[0], vec![aggregate(Min, Some(1), "MIN(i)")], None);
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    driver.process(&changes_of(&[
        (Delete, row(1, 3)),
        (Insert, row(1, 7)),
        (UpdateBefore, row(1, 7)),
        (UpdateAfter, row(1, 9)),
        (Delete, row(1, 9)),
    ]));
    assert_eq!(show(&driver), ["+I 1 7", "-D 1 7", "+I 1 9", "-D 1 9"]);
    assert_eq!(driver.groups(), 0);
}

#[test]
fn a_global_aggregate_has_no_row_before_its_first_input() {
    let schema = changelog::updating_schema(&insert_schema());
    let spec = vec![aggregate(Count, None, "COUNT(*)"), aggregate(Max, Some(1), "MAX(i)")];
    let mut driver = driver(&schema, &[], spec, None);
    assert_eq!(show(&driver), Vec::<String>::new());
    driver.process(&changes_of(&[(RowKind::Insert, row(1, 5)), (RowKind::Insert, row(2, 7))]));
    driver.restart(1);
    driver.process(&changes_of(&[(RowKind::Delete, row(2, 7)), (RowKind::Delete, row(1, 5))]));
    assert_eq!(show(&driver), ["+I 1 5", "-U 1 5", "+U 2 7", "-U 2 7", "+U 1 5", "-D 1 5"]);
}

#[test]
fn select_distinct_is_a_group_without_aggregates() {
    let mut driver = driver(&insert_schema(), &[0], Vec::new(), None);
    driver.process(&inserts(&[row(1, 5), row(1, 6), row(2, 5)]));
    driver.restart(2);
    driver.process(&inserts(&[row(2, 5), row(3, 5)]));
    assert_eq!(show(&driver), ["+I 1", "+I 2", "+I 3"]);
}

#[test]
fn a_decimal_sum_of_more_than_38_digits_is_an_error() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("d", DataType::Decimal128(38, 0), true)]));
    let mut driver = driver(&schema, &[], vec![aggregate(Sum, Some(0), "SUM(d)")], None);
    let most = Decimal128Array::from(vec![10_i128.pow(38) - 1, 1]).with_precision_and_scale(38, 0).unwrap();
    let error = driver.try_process(&RecordBatch::try_new(schema, vec![Arc::new(most)]).unwrap()).unwrap_err();
    assert_eq!(error.code, Code::Evaluation);
}
