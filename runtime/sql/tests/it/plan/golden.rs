//! Plans as people see them. A changed id here means that running jobs would not find their state.

use insta::assert_snapshot;
use streamkeeper_sql::explain::Format;

use super::{plan, try_plan};

fn tree(statements: &str) -> String {
    plan(statements).explain(Format::Tree)
}

const API_HITS: &str = r#"
CREATE TABLE access_log (
  line STRING,
  path AS SPLIT_INDEX(REGEXP_EXTRACT(line, '"[A-Z]+ ([^ "]+)', 1), '?', 0),
  ts AS TO_TIMESTAMP(REGEXP_EXTRACT(line, '\[([^ \]]+)', 1), 'dd/MMM/yyyy:HH:mm:ss'),
  WATERMARK FOR ts AS ts - INTERVAL '60' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'data/access.log', 'format' = 'raw');
CREATE TABLE api_hits (window_start TIMESTAMP(3), path STRING, hits BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'output/api-hits', 'format' = 'csv', 'csv.header' = 'true');
INSERT INTO api_hits
SELECT window_start, path, COUNT(*) AS hits
FROM TABLE(TUMBLE(TABLE access_log, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, path;
"#;

#[test]
fn the_first_example_counts_in_windows_and_is_insert_only() {
    assert_snapshot!(try_plan(API_HITS).unwrap().explain(Format::Tree));
}

#[test]
fn plans_are_shown_as_json_and_dot_too() {
    let plan = try_plan(API_HITS).unwrap();
    assert_snapshot!(plan.explain(Format::Json));
    assert_snapshot!(plan.explain(Format::Dot));
}

#[test]
fn filters_and_projections_become_one_node() {
    assert_snapshot!(tree(
        "INSERT INTO files SELECT auction, UPPER(channel), bidder FROM bid WHERE price > 100 AND channel IS NOT NULL"
    ));
}

#[test]
fn conditions_that_can_fail_see_only_the_rows_that_passed_the_others() {
    assert_snapshot!(tree(
        "INSERT INTO files SELECT auction, channel, bidder FROM bid WHERE 100 / price > 1 AND price <> 0"
    ));
}

#[test]
fn an_expression_that_is_used_twice_is_computed_once() {
    assert_snapshot!(tree(
        "INSERT INTO files SELECT a, u, n FROM (SELECT auction AS a, UPPER(channel) AS u, bidder AS n FROM bid) WHERE u <> 'X'"
    ));
}

#[test]
fn a_group_by_updates_and_its_having_is_a_filter_behind_it() {
    assert_snapshot!(tree(
        "INSERT INTO printed SELECT auction, COUNT(*) FROM bid GROUP BY auction HAVING COUNT(*) > 3 AND SUM(price) > 10"
    ));
}

#[test]
fn an_aggregate_over_an_aggregate_names_both_states() {
    assert_snapshot!(tree(
        "INSERT INTO printed SELECT n, COUNT(*) FROM (SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction) GROUP BY n"
    ));
}

#[test]
fn a_global_aggregate_has_one_subtask() {
    assert_snapshot!(tree(
        "INSERT INTO printed SELECT COUNT(DISTINCT bidder), COUNT(*) FILTER (WHERE price > 10) FROM bid"
    ));
}

#[test]
fn select_distinct_is_a_group_by_without_aggregates() {
    assert_snapshot!(tree("INSERT INTO printed SELECT DISTINCT auction, bidder FROM bid"));
}

#[test]
fn windows_over_window_time_and_over_the_same_windows_cascade() {
    assert_snapshot!(tree(
        "CREATE VIEW minutes AS
           SELECT auction, window_start AS s, window_end AS e, window_time AS t, COUNT(*) AS n
           FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' MINUTE))
           GROUP BY auction, window_start, window_end, window_time;
         INSERT INTO printed SELECT MAX(auction), MAX(n) FROM minutes GROUP BY s, e;
         INSERT INTO printed SELECT MAX(auction), SUM(n)
           FROM TABLE(TUMBLE(TABLE minutes, DESCRIPTOR(t), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;"
    ));
}

#[test]
fn a_window_that_nothing_aggregates_is_attached_to_each_row() {
    assert_snapshot!(tree(
        "CREATE TABLE rows_in_windows (a BIGINT, s TIMESTAMP(3), d INT) WITH ('connector' = 'print');
         INSERT INTO rows_in_windows SELECT auction, window_start, price
         FROM TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE))
         WHERE window_end > TIMESTAMP '2020-01-01 00:00:00'"
    ));
}

#[test]
fn grouping_by_one_border_of_a_window_is_an_updating_aggregate() {
    assert_snapshot!(tree(
        "CREATE TABLE starts (s TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
         INSERT INTO starts SELECT window_start, COUNT(*)
         FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start"
    ));
}

#[test]
fn keeping_the_first_row_is_insert_only_and_keeping_the_last_updates() {
    assert_snapshot!(tree(
        "INSERT INTO files SELECT auction, channel, bidder FROM (
           SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts ASC) AS n FROM bid) WHERE n = 1;
         INSERT INTO printed SELECT auction, n FROM (
           SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY pt DESC) AS n FROM bid) WHERE n <= 1 AND price > 5;"
    ));
}

#[test]
fn lag_compares_with_the_row_before() {
    assert_snapshot!(tree(
        "INSERT INTO printed SELECT auction, price - LAG(price, 1, 0) OVER (PARTITION BY auction ORDER BY ts) FROM bid"
    ));
}

#[test]
fn union_all_takes_a_table_twice_through_one_source() {
    assert_snapshot!(tree(
        "INSERT INTO printed SELECT auction, bidder FROM bid WHERE price > 10
         UNION ALL SELECT auction, COUNT(*) FROM bid GROUP BY auction"
    ));
}

#[test]
fn inserts_of_a_statement_set_share_the_source_and_each_takes_its_columns() {
    assert_snapshot!(tree(
        "EXECUTE STATEMENT SET BEGIN
           INSERT INTO printed SELECT auction, bidder FROM bid;
           INSERT INTO files SELECT auction, channel, price FROM bid;
         END;"
    ));
}

#[test]
fn idle_state_is_dropped_after_the_time_that_set_says() {
    assert_snapshot!(tree(
        "SET 'table.exec.state.ttl' = '1h'; INSERT INTO printed SELECT auction, COUNT(*) FROM bid GROUP BY auction"
    ));
}

/// Nexmark's own text: rows in columns, views over them, names that need backquotes.
const NEXMARK: &str = "
CREATE TABLE src (
  event_type INT,
  person ROW<id BIGINT, name VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  auction ROW<id BIGINT, itemName VARCHAR, `dateTime` TIMESTAMP(3), seller BIGINT, extra VARCHAR>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  `dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime`
    ELSE bid.`dateTime` END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'events', 'format' = 'json');
CREATE VIEW bids AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
  FROM src WHERE event_type = 2;
CREATE TABLE q1 (auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra VARCHAR)
  WITH ('connector' = 'blackhole');
CREATE TABLE q2 (auction BIGINT, price BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE q5 (auction BIGINT, num BIGINT, st TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO q1 SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bids;
INSERT INTO q2 SELECT auction, price FROM bids WHERE MOD(auction, 123) = 0;
INSERT INTO q5 SELECT auction, count(*) AS num, window_start AS st
  FROM TABLE(HOP(TABLE bids, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end;
";

#[test]
fn nexmark_reads_fields_of_rows_through_views() {
    let plan = try_plan(NEXMARK).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = plan.graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "Source(src)").count(), 1, "{names:?}");
    assert!(names.contains(&"WindowAggregate(HOP 10s every 2s)"), "{names:?}");
    assert!(plan.graph.nodes.iter().all(|node| node.changelog == streamkeeper_engine::Changelog::InsertOnly));
}
