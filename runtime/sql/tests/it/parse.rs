//! Scripts that parse and scripts that don't: the second with code, place and way out.

use streamkeeper_sql::{
    catalog::{Catalog, ColumnKind, Relation, Table},
    parse::{Statement, parse_script},
};
use streamkeeper_types::{
    Code,
    options::{OptionKind, OptionSpec},
};

fn only_table(text: &str) -> Table {
    let script = parse_script(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match script.statements.into_iter().next() {
        Some(Statement::CreateTable(table)) => table,
        other => panic!("{other:?}"),
    }
}

/// The query's text after Flink's forms are gone.
fn lowered(query: &str) -> String {
    let script = parse_script(&format!("INSERT INTO t {query}")).unwrap_or_else(|error| panic!("{query}: {error}"));
    script.inserts().next().expect("one insert").query.ast.to_string()
}

#[test]
fn a_table_has_everything_that_its_ddl_says() {
    let table = only_table(
        "CREATE TEMPORARY TABLE IF NOT EXISTS `access log` (
           id BIGINT NOT NULL COMMENT 'the id',
           line STRING,
           at_ms BIGINT,
           tags MAP<STRING, ARRAY<INT>>,
           ts AS TO_TIMESTAMP_LTZ(at_ms, 3) COMMENT 'when',
           `user` AS CAST(REGEXP_EXTRACT(line, '(\\d+)', 1) AS INT),
           CONSTRAINT pk PRIMARY KEY (id, `line`) NOT ENFORCED,
           WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
         ) COMMENT 'log' PARTITIONED BY (line) WITH ('connector' = 'filesystem', 'path' = 'it''s here');",
    );
    assert_eq!(table.name, "access log");
    assert_eq!(table.comment.as_deref(), Some("log"));
    assert_eq!(table.primary_key, ["id", "line"]);
    assert_eq!(table.partitioned_by, ["line"]);
    assert_eq!(table.option("path"), Some("it's here"));
    assert_eq!(table.options["path"].key_position.to_string(), "line 10, column 82");
    let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "line", "at_ms", "tags", "ts", "user"]);
    let nullable: Vec<_> = table.physical_schema().fields().iter().map(|field| field.is_nullable()).collect();
    assert_eq!(nullable, [false, false, true, true]);
    let ColumnKind::Computed(user) = &table.columns[5].kind else { panic!("computed") };
    assert_eq!(user.text, "CAST(REGEXP_EXTRACT(line, '(\\d+)', 1) AS INT)");
    let watermark = table.watermark.expect("watermark");
    assert_eq!((watermark.column.as_str(), watermark.expr.text.as_str()), ("ts", "ts - INTERVAL '1' MINUTE"));
    assert_eq!(watermark.position.to_string(), "line 9, column 12");
}

#[test]
fn statements_of_all_kinds_are_read_in_order() {
    let script = parse_script(
        "SET 'a' = 'b';
         CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b STRING) WITH ('connector' = 'print');;
         CREATE TEMPORARY VIEW v (x, y) AS SELECT a, b FROM t WHERE b = ';';
         INSERT INTO t (b, a) SELECT y, x FROM v; -- comment;
         EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT * FROM v; INSERT INTO t (SELECT * FROM v); END;
         BEGIN STATEMENT SET; INSERT INTO t VALUES (1, 'a'); END;
         EXPLAIN PLAN FOR INSERT INTO t SELECT * FROM v",
    )
    .expect("script");
    let kinds: Vec<_> = script
        .statements
        .iter()
        .map(|statement| match statement {
            Statement::CreateTable(_) => "table".to_owned(),
            Statement::CreateView(_) => "view".to_owned(),
            Statement::Set { key, value, .. } => format!("{key}={value}"),
            Statement::Inserts(inserts) => format!("insert {}", inserts.len()),
            Statement::Explain(_) => "explain".to_owned(),
        })
        .collect();
    assert_eq!(kinds, ["a=b", "table", "view", "insert 1", "insert 2", "insert 1", "explain"]);
    let first = script.inserts().next().expect("insert");
    assert_eq!(first.columns.as_deref(), Some(["b".to_owned(), "a".to_owned()].as_slice()));
    assert_eq!(first.query.text, "SELECT y, x FROM v");
    let catalog = Catalog::from_script(&script).expect("catalog");
    assert!(matches!(catalog.get("t"), Some(Relation::Table(_))));
    assert!(matches!(catalog.get("v"), Some(Relation::View(_))));
    assert!(catalog.get("T").is_none());
    assert!(catalog.not_found("T", None).to_string().contains("did you mean `t`"));
}

#[test]
fn special_forms_become_calls() {
    let check =
        |text: &str, expected: &str| assert_eq!(lowered(&format!("SELECT {text}")), format!("SELECT {expected}"));
    check("CAST(a AS DECIMAL(10, 2))", "__cast(a, 'DECIMAL(10, 2)')");
    check("TRY_CAST(a + 1 AS ROW<x INT>)", "__try_cast(a + 1, 'ROW<`x` INT>')");
    check("TIMESTAMP '2020-01-01 00:00:00.123'", "__cast('2020-01-01 00:00:00.123', 'TIMESTAMP(3)')");
    check("DATE '2020-01-01'", "__cast('2020-01-01', 'DATE')");
    check("1e3", "__cast('1e3', 'DOUBLE')");
    check("EXTRACT(DOW FROM ts)", "__extract('DOW', ts)");
    check("FLOOR(ts TO DAY)", "__floor_to(ts, 'DAY')");
    check("CEIL(x)", "ceil(x)");
    check("TIMESTAMPDIFF(MINUTES, a, b)", "timestampdiff('MINUTE', a, b)");
    check("POSITION('a' IN b)", "position('a', b)");
    check("OVERLAY(a PLACING b FROM 2 FOR 3)", "overlay(a, b, 2, 3)");
    check("SUBSTRING(a FROM 2)", "substring(a, 2)");
    check("TRIM(a)", "__trim('BOTH', a, ' ')");
    check("TRIM(LEADING 'x' FROM a)", "__trim('LEADING', a, 'x')");
    check("MAP['k', 1]", "map(make_array('k'), make_array(1))");
    check("a IS NOT JSON OBJECT", "NOT __is_json(a, 'OBJECT')");
    check("INTERVAL '1 12:00' DAY TO MINUTE", "INTERVAL '129600000 milliseconds'");
    check(
        "JSON_VALUE(a, 'lax $.b' RETURNING INT DEFAULT 0 ON EMPTY ERROR ON ERROR)",
        "__json_value(a, 'lax $.b', 'INT', 'DEFAULT', 0, 'ERROR', NULL)",
    );
    check("JSON_EXISTS(a, '$.b')", "__json_exists(a, '$.b', 'FALSE')");
    check("JSON_QUERY(a, '$.b' WITH WRAPPER)", "__json_query(a, '$.b', 'UNCONDITIONAL', 'NULL', 'NULL')");
}

#[test]
fn window_table_functions_become_subqueries() {
    let check = |from: &str, spec: &str, rest: &str, source: &str| {
        let expected = format!(
            "SELECT * FROM (SELECT *, __window_start(ts, '{spec}'{rest}) AS window_start, __window_end(ts, \
             '{spec}'{rest}) AS window_end, __window_time(ts, '{spec}'{rest}) AS window_time FROM {source})"
        );
        assert_eq!(lowered(&format!("SELECT * FROM {from}")), expected);
    };
    let minute = "INTERVAL '1' MINUTE";
    check(&format!("TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {minute}))"), "TUMBLE 0 60000 0", "", "t");
    check(
        &format!(
            "TABLE(HOP(DATA => TABLE `x y`, TIMECOL => DESCRIPTOR(ts), SLIDE => {minute}, SIZE => INTERVAL '2' MINUTES, OFFSET => INTERVAL -'1' SECOND))"
        ),
        "HOP 60000 120000 -1000",
        "",
        "`x y`",
    );
    check(
        &format!("TABLE(SESSION(TABLE t PARTITION BY (a, b), DESCRIPTOR(ts), {minute}))"),
        "SESSION 0 60000 0",
        ", a, b",
        "t",
    );
    check(
        &format!("TABLE(CUMULATE((SELECT * FROM t), DESCRIPTOR(ts), {minute}, INTERVAL '1' HOUR))"),
        "CUMULATE 60000 3600000 0",
        "",
        "(SELECT * FROM t)",
    );
}

/// A script that must fail, with its code, its place and a part of its way out.
const REFUSED: &[(&str, Code, &str, &str)] = &[
    ("CREATE TABLE t (a TEXT)", Code::SqlSyntax, "line 1, column 19", "STRING"),
    ("CREATE TABLE t (a INT,\n a STRING)", Code::SqlInvalid, "line 2, column 2", "rename"),
    ("CREATE TABLE t (a INT METADATA FROM 'x')", Code::SqlUnsupported, "line 1, column 23", "plain column"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a))", Code::SqlUnsupported, "line 1, column 24", "NOT ENFORCED"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", Code::SqlInvalid, "line 1, column 37", "columns are a"),
    ("CREATE TABLE t (a INT, WATERMARK FOR ts AS a)", Code::SqlInvalid, "line 1, column 38", "columns are a"),
    ("CREATE TABLE t (a INT) PARTITIONED BY (b)", Code::SqlInvalid, "line 1, column 40", "columns are a"),
    ("CREATE TABLE t (a INT) WITH ('k' = 'v', 'k' = 'w')", Code::SqlInvalid, "line 1, column 41", "one of them"),
    ("CREATE TABLE t (a INT) WITH (k = 'v')", Code::SqlSyntax, "line 1, column 30", ""),
    ("CREATE TABLE t LIKE s", Code::SqlUnsupported, "line 1, column 16", "write out"),
    ("CREATE TABLE t (a AS 1)", Code::SqlInvalid, "line 1, column 17", "declare"),
    ("CREATE TABLE c.d.t (a INT)", Code::SqlUnsupported, "line 1, column 14", "without catalog"),
    ("CREATE FUNCTION f AS 'x'", Code::SqlUnsupported, "line 1, column 1", "CREATE TABLE"),
    ("SELECT 1", Code::SqlUnsupported, "line 1, column 1", "INSERT INTO"),
    ("DROP TABLE t", Code::SqlUnsupported, "line 1, column 1", ""),
    ("SET a = b", Code::SqlSyntax, "line 1, column 1", "SET 'key'"),
    ("INSERT INTO t SELECT \"a\" FROM s", Code::SqlSyntax, "line 1, column 22", "backquotes"),
    ("INSERT INTO t SELECT a FROM s WHERE", Code::SqlSyntax, "line 1, column 36", "ends too early"),
    ("INSERT INTO t SELECT a::INT FROM s", Code::SqlSyntax, "line 1, column 23", "CAST"),
    ("INSERT INTO t SELECT CAST(a AS MULTISET<INT>)", Code::SqlUnsupported, "line 1, column 32", "ARRAY"),
    ("INSERT INTO t SELECT /*+ OPTIONS('a'='b') */ a FROM s", Code::SqlUnsupported, "line 1, column 22", "WITH"),
    (
        "INSERT INTO t SELECT COUNT(*) FROM s GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
        Code::SqlUnsupported,
        "line 1, column 47",
        "TABLE(TUMBLE",
    ),
    (
        "INSERT INTO t SELECT HOP_START(ts, INTERVAL '1' DAY) FROM s",
        Code::SqlUnsupported,
        "line 1, column 22",
        "TABLE(HOP",
    ),
    (
        "INSERT INTO t SELECT * FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '3' MINUTE))",
        Code::SqlSyntax,
        "line 1, column 85",
        "multiple",
    ),
    (
        "INSERT INTO t SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MONTH))",
        Code::SqlSyntax,
        "line 1, column 67",
        "days",
    ),
    (
        "INSERT INTO t SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts)))",
        Code::SqlSyntax,
        "line 1, column 35",
        "SIZE",
    ),
    ("INSERT INTO t SELECT * FROM TABLE(f(a))", Code::SqlUnsupported, "line 1, column 15", "TUMBLE"),
    ("EXECUTE STATEMENT SET BEGIN END", Code::SqlSyntax, "line 1, column 1", "INSERT"),
    ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;", Code::SqlSyntax, "line 1, column 52", "too early"),
    ("INSERT OVERWRITE t SELECT 1", Code::SqlUnsupported, "line 1, column 1", "INSERT INTO"),
    ("CREATE TABLE t (a INT, b AS (SELECT 1))", Code::SqlSyntax, "line 1, column 29", ""),
    ("INSERT INTO t SELECT 'abc", Code::SqlSyntax, "line 1, column 22", ""),
];

#[test]
fn what_does_not_run_is_refused_with_place_reason_and_alternative() {
    for (text, code, place, way_out) in REFUSED {
        let error = match parse_script(text) {
            Err(error) => error,
            Ok(_) => panic!("accepted: {text}"),
        };
        assert_eq!(error.code, *code, "{text}: {error}");
        assert_eq!(error.place, [*place], "{text}: {error}");
        assert!(error.way_out.as_deref().unwrap_or_default().contains(way_out), "{text}: {error}");
    }
}

#[test]
fn deep_and_long_texts_are_refused_without_exhausting_the_stack() {
    let deep = [
        format!("INSERT INTO t SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("INSERT INTO t SELECT 1{}", "+1".repeat(60_000)),
        format!("INSERT INTO t SELECT {}1", "NOT ".repeat(30_000)),
        format!("INSERT INTO t SELECT {}1", "- ".repeat(60_000)),
        format!("INSERT INTO t SELECT {}", "CASE WHEN ".repeat(3_000)),
        format!("INSERT INTO t SELECT 1{}", " UNION ALL SELECT 1".repeat(20_000)),
        format!("INSERT INTO t SELECT * FROM {}", "(SELECT * FROM ".repeat(2_000)),
        format!("INSERT INTO t SELECT {}", "SUBSTRING(".repeat(60)),
        format!("INSERT INTO t SELECT {}", "POSITION(INTERVAL(CAST(".repeat(20)),
        format!("INSERT INTO t SELECT * FROM {}", "TABLE(TUMBLE((SELECT * FROM ".repeat(300)),
        format!("CREATE TABLE t (a {}INT", "ROW<a ".repeat(10_000)),
        format!("INSERT INTO t SELECT a{}", "[1]".repeat(30_000)),
        format!("INSERT INTO t SELECT a{}", ".b".repeat(30_000)),
        format!("INSERT INTO t SELECT * FROM a{}", " JOIN b ON TRUE".repeat(20_000)),
    ];
    for text in deep {
        assert!(parse_script(&text).is_err(), "{}", &text[..60]);
    }
}

#[test]
fn faults_of_options_come_all_at_once_with_their_places() {
    const SPECS: &[OptionSpec] = &[
        OptionSpec::new("connector", OptionKind::Text, "Which connector."),
        OptionSpec::new("path", OptionKind::Text, "Where the files lie.").required(),
        OptionSpec::new("csv.header", OptionKind::Boolean, "Whether there is a header."),
    ];
    let table = only_table(
        "CREATE TABLE t (a INT) WITH (\n  'connector' = 'filesystem',\n  'csv.haeder' = 'true',\n  'csv.header' = 'yes'\n)",
    );
    let error = table.check_options(SPECS).unwrap_err();
    assert_eq!(error.code, Code::OptionInvalid);
    let lines: Vec<&str> = error.cause.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "line 3, column 3: there is no option 'csv.haeder'",
            "line 4, column 18: option 'csv.header': `yes` is neither true nor false",
            "line 1, column 14: option 'path' is missing",
        ]
    );
    assert!(error.way_out.unwrap().contains("did you mean 'csv.header'?"));
    assert!(only_table("CREATE TABLE t (a INT) WITH ('path' = 'x')").check_options(SPECS).is_ok());
}
