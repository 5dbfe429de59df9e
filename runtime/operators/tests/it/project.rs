//! Filter, projection and UNION ALL.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use arrow::{
    array::{Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::{
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr,
        expressions::{binary, col, lit},
    },
};
use streamkeeper_operators::{Expression, ProjectFactory, UnionAllFactory, changelog};
use streamkeeper_types::{Code, RowKind};

use crate::{
    driver::Driver,
    table::{all_rows, changes},
};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Int64, true)]))
}

fn batch(rows: &[(Option<i64>, i64)]) -> RecordBatch {
    let a: Int64Array = rows.iter().map(|row| row.0).collect();
    let b: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    RecordBatch::try_new(schema(), vec![Arc::new(a), Arc::new(b)]).unwrap()
}

fn updating(rows: &[(RowKind, i64, i64)]) -> RecordBatch {
    let data: Vec<_> = rows.iter().map(|row| (Some(row.1), row.2)).collect();
    let kinds = rows.iter().map(|row| row.0.code()).collect();
    changelog::updating_batch(&changelog::updating_schema(&schema()), batch(&data).columns().to_vec(), kinds).unwrap()
}

fn column(name: &str) -> Arc<dyn PhysicalExpr> {
    col(name, &schema()).unwrap()
}

fn operation(left: Arc<dyn PhysicalExpr>, operator: Operator, right: Arc<dyn PhysicalExpr>) -> Expression {
    Expression::new(binary(left, operator, right, &schema()).unwrap())
}

fn output(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>()))
}

#[test]
fn rows_are_filtered_then_projected() {
    let sum = operation(column("a"), Operator::Plus, column("b"));
    let factory =
        ProjectFactory::new(output(&["sum"]), vec![sum]).filter(operation(column("a"), Operator::Gt, lit(1_i64)));
    let mut driver = Driver::new(factory, &schema(), &[]);
    driver.process(&batch(&[(Some(1), 10), (Some(2), 20), (None, 30), (Some(3), 30)]));
    driver.process(&batch(&[(Some(0), 10)]));
    assert_eq!(all_rows(&driver.output), [["22"], ["33"]]);
}

#[test]
fn halves_of_updates_that_do_not_pass_turn_the_others_into_inserts_and_deletes() {
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    let schema = changelog::updating_schema(&output(&["a", "b"]));
    let factory = ProjectFactory::new(schema.clone(), vec![Expression::new(column("a")), Expression::new(column("b"))])
        .filter(operation(column("b"), Operator::Gt, lit(2_i64)));
    let mut driver = Driver::new(factory, &schema, &[]);
    driver.process(&updating(&[
        (Insert, 1, 1),
        (UpdateBefore, 1, 1),
        (UpdateAfter, 1, 3),
        (UpdateBefore, 1, 3),
        (UpdateAfter, 1, 4),
        (UpdateBefore, 1, 4),
        (UpdateAfter, 1, 2),
        (Delete, 1, 2),
        (Insert, 2, 9),
        (Delete, 2, 9),
    ]));
    let shown: Vec<String> =
        changes(&driver.output).into_iter().map(|(k, row)| format!("{k} {}", row.join(" "))).collect();
    assert_eq!(shown, ["+I 1 3", "-U 1 3", "+U 1 4", "-D 1 4", "+I 2 9", "-D 2 9"]);
}

#[test]
fn an_error_names_the_expression() {
    let mut quotient = operation(column("b"), Operator::Divide, column("a"));
    quotient.text = "b / a".to_owned();
    let mut driver = Driver::new(ProjectFactory::new(output(&["q"]), vec![quotient]), &schema(), &[]);
    let error = driver.try_process(&batch(&[(Some(0), 1)])).unwrap_err();
    assert_eq!(error.code, Code::Evaluation);
    assert!(error.cause.contains("`b / a`"), "{error}");
}

#[test]
fn the_clock_is_told_before_each_batch() {
    let told = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&told);
    let factory = ProjectFactory::new(output(&["a"]), vec![Expression::new(column("a"))])
        .clock(Arc::new(move |now| clock.store(now, Ordering::SeqCst)));
    let mut driver = Driver::new(factory, &schema(), &[]);
    driver.advance_clock(42);
    driver.process(&batch(&[(Some(1), 1)]));
    assert_eq!(told.load(Ordering::SeqCst), 42);
}

#[test]
fn a_projection_may_have_no_column() {
    let mut driver = Driver::new(ProjectFactory::new(output(&[]), Vec::new()), &schema(), &[]);
    driver.process(&batch(&[(Some(1), 1), (Some(2), 1)]));
    assert_eq!(driver.output[0].num_rows(), 2);
}

#[test]
fn insert_only_inputs_of_an_updating_union_become_inserts() {
    let schema = changelog::updating_schema(&schema());
    let mut driver = Driver::new(UnionAllFactory::new(schema.clone()), &schema, &[]);
    driver.process(&batch(&[(Some(1), 2)]));
    driver.process(&updating(&[(RowKind::Delete, 3, 4)]));
    assert_eq!(changes(&driver.output).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["+I", "-D"]);
}
