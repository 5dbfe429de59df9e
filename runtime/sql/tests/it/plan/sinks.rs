//! What reaches a sink.

use streamkeeper_engine::Changelog;

use super::{plan, refusal};

/// Names of the nodes from the source to the sink.
fn names(statements: &str) -> Vec<String> {
    plan(statements).graph.nodes.into_iter().map(|node| node.name).collect()
}

#[test]
fn columns_that_are_not_named_become_null() {
    let plan = plan("INSERT INTO files (n, a) SELECT bidder, auction FROM bid");
    let sink = plan.graph.nodes.last().unwrap();
    let columns: Vec<&str> = sink.output.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(columns, ["a", "b", "n"]);
}

#[test]
fn not_null_is_checked_where_null_may_come() {
    let table = "CREATE TABLE strict (a BIGINT NOT NULL) WITH ('connector' = 'print');";
    let checked = names(&format!("{table} INSERT INTO strict SELECT auction FROM bid"));
    assert!(checked.contains(&"NotNull".to_owned()), "{checked:?}");
    let free = names(&format!("{table} INSERT INTO strict SELECT bidder FROM bid"));
    assert!(!free.contains(&"NotNull".to_owned()), "{free:?}");
    let dropped = names(&format!(
        "{table} SET 'table.exec.sink.not-null-enforcer' = 'drop'; INSERT INTO strict SELECT auction FROM bid"
    ));
    assert!(!dropped.contains(&"NotNull".to_owned()), "{dropped:?}");
}

#[test]
fn narrow_numbers_widen_by_themselves() {
    let plan = plan("INSERT INTO printed SELECT price, price FROM bid");
    let sink = plan.graph.nodes.last().unwrap();
    assert!(sink.output.fields().iter().all(|field| field.data_type() == &arrow::datatypes::DataType::Int64));
}

#[test]
fn windows_that_take_rows_after_their_end_update_and_a_sink_of_new_rows_refuses_them() {
    let query = |set: &str, time: &str, sink: &str| {
        format!(
            "SET 'window.allowed-lateness' = '{set}'; INSERT INTO {sink} SELECT auction, COUNT(*)
             FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR({time}), INTERVAL '10' SECOND))
             GROUP BY auction, window_start, window_end"
        )
    };
    let changelog = |text: &str| plan(text).graph.nodes.last().unwrap().changelog;
    assert_eq!(changelog(&query("5s", "ts", "printed")), Changelog::Updating);
    assert_eq!(changelog(&query("0s", "ts", "printed")), Changelog::InsertOnly);
    assert_eq!(changelog(&query("5s", "pt", "printed")), Changelog::InsertOnly, "the clock knows no late rows");
    let error = refusal(&query("5s", "ts", "files (a, n)"));
    assert!(error.cause.contains("WindowAggregate") && error.cause.contains("new rows only"), "{error}");
    assert!(error.way_out.as_deref().unwrap_or("").contains("allowed-lateness"), "{error}");
}

#[test]
fn what_flink_keeps_insert_only_is_insert_only() {
    for statement in [
        "INSERT INTO files SELECT auction, channel, price FROM bid",
        "INSERT INTO files SELECT auction, MAX(channel), COUNT(*)
         FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
         GROUP BY auction, window_start, window_end",
        "INSERT INTO files SELECT auction, channel, n FROM (
           SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY pt) AS n FROM bid) WHERE n = 1",
        "INSERT INTO files SELECT auction, LAG(channel) OVER (PARTITION BY auction ORDER BY ts), price FROM bid",
    ] {
        let plan = plan(statement);
        assert!(plan.graph.nodes.iter().all(|node| node.changelog == Changelog::InsertOnly), "{statement}");
    }
}
