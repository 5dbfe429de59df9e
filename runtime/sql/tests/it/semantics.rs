//! Plans as DataFusion makes them of our syntax trees, after Flink's semantics are imposed.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray},
        datatypes::{DataType, Field, Schema, TimeUnit},
    },
    common::tree_node::{TreeNode, TreeNodeRecursion},
    logical_expr::LogicalPlan,
};
use streamkeeper_sql::{
    functions::{WindowColumn, window_mark},
    parse::WindowKind,
    types::SqlType,
};

use crate::harness::Session;

fn session() -> Session {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("Name", DataType::Utf8, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1])),
        Arc::new(StringArray::from(vec!["x"])),
        Arc::new(TimestampMillisecondArray::from(vec![0])),
    ];
    Session::new("UTC").with_table("t", RecordBatch::try_new(Arc::new(schema), columns).unwrap())
}

/// Names and types of a query's columns.
fn columns(query: &str) -> Vec<(String, String)> {
    let plan = session().plan(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let field = |field: &Arc<Field>| (field.name().clone(), SqlType::name_of(field.data_type()));
    plan.schema().fields().iter().map(field).collect()
}

fn check_types(query: &str, expected: &[&str]) {
    let types: Vec<String> = columns(query).into_iter().map(|(_, data_type)| data_type).collect();
    assert_eq!(types, expected, "{query}");
}

#[test]
fn aggregates_have_flinks_types_through_the_whole_plan() {
    check_types(
        "SELECT SUM(a), AVG(a), COUNT(*), COUNT(a), MIN(Name) FROM t GROUP BY Name",
        &["INT", "INT", "BIGINT", "BIGINT", "STRING"],
    );
    check_types("SELECT SUM(s + 1) FROM (SELECT SUM(a) AS s FROM t GROUP BY Name)", &["INT"]);
    check_types(
        "SELECT AVG(CAST(a AS DECIMAL(10, 2))), SUM(CAST(a AS DECIMAL(10, 2))) FROM t",
        &["DECIMAL(38, 6)", "DECIMAL(38, 2)"],
    );
    check_types("SELECT a / 2, a + 1, a * 1.5 FROM t UNION ALL SELECT 1, 2, 3.0", &["INT", "INT", "DECIMAL(13, 1)"]);
    check_types("SELECT * FROM (VALUES (1, 'a'), (2, 'b'))", &["INT", "STRING"]);
}

#[test]
fn names_keep_their_case() {
    assert_eq!(columns("SELECT Name AS `Über`, a FROM t")[0].0, "Über");
    assert!(session().plan("SELECT name FROM t").is_err());
}

#[test]
fn filters_having_and_distinct_counts_plan() {
    check_types(
        "SELECT COUNT(*) FILTER (WHERE a > 1), COUNT(DISTINCT Name) FROM t GROUP BY a HAVING COUNT(*) > 1",
        &["BIGINT", "BIGINT"],
    );
    check_types(
        "SELECT a FROM (SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM t) WHERE n = 1",
        &["INT"],
    );
    check_types("SELECT LAG(a) OVER (PARTITION BY Name ORDER BY ts) FROM t", &["INT"]);
}

#[test]
fn windows_are_found_by_their_marks_over_tables_queries_and_ctes() {
    for from in ["t", "v", "(SELECT * FROM t)"] {
        let input = if from.starts_with('(') { from.to_owned() } else { format!("TABLE {from}") };
        let query = format!(
            "WITH v AS (SELECT ts, Name FROM t) SELECT window_start, window_end, Name, COUNT(*) AS n \
             FROM TABLE(HOP({input}, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) AS w \
             GROUP BY window_start, window_end, Name"
        );
        let plan = session().plan(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut found = Vec::new();
        plan.apply(|node| {
            if let LogicalPlan::Projection(projection) = node {
                found.extend(projection.expr.iter().filter_map(|expr| {
                    let mark = window_mark(expr)?;
                    assert_eq!(mark.window.kind, WindowKind::Hop { slide: 60_000, size: 120_000 });
                    assert!(mark.time.to_string().ends_with("ts"), "{}", mark.time);
                    Some(mark.column)
                }));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        assert_eq!(found, [WindowColumn::Start, WindowColumn::End, WindowColumn::Time], "{query}");
    }
}

#[test]
fn a_window_over_a_column_that_is_no_time_is_refused() {
    let error = session().plan("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' MINUTE))").unwrap_err();
    assert!(error.cause.contains("INT"), "{error}");
}

#[test]
fn the_longest_expression_that_parses_also_plans() {
    let query = format!("SELECT 1{} FROM t", " + 1".repeat(490));
    check_types(&query, &["INT"]);
}
