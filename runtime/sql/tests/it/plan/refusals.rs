//! What is refused: code, place, and a piece of what to write instead.

use streamkeeper_types::Code::{self, OptionInvalid as O, SqlInvalid as I, SqlUnsupported as U};

use super::{TABLES, refusal};

/// Statements with `§` before what is at fault, code, a piece of the cause, a piece of the way out.
type Case = (&'static str, Code, &'static str, &'static str);

fn check(cases: &[Case]) {
    for (marked, code, cause, way_out) in cases {
        let (before, _) = marked.split_once('§').expect("each case marks its place");
        let line = TABLES.lines().count() + before.lines().count();
        let column = before.lines().last().unwrap_or("").chars().count() + 1;
        let error = refusal(&marked.replace('§', ""));
        assert_eq!(error.code, *code, "{marked}\n{error}");
        let place = format!("line {line}, column {column}");
        assert!(error.place.contains(&place), "{marked}\n{error}\nwanted {place}");
        assert!(error.cause.contains(cause), "{marked}\n{error}");
        assert!(error.way_out.as_deref().unwrap_or("").contains(way_out), "{marked}\n{error}");
    }
}

#[test]
fn relations_of_later_versions_are_refused_with_an_alternative() {
    check(&[
        (
            "INSERT INTO printed SELECT a.auction, b.bidder FROM bid a §JOIN bid b ON a.auction = b.auction",
            U,
            "join",
            "LAG",
        ),
        ("INSERT INTO printed SELECT a.auction, b.bidder FROM bid a, §plain b", U, "join", "UNION ALL"),
        ("INSERT INTO printed SELECT auction, bidder FROM bid ORDER BY §price", U, "ORDER BY", "sort where"),
        ("INSERT INTO printed SELECT auction, bidder FROM bid §LIMIT 3", U, "LIMIT", "bounded"),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid §UNION SELECT auction, bidder FROM bid",
            U,
            "UNION",
            "DISTINCT",
        ),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid §INTERSECT SELECT auction, bidder FROM bid",
            U,
            "INTERSECT",
            "filter",
        ),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid WHERE §auction IN (SELECT k FROM plain)",
            U,
            "IN with a subquery",
            "list",
        ),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid WHERE EXISTS (§SELECT 1 FROM plain)",
            U,
            "EXISTS",
            "view",
        ),
        ("INSERT INTO printed §VALUES (1, 2)", U, "without a table", "datagen"),
        ("INSERT INTO printed §SELECT 1, 2", U, "without a table", "datagen"),
        ("INSERT INTO printed SELECT auction, COUNT(*) FROM bid GROUP BY §ROLLUP (auction)", U, "ROLLUP", "UNION ALL"),
        (
            "CREATE VIEW later AS\nSELECT a.auction FROM bid a §JOIN bid b ON a.auction = b.auction;\n\
             INSERT INTO printed SELECT auction, bidder FROM bid",
            U,
            "join",
            "LAG",
        ),
    ]);
}

#[test]
fn windows_and_rankings_of_later_versions_are_refused_with_an_alternative() {
    check(&[
        (
            "INSERT INTO printed SELECT MAX(auction), COUNT(*)\n\
             FROM TABLE(§CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR))\n\
             GROUP BY window_start, window_end",
            U,
            "CUMULATE",
            "TUMBLE",
        ),
        (
            "INSERT INTO printed SELECT MAX(auction), COUNT(*)\n\
             FROM TABLE(§SESSION(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))\n\
             GROUP BY window_start, window_end",
            U,
            "SESSION",
            "TUMBLE",
        ),
        (
            "INSERT INTO printed SELECT auction, §SUM(price) OVER (PARTITION BY auction ORDER BY ts) FROM bid",
            U,
            "SUM",
            "window table function",
        ),
        (
            "INSERT INTO printed SELECT auction, n FROM (\n\
             SELECT *, §ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts) AS n FROM bid) WHERE n <= 3",
            U,
            "Top-N",
            "n = 1",
        ),
        (
            "INSERT INTO printed SELECT auction, §ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts) FROM bid",
            U,
            "ROW_NUMBER",
            "WHERE n = 1",
        ),
        (
            "INSERT INTO printed SELECT auction, n FROM (\n\
             SELECT *, §ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price) AS n FROM bid) WHERE n = 1",
            U,
            "no time attribute",
            "WATERMARK FOR",
        ),
        (
            "INSERT INTO printed SELECT auction, §LAG(price, 2) OVER (PARTITION BY auction ORDER BY ts) FROM bid",
            U,
            "LAG",
            "outer query",
        ),
    ]);
}

#[test]
fn names_that_do_not_exist_are_told_with_the_nearest() {
    check(&[
        ("INSERT INTO printed SELECT auction, §biddr FROM bid", I, "`biddr`", "`bidder`"),
        ("INSERT INTO printed SELECT auction, bidder FROM §bids", I, "`bids`", "`bid`"),
        ("INSERT INTO §prnted SELECT auction, bidder FROM bid", I, "`prnted`", "`printed`"),
        ("INSERT INTO printed (a, §m) SELECT auction, bidder FROM bid", I, "no column `m`", ""),
        ("INSERT INTO printed SELECT auction, §UPER(channel) FROM bid", I, "UPER", "UPPER"),
    ]);
}

#[test]
fn time_rules_are_told_at_their_window() {
    check(&[
        (
            "INSERT INTO printed SELECT MAX(k), COUNT(*)\n\
             FROM TABLE(TUMBLE(TABLE late, DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;\n\
             CREATE TABLE late (k BIGINT, t TIMESTAMP(6), §WATERMARK FOR t AS t) WITH ('connector' = 'datagen')",
            I,
            "TIMESTAMP(6)",
            "TIMESTAMP(3)",
        ),
        (
            "CREATE TABLE untimed (k BIGINT, t TIMESTAMP(3)) WITH ('connector' = 'datagen');\n\
             INSERT INTO printed SELECT MAX(k), COUNT(*)\n\
             FROM TABLE(§TUMBLE(TABLE untimed, DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            I,
            "no time attribute",
            "WATERMARK FOR t",
        ),
        (
            "CREATE VIEW later AS SELECT auction, ts + INTERVAL '1' SECOND AS ts FROM bid;\n\
             INSERT INTO printed SELECT MAX(auction), COUNT(*)\n\
             FROM TABLE(§TUMBLE(TABLE later, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            I,
            "no time attribute",
            "unchanged",
        ),
    ]);
}

#[test]
fn updates_into_a_table_that_only_grows_are_refused_at_the_insert() {
    check(&[(
        "INSERT INTO §files SELECT auction, 'x', COUNT(*) FROM bid GROUP BY auction",
        I,
        "GroupAggregate",
        "window_start and window_end",
    )]);
}

#[test]
fn columns_must_fit_their_target() {
    check(&[
        ("INSERT INTO §printed SELECT auction FROM bid", I, "1 columns", "select a, n"),
        ("INSERT INTO printed SELECT auction, §channel FROM bid", I, "STRING", "CAST(channel AS BIGINT)"),
        ("INSERT INTO bid (auction, bidder, §pt) SELECT auction, bidder, ts FROM bid", I, "computed", "leave it out"),
        ("INSERT INTO §bid (auction) SELECT auction FROM bid", I, "`bidder`", "list of columns"),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid §UNION ALL SELECT auction, channel FROM bid",
            I,
            "UNION ALL",
            "cast",
        ),
    ]);
}

#[test]
fn settings_and_options_are_checked() {
    check(&[
        (
            "SET §'table.exec.state.tll' = '1h';\nINSERT INTO printed SELECT auction, bidder FROM bid",
            O,
            "table.exec.state.tll",
            "table.exec.state.ttl",
        ),
        (
            "CREATE TABLE x (a INT) WITH ('connector' = §'filesytem');\n\
             INSERT INTO printed SELECT auction, bidder FROM bid",
            O,
            "filesytem",
            "filesystem",
        ),
    ]);
}

#[test]
fn a_view_that_reads_itself_is_refused() {
    check(&[(
        "CREATE VIEW a AS SELECT * FROM b;\nCREATE VIEW §b AS SELECT * FROM a;\nINSERT INTO printed SELECT * FROM a",
        I,
        "reads itself",
        "table",
    )]);
}

#[test]
fn views_that_double_each_other_are_refused_before_memory_ends() {
    let mut text = String::from("CREATE VIEW v0 AS SELECT auction, bidder FROM bid;");
    for n in 1..40 {
        let below = n - 1;
        text += &format!("CREATE VIEW v{n} AS SELECT * FROM v{below} UNION ALL SELECT * FROM v{below};");
    }
    text += "INSERT INTO printed SELECT * FROM v39";
    let error = refusal(&text);
    assert_eq!(error.code, U, "{error}");
    assert!(error.cause.contains("tables"), "{error}");
}

#[test]
fn types_that_do_not_fit_are_told_where_their_column_stands() {
    check(&[
        ("INSERT INTO printed SELECT auction, bidder FROM bid\nWHERE §auction = '1'", I, "BIGINT and STRING", "CAST"),
        (
            "INSERT INTO printed SELECT auction, bidder FROM bid\nWHERE price > 1 AND §price LIKE '1%'",
            I,
            "LIKE",
            "CAST",
        ),
        ("INSERT INTO printed SELECT auction,\n CASE WHEN §price THEN 1 ELSE 2 END FROM bid", I, "BOOLEAN", "<> 0"),
        (
            "INSERT INTO printed SELECT auction,\n CASE WHEN §auction > 1 THEN price ELSE channel END FROM bid",
            I,
            "no common type",
            "CAST",
        ),
        ("INSERT INTO printed SELECT auction, §price + channel FROM bid", I, "INT + STRING has no meaning", "CAST"),
        ("INSERT INTO printed SELECT auction, bidder FROM bid §WHERE price", I, "BOOLEAN, but is INT", "<> 0"),
        (
            "INSERT INTO printed SELECT auction, COUNT(*) FROM bid GROUP BY auction\n §HAVING MAX(price) = 'x'",
            I,
            "INT and STRING",
            "CAST",
        ),
    ]);
}

#[test]
fn a_call_that_is_wrong_is_told_where_it_stands() {
    check(&[
        ("INSERT INTO files SELECT auction, §JSON_VALUE(channel, 'lax $['), 1 FROM bid", I, "", "lax $.member"),
        ("INSERT INTO files SELECT auction, §REGEXP_EXTRACT(channel, '(', 0), 1 FROM bid", I, "regular expression", ""),
        ("INSERT INTO files SELECT auction, §UPPER(NULL), 1 FROM bid", I, "bare NULL", "CAST(NULL AS STRING)"),
        ("INSERT INTO printed SELECT auction, §COUNT(NULL) FROM bid GROUP BY auction", I, "bare NULL", "CAST"),
    ]);
}

#[test]
fn a_column_that_is_not_grouped_is_told_with_both_ways_out() {
    check(&[(
        "INSERT INTO printed SELECT auction, §price, COUNT(*) FROM bid GROUP BY auction",
        I,
        "`price` is neither grouped nor aggregated",
        "MAX(price)",
    )]);
}

#[test]
fn what_exists_already_is_not_created_if_not_exists() {
    let again = "CREATE TABLE IF NOT EXISTS plain (other INT) WITH ('connector' = 'datagen');
                 INSERT INTO printed SELECT k, k FROM plain";
    super::plan(again);
    check(&[(
        "CREATE TABLE §plain (other INT) WITH ('connector' = 'datagen');\nINSERT INTO printed SELECT k, k FROM plain",
        I,
        "created twice",
        "rename",
    )]);
}
