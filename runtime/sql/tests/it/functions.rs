//! What each function gives, by tables of expression and result. Expected values are written by hand from Flink's
//! documented and measured behaviour.

use streamkeeper_sql::functions::{Served, reference_markdown, rows};
use streamkeeper_types::Code;

use crate::harness::Session;

/// Checks rows of expression and result, all before failing.
fn check_in(zone: &str, table: &[(&str, &str)]) {
    let session = Session::new(zone);
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(expression, expected)| match session.value_and_type(expression) {
            Ok((value, _)) if value == *expected => None,
            Ok((value, _)) => Some(format!("{expression}: expected {expected}, got {value}")),
            Err(error) => Some(format!("{expression}: expected {expected}, got {error}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

fn check(table: &[(&str, &str)]) {
    check_in("UTC", table);
}

fn check_types(table: &[(&str, &str)]) {
    let session = Session::new("UTC");
    for (expression, expected) in table {
        match session.value_and_type(expression) {
            Ok((_, data_type)) => assert_eq!(data_type, *expected, "{expression}"),
            Err(error) => panic!("{expression}: {error}"),
        }
    }
}

fn check_errors(table: &[(&str, Code, &str)]) {
    let session = Session::new("UTC");
    for (expression, code, part) in table {
        match session.value_and_type(expression) {
            Ok((value, _)) => panic!("{expression} gives {value}"),
            Err(error) => {
                assert_eq!(error.code, *code, "{expression}: {error}");
                assert!(error.to_string().contains(part), "{expression}: {error}");
            }
        }
    }
}

const NO_TEXT: &str = "CAST(NULL AS STRING)";
const NO_INT: &str = "CAST(NULL AS INT)";

#[test]
fn texts() {
    check(&[
        ("CONCAT('a', 'b', 'c')", "abc"),
        (&format!("CONCAT('a', {NO_TEXT})"), "NULL"),
        (&format!("CONCAT_WS('-', 'a', {NO_TEXT}, 'b')"), "a-b"),
        (&format!("CONCAT_WS({NO_TEXT}, 'a', 'b')"), "NULL"),
        ("'a' || 'b'", "ab"),
        (&format!("'a' || {NO_TEXT}"), "NULL"),
        ("SUBSTRING('hello' FROM 2 FOR 3)", "ell"),
        ("SUBSTRING('hello', -3)", "llo"),
        ("SUBSTR('hello', 0, 2)", "he"),
        ("SUBSTRING('häßlich', 2, 3)", "äßl"),
        ("SUBSTRING('abc', 9)", ""),
        ("TRIM('  a ')", "a"),
        ("TRIM(LEADING 'x' FROM 'xxaxx')", "axx"),
        ("TRIM(TRAILING 'x' FROM 'xxaxx')", "xxa"),
        ("LTRIM('  a ')", "a "),
        ("RTRIM('  a ')", "  a"),
        ("BTRIM('xxaxx', 'x')", "a"),
        ("UPPER('aß')", "ASS"),
        ("LOWER('ÄB')", "äb"),
        ("INITCAP('hello wORLD')", "Hello World"),
        ("LPAD('hi', 4, '??')", "??hi"),
        ("LPAD('hi', 1, '??')", "h"),
        ("RPAD('hi', 5, 'ab')", "hiaba"),
        ("LPAD('hi', -1, '?')", "NULL"),
        ("LPAD('hi', 3, '')", "NULL"),
        ("REPEAT('ab', 3)", "ababab"),
        ("REPEAT('ab', -1)", ""),
        ("REVERSE('abc')", "cba"),
        ("REPLACE('banana', 'an', 'x')", "bxxa"),
        ("OVERLAY('xxxxxtest' PLACING 'xxxx' FROM 6)", "xxxxxxxxx"),
        ("OVERLAY('xxxxxtest' PLACING 'xxxx' FROM 6 FOR 2)", "xxxxxxxxxst"),
        ("OVERLAY('abc' PLACING 'x' FROM 5)", "abc"),
        ("POSITION('l' IN 'hello')", "3"),
        ("POSITION('z' IN 'hello')", "0"),
        ("LOCATE('l', 'hello', 4)", "4"),
        ("INSTR('hello', 'lo')", "4"),
        ("CHAR_LENGTH('häß')", "3"),
        ("CHARACTER_LENGTH('')", "0"),
        ("LEFT('hello', 2)", "he"),
        ("LEFT('hello', -1)", ""),
        ("RIGHT('hello', 2)", "lo"),
        ("ASCII('abc')", "97"),
        ("ASCII('')", "0"),
        ("CHR(353)", "a"),
        ("SPLIT_INDEX('a,b,c', ',', 1)", "b"),
        ("SPLIT_INDEX('a,b,c', ',', 3)", "NULL"),
        ("SPLIT_INDEX('a,b,c', ',', -1)", "NULL"),
        ("SPLIT_INDEX('GET /a?b HTTP', ' ', 1)", "/a?b"),
        ("IS_ALPHA('abc')", "true"),
        ("IS_ALPHA('ab1')", "false"),
        ("IS_DIGIT('123')", "true"),
        (&format!("IS_DIGIT({NO_TEXT})"), "false"),
        ("STARTSWITH('abc', 'ab')", "true"),
        ("ENDSWITH('abc', 'bc')", "true"),
        ("BIN(5)", "101"),
        ("HEX(255)", "FF"),
        ("HEX('ab')", "6162"),
    ]);
}

#[test]
fn digests_and_encodings() {
    check(&[
        ("MD5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
        ("SHA1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("SHA256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("TO_BASE64('hello')", "aGVsbG8="),
        ("FROM_BASE64('aGVsbG8=')", "hello"),
        ("DECODE(ENCODE('ä', 'UTF-16LE'), 'UTF-16LE')", "ä"),
        ("CHAR_LENGTH(UUID())", "36"),
    ]);
}

#[test]
fn regular_expressions() {
    check(&[
        ("REGEXP('foobar', 'o+')", "true"),
        ("REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)", "bar"),
        ("REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)')", "foothebar"),
        ("REGEXP_EXTRACT('foo', 'x')", "NULL"),
        ("REGEXP_EXTRACT('foo', '(o)', 7)", "NULL"),
        ("REGEXP_REPLACE('foobar', 'oo|ar', '')", "fb"),
        ("REGEXP_REPLACE('2020-05-15', '(\\d+)-(\\d+)', '$2/$1')", "05/2020-15"),
        ("REGEXP_REPLACE('abc', 'b', '\\$')", "a$c"),
        ("REGEXP_COUNT('aaab', 'a')", "3"),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", "true"),
        ("'abc' LIKE 'a!%c' ESCAPE '!'", "false"),
        ("'a\\bc' LIKE 'a\\b%'", "true"),
        ("'abc' NOT LIKE '_b_'", "false"),
    ]);
    check_errors(&[
        ("REGEXP('a', '(?=x)')", Code::SqlInvalid, "regular expression"),
        ("REGEXP('a', '(')", Code::SqlInvalid, ""),
    ]);
}

#[test]
fn json() {
    check(&[
        ("JSON_VALUE('{\"a\": true}', '$.a')", "true"),
        ("JSON_VALUE('{\"a\": 1.5}', '$.a')", "1.5"),
        ("JSON_VALUE('{\"a\": \"x\"}', '$.a')", "x"),
        ("JSON_VALUE('{\"a\": {\"b\": [1, 7]}}', '$.a.b[1]' RETURNING INT) + 1", "8"),
        ("JSON_VALUE('{\"a\": 2}', '$.a' RETURNING DOUBLE)", "2.0"),
        ("JSON_VALUE('{}', '$.a' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR)", "r"),
        ("JSON_VALUE('{}', 'lax $.a' DEFAULT 'e' ON EMPTY DEFAULT 'r' ON ERROR)", "e"),
        ("JSON_VALUE('no json', 'lax $.a' DEFAULT 'e' ON EMPTY)", "e"),
        ("JSON_VALUE('{\"a\": null}', '$.a' DEFAULT 'e' ON EMPTY)", "e"),
        ("JSON_VALUE('{\"a\": [1]}', '$.a')", "NULL"),
        ("JSON_VALUE('{\"a\": \"x\"}', '$.a' RETURNING INT DEFAULT 3 ON ERROR)", "3"),
        ("JSON_EXISTS('{\"a\": 1}', '$.a')", "true"),
        ("JSON_EXISTS('{\"a\": 1}', '$.b' TRUE ON ERROR)", "true"),
        ("JSON_EXISTS('{\"a\": 1}', 'lax $.b')", "false"),
        ("JSON_QUERY('{\"a\": {\"b\": 1}}', '$.a')", "{\"b\":1}"),
        ("JSON_QUERY('{\"a\": 1}', '$.a' WITH WRAPPER)", "[1]"),
        ("JSON_QUERY('{\"a\": [1]}', '$.a' WITH CONDITIONAL WRAPPER)", "[1]"),
        ("JSON_QUERY('{}', '$.a' EMPTY OBJECT ON ERROR)", "{}"),
        ("'{}' IS JSON", "true"),
        ("'{}' IS JSON ARRAY", "false"),
        ("'x' IS NOT JSON", "true"),
        (&format!("{NO_TEXT} IS JSON"), "false"),
    ]);
    check_errors(&[
        ("JSON_VALUE('{}', '$.a' ERROR ON ERROR)", Code::Evaluation, "$.a"),
        ("JSON_VALUE('{}', 'a.b')", Code::SqlInvalid, "$"),
    ]);
}

#[test]
fn parts_of_times() {
    check(&[
        ("HOUR(TIMESTAMP '1994-09-27 13:14:15')", "13"),
        ("MINUTE(TIMESTAMP '1994-09-27 13:14:15')", "14"),
        ("SECOND(TIMESTAMP '1994-09-27 13:14:15.9')", "15"),
        ("YEAR(DATE '1994-09-27')", "1994"),
        ("QUARTER(DATE '1994-09-27')", "3"),
        ("MONTH(DATE '1994-09-27')", "9"),
        ("WEEK(DATE '1994-09-27')", "39"),
        ("DAYOFYEAR(DATE '1994-09-27')", "270"),
        ("DAYOFMONTH(DATE '1994-09-27')", "27"),
        ("DAYOFWEEK(DATE '1994-09-27')", "3"),
        ("EXTRACT(DOW FROM DATE '2024-03-03')", "1"),
        ("EXTRACT(EPOCH FROM TIMESTAMP '1970-01-02 00:00:00')", "86400"),
        ("HOUR(TIMESTAMP '1969-12-31 23:00:00')", "23"),
        ("CAST(FLOOR(TIMESTAMP '2020-05-15 12:44:31.5' TO MINUTE) AS STRING)", "2020-05-15 12:44:00.000"),
        ("CAST(CEIL(TIMESTAMP '2020-05-15 12:44:31' TO HOUR) AS STRING)", "2020-05-15 13:00:00.000"),
        ("CAST(FLOOR(DATE '2020-05-15' TO MONTH) AS STRING)", "2020-05-01"),
        ("CAST(TIMESTAMPADD(WEEK, 1, DATE '2003-01-02') AS STRING)", "2003-01-09"),
        ("CAST(TIMESTAMPADD(MONTH, 1, TIMESTAMP '2020-01-31 00:00:00') AS STRING)", "2020-02-29 00:00:00.000"),
        ("TIMESTAMPDIFF(DAY, TIMESTAMP '2003-01-02 10:00:00', TIMESTAMP '2003-01-03 10:00:00')", "1"),
        ("TIMESTAMPDIFF(HOUR, TIMESTAMP '2003-01-03 10:00:00', TIMESTAMP '2003-01-02 10:30:00')", "-23"),
        (
            "CAST(TIMESTAMP '2020-01-01 00:00:00' + INTERVAL '1 12:00' DAY TO MINUTE AS STRING)",
            "2020-01-02 12:00:00.000",
        ),
        ("CAST(TIMESTAMP '2020-03-31 00:00:00' - INTERVAL '1' MONTH AS STRING)", "2020-02-29 00:00:00.000"),
    ]);
}

#[test]
fn times_from_texts_and_numbers() {
    check(&[
        ("DATE_FORMAT(TIMESTAMP '2020-05-15 09:03:07', 'yyyy/MM/dd HH')", "2020/05/15 09"),
        ("DATE_FORMAT('2020-05-15 09:03:07', 'h:mm a')", "9:03 AM"),
        ("CAST(TO_TIMESTAMP('2020-05-15 09:03:07') AS STRING)", "2020-05-15 09:03:07.000"),
        ("CAST(TO_TIMESTAMP('17/May/2015:10:05:03', 'dd/MMM/yyyy:HH:mm:ss') AS STRING)", "2015-05-17 10:05:03.000"),
        ("TO_TIMESTAMP('garbage')", "NULL"),
        ("TO_TIMESTAMP('2020-13-01 00:00:00')", "NULL"),
        ("CAST(TO_DATE('2020-05-15') AS STRING)", "2020-05-15"),
        ("TO_DATE('x', 'yyyy')", "NULL"),
        ("CAST(TO_TIMESTAMP_LTZ(1500, 3) AS STRING)", "1970-01-01 00:00:01.500"),
        ("CAST(TO_TIMESTAMP_LTZ(2, 0) AS STRING)", "1970-01-01 00:00:02.000"),
        ("FROM_UNIXTIME(44)", "1970-01-01 00:00:44"),
        ("FROM_UNIXTIME(44, 'mm:ss')", "00:44"),
        ("UNIX_TIMESTAMP('1970-01-01 00:00:10')", "10"),
        ("UNIX_TIMESTAMP('x')", "-9223372036854775808"),
        ("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00"),
    ]);
    check_errors(&[
        ("DATE_FORMAT('2020-01-01', 'yyyy-QQ')", Code::SqlInvalid, "letter"),
        ("TO_TIMESTAMP_LTZ(1, 6)", Code::SqlInvalid, "precision"),
    ]);
}

#[test]
fn instants_are_shown_in_the_sessions_zone() {
    check_in(
        "Asia/Shanghai",
        &[
            ("FROM_UNIXTIME(44)", "1970-01-01 08:00:44"),
            ("CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)", "1970-01-01 08:00:00.000"),
            ("HOUR(TO_TIMESTAMP_LTZ(0, 3))", "8"),
            ("UNIX_TIMESTAMP('1970-01-01 08:00:10')", "10"),
            ("CAST(CAST(TIMESTAMP '1970-01-01 08:00:00' AS TIMESTAMP_LTZ(3)) AS TIMESTAMP(3))", "1970-01-01T08:00:00"),
            ("CAST(FLOOR(TO_TIMESTAMP_LTZ(72000000, 3) TO DAY) AS STRING)", "1970-01-02 00:00:00.000"),
        ],
    );
}

#[test]
fn numbers() {
    check(&[
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("7 % 3", "1"),
        ("MOD(-7, 3)", "-1"),
        ("2147483647 + 1", "-2147483648"),
        ("CAST(1 AS BIGINT) + 2147483647", "2147483648"),
        ("2147483647 * 2", "-2"),
        ("CAST(-2147483648 AS INT) / -1", "-2147483648"),
        ("CAST(1 AS DOUBLE) / 0", "inf"),
        ("CAST(12.34 AS DECIMAL(10, 2)) / CAST(1.5 AS DECIMAL(6, 3))", "8.226666667"),
        ("CAST(1.10 AS DECIMAL(10, 2)) + 1", "2.10"),
        ("CAST(1.10 AS DECIMAL(10, 2)) * CAST(2.5 AS DECIMAL(5, 1))", "2.750"),
        ("CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0)) + 1", "NULL"),
        ("CAST(7.5 AS DECIMAL(3, 1)) % 2", "1.5"),
        ("ABS(-5)", "5"),
        ("ABS(-1.5)", "1.5"),
        ("POWER(2, 10)", "1024.0"),
        ("SQRT(16)", "4.0"),
        ("LN(1)", "0.0"),
        ("LOG10(100)", "2.0"),
        ("LOG2(8)", "3.0"),
        ("LOG(2, 8)", "3.0"),
        ("EXP(0)", "1.0"),
        ("CEIL(1.2)", "2"),
        ("FLOOR(-1.2)", "-2"),
        ("FLOOR(CAST(-1.2 AS DOUBLE))", "-2.0"),
        ("ROUND(2.675, 2)", "2.68"),
        ("ROUND(CAST(2.675 AS DOUBLE), 2)", "2.68"),
        ("ROUND(-2.5)", "-3"),
        ("ROUND(CAST(0.1 AS DOUBLE), 2)", "0.1"),
        ("ROUND(1250, -2)", "1300"),
        ("TRUNCATE(42.345, 2)", "42.34"),
        ("TRUNCATE(-42.345)", "-42"),
        ("SIGN(-3)", "-1"),
        ("SIGN(CAST(-3.5 AS DECIMAL(3, 1)))", "-1.0"),
        ("E() > 2.7 AND PI() < 3.15", "true"),
        ("RAND() < 1 AND RAND_INTEGER(3) < 3", "true"),
        ("DEGREES(PI())", "180.0"),
    ]);
    check_types(&[
        ("1", "INT"),
        ("3000000000", "BIGINT"),
        ("1.5", "DECIMAL(2, 1)"),
        ("1e0", "DOUBLE"),
        ("1 + 1", "INT"),
        ("CAST(1 AS TINYINT) + CAST(1 AS TINYINT)", "TINYINT"),
        ("CAST(1 AS DECIMAL(10, 2)) / CAST(1 AS DECIMAL(6, 3))", "DECIMAL(20, 9)"),
        ("CAST(1 AS DECIMAL(10, 2)) + 1", "DECIMAL(13, 2)"),
        ("ROUND(CAST(1 AS DECIMAL(10, 4)), 2)", "DECIMAL(9, 2)"),
        ("YEAR(DATE '2020-01-01')", "BIGINT"),
        ("CHAR_LENGTH('a')", "INT"),
        ("IF(TRUE, 1, CAST(2 AS BIGINT))", "BIGINT"),
        ("PROCTIME()", "TIMESTAMP_LTZ(3)"),
        ("LOCALTIMESTAMP", "TIMESTAMP(3)"),
    ]);
    check_errors(&[
        ("1 / 0", Code::SqlInvalid, "NULLIF"),
        ("1 / CAST(0 AS INT)", Code::Evaluation, "division by zero"),
        ("MOD(1, 0)", Code::Evaluation, "division by zero"),
        ("1.5 / 0", Code::SqlInvalid, "division by zero"),
        ("1 = '1'", Code::SqlInvalid, "INT and STRING"),
        ("1 + 'a'", Code::SqlInvalid, "INT + STRING has no meaning"),
        ("TRUE = 1", Code::SqlInvalid, ""),
        ("1 IN ('a')", Code::SqlInvalid, "cannot be compared"),
        ("LOCALTIMESTAMP - LOCALTIMESTAMP", Code::SqlInvalid, "TIMESTAMPDIFF"),
        ("LOCALTIMESTAMP + 1", Code::SqlInvalid, "INTERVAL"),
        ("SPLIT_INDEX('a', 'b')", Code::SqlInvalid, "SPLIT_INDEX"),
        ("CHAR_LENGTH(5)", Code::SqlInvalid, "STRING"),
    ]);
}

#[test]
fn casts() {
    check(&[
        ("CAST('12.75' AS INT)", "12"),
        ("CAST(' -7 ' AS SMALLINT)", "-7"),
        ("TRY_CAST('x' AS INT)", "NULL"),
        ("TRY_CAST('300' AS TINYINT)", "NULL"),
        ("CAST(300 AS TINYINT)", "44"),
        ("CAST(12.75 AS INT)", "12"),
        ("CAST(CAST(1e10 AS DOUBLE) AS INT)", "2147483647"),
        ("CAST(1.005 AS DECIMAL(5, 2))", "1.01"),
        ("CAST(-1.005 AS DECIMAL(5, 2))", "-1.01"),
        ("CAST(12345 AS DECIMAL(3, 0))", "NULL"),
        ("CAST('1.5' AS DECIMAL(5, 0))", "2"),
        ("CAST(TRUE AS STRING)", "TRUE"),
        ("CAST('yes' AS BOOLEAN)", "true"),
        ("CAST(0 AS BOOLEAN)", "false"),
        ("CAST(TRUE AS INT)", "1"),
        ("CAST(1e0 AS STRING)", "1.0"),
        ("CAST(CAST(1.1 AS FLOAT) AS STRING)", "1.1"),
        ("CAST(1.50 AS STRING)", "1.50"),
        ("CAST('hello' AS VARCHAR(3))", "hel"),
        ("CAST('a' AS CHAR(3)) || '|'", "a  |"),
        ("CAST('2020-05-15 09:03:07.98765' AS TIMESTAMP(3))", "2020-05-15T09:03:07.987"),
        ("CAST('2020-05-15' AS DATE)", "2020-05-15"),
        ("CAST('09:03:07' AS TIME)", "09:03:07"),
        ("CAST(TIMESTAMP '2020-05-15 09:03:07' AS DATE)", "2020-05-15"),
        ("CAST(TIMESTAMP '1969-12-31 09:03:07' AS DATE)", "1969-12-31"),
        ("TRY_CAST('x' AS TIMESTAMP(3))", "NULL"),
        ("CAST(CAST('ä' AS BYTES) AS STRING)", "ä"),
    ]);
    check_errors(&[
        ("CAST('x' AS INT)", Code::Evaluation, "TRY_CAST"),
        ("CAST('300' AS TINYINT)", Code::Evaluation, "TRY_CAST"),
        ("CAST('maybe' AS BOOLEAN)", Code::Evaluation, ""),
        ("CAST('2020-02-30' AS DATE)", Code::Evaluation, ""),
        ("CAST(5 AS TIMESTAMP(3))", Code::SqlInvalid, "TO_TIMESTAMP_LTZ"),
        ("CAST(DATE '2020-01-01' AS INT)", Code::SqlInvalid, "cannot be cast"),
    ]);
}

#[test]
fn conditions_and_collections() {
    check(&[
        ("IF(1 > 2, 'a', 'b')", "b"),
        ("IF(TRUE, 1, 1 / CAST(0 AS INT))", "1"),
        (&format!("IFNULL({NO_INT}, 5)"), "5"),
        (&format!("COALESCE({NO_INT}, {NO_INT}, 7)"), "7"),
        ("NULLIF(5, 5)", "NULL"),
        ("GREATEST(1, 3, 2)", "3"),
        ("LEAST('b', 'a')", "a"),
        (&format!("GREATEST(1, {NO_INT})"), "NULL"),
        (&format!("LEAST({NO_INT}, 1)"), "NULL"),
        ("CASE WHEN 1 = 1 THEN 'x' ELSE 'y' END", "x"),
        ("CARDINALITY(ARRAY[1, 2, 3])", "3"),
        ("ARRAY[10, 20][1]", "10"),
        ("ARRAY[10, 20][3]", "NULL"),
        ("ELEMENT(ARRAY[4])", "4"),
        ("ARRAY_CONTAINS(ARRAY['a', 'b'], 'b')", "true"),
        ("MAP['a', 1, 'b', 2]['b']", "2"),
        ("CARDINALITY(MAP['a', 1])", "1"),
        ("ROW(1, 'a')", "{EXPR$0: 1, EXPR$1: a}"),
        ("5 BETWEEN 1 AND 7", "true"),
        ("2 IN (1, 2)", "true"),
        ("NULL IS NOT DISTINCT FROM NULL", "true"),
    ]);
    check_errors(&[
        ("ELEMENT(ARRAY[1, 2])", Code::Evaluation, "ELEMENT"),
        ("IF(TRUE, 1, 'a')", Code::SqlInvalid, "INT and STRING"),
    ]);
}

#[test]
fn minus_zero_equals_zero_in_every_form_of_comparison() {
    let zero = "(CAST(0 AS DOUBLE) * -1)";
    check(&[
        (&format!("{zero} = 0e0"), "true"),
        (&format!("{zero} < 0e0"), "false"),
        (&format!("{zero} IN (0e0, 5e0)"), "true"),
        (&format!("{zero} NOT IN (1e0, 5e0)"), "true"),
        (&format!("CASE {zero} WHEN 0e0 THEN 'zero' ELSE 'other' END"), "zero"),
        (&format!("NULLIF({zero}, 0e0)"), "NULL"),
        ("NULLIF(2e0, 1e0)", "2.0"),
        (&format!("0e0 BETWEEN 0e0 AND {zero}"), "true"),
        (&format!("{zero} IS NOT DISTINCT FROM 0e0"), "true"),
        ("1e0 IN (2e0, CAST(NULL AS DOUBLE))", "NULL"),
        ("CAST(NULL AS DOUBLE) IS NOT DISTINCT FROM CAST(NULL AS DOUBLE)", "true"),
        ("CAST(NULL AS DOUBLE) = 1e0", "NULL"),
    ]);
}

#[test]
fn nan_equals_nothing_and_is_neither_less_nor_greater() {
    check(&[
        ("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "false"),
        ("CAST('NaN' AS DOUBLE) <> CAST('NaN' AS DOUBLE)", "true"),
        ("CAST('NaN' AS DOUBLE) > 1", "false"),
        ("CAST('NaN' AS DOUBLE) <= 1", "false"),
        ("CAST('NaN' AS FLOAT) IN (CAST('NaN' AS FLOAT))", "false"),
        ("CAST('NaN' AS DOUBLE) BETWEEN 0 AND 5", "false"),
    ]);
}

#[test]
fn timestamps_as_texts_show_the_digits_of_their_type() {
    check(&[
        ("CAST(CAST('2020-01-02 03:04:05.678' AS TIMESTAMP(0)) AS STRING)", "2020-01-02 03:04:05"),
        ("CAST(CAST('2020-01-02 03:04:05.678' AS TIMESTAMP(1)) AS STRING)", "2020-01-02 03:04:05.6"),
        ("CAST(CAST('2020-01-02 03:04:05.678' AS TIMESTAMP(3)) AS STRING)", "2020-01-02 03:04:05.678"),
        ("CAST(CAST('2020-01-02 03:04:05.67891' AS TIMESTAMP(4)) AS STRING)", "2020-01-02 03:04:05.6789"),
        ("CAST(TIMESTAMP '2020-01-02 03:04:05' AS STRING)", "2020-01-02 03:04:05"),
        ("CAST(TIMESTAMP '2020-01-02 03:04:05.5' AS STRING)", "2020-01-02 03:04:05.5"),
    ]);
}

#[test]
fn nanoseconds_hold_fewer_years_and_say_so() {
    check(&[
        ("CAST(CAST('9999-12-31 00:00:00' AS TIMESTAMP(6)) AS STRING)", "9999-12-31 00:00:00.000000"),
        ("TRY_CAST('9999-12-31 00:00:00' AS TIMESTAMP(9))", "NULL"),
    ]);
    check_errors(&[("CAST('9999-12-31 00:00:00' AS TIMESTAMP(9))", Code::Evaluation, "TIMESTAMP(6)")]);
}

#[test]
fn a_bare_null_has_no_type() {
    check_errors(&[
        ("UPPER(NULL)", Code::SqlInvalid, "CAST(NULL AS STRING)"),
        ("ABS(NULL)", Code::SqlInvalid, "CAST(NULL AS"),
        ("SUBSTRING('a', NULL)", Code::SqlInvalid, "CAST(NULL AS"),
    ]);
    check(&[("COALESCE(NULL, 1)", "1"), ("CASE WHEN FALSE THEN 1 ELSE NULL END", "NULL")]);
}

#[test]
fn conditions_are_boolean() {
    check_errors(&[
        ("CASE WHEN 1 THEN 2 END", Code::SqlInvalid, "must be BOOLEAN"),
        ("IF(1, 2, 3)", Code::SqlInvalid, "BOOLEAN"),
        ("5 LIKE '5'", Code::SqlInvalid, "LIKE compares STRINGs, not INT"),
    ]);
}

#[test]
fn forms_that_flink_has_and_datafusion_lacks() {
    check(&[
        ("5 BETWEEN SYMMETRIC 7 AND 1", "true"),
        ("5 NOT BETWEEN SYMMETRIC 7 AND 1", "false"),
        ("8 NOT BETWEEN SYMMETRIC 7 AND 1", "true"),
        ("5 BETWEEN ASYMMETRIC 7 AND 1", "false"),
        ("U&'h\\00e4'", "hä"),
        ("CAST(ARRAY_PREPEND(ARRAY[2, 3], 1) AS STRING)", "[1, 2, 3]"),
        ("CAST(ARRAY_PREPEND(ARRAY[2], CAST(NULL AS INT)) AS STRING)", "[NULL, 2]"),
        ("CAST(SPLIT('a,b,,', ',') AS STRING)", "[a, b, , ]"),
        ("CAST(SPLIT('äb', '') AS STRING)", "[ä, b]"),
        ("SPLIT(CAST(NULL AS STRING), ',')", "NULL"),
        ("MAP_FROM_ARRAYS(ARRAY['a', 'b'], ARRAY[1, 2])['b']", "2"),
        ("SHA2('abc', 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("SHA2('abc', 224)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        ("TYPEOF(1)", "INT NOT NULL"),
        ("TYPEOF(CAST(NULL AS DECIMAL(5, 2)))", "DECIMAL(5, 2)"),
    ]);
    check_errors(&[("SHA2('abc', 100)", Code::SqlInvalid, "224, 256, 384 or 512")]);
}

#[test]
fn fields_of_any_expression_can_be_taken() {
    check(&[
        ("CAST(ROW(1, 'b') AS ROW<x INT, y STRING>).y", "b"),
        ("ARRAY[CAST(ROW(1, 'b') AS ROW<x INT, y STRING>)][1].y", "b"),
        ("MAP['k', CAST(ROW(1, CAST(ROW(2) AS ROW<z INT>)) AS ROW<x INT, y ROW<z INT>>)]['k'].y.z", "2"),
    ]);
}

#[test]
fn nested_values_as_texts() {
    check(&[
        ("CAST(ARRAY[1, 2] AS STRING)", "[1, 2]"),
        ("CAST(ARRAY['a', CAST(NULL AS STRING)] AS STRING)", "[a, NULL]"),
        ("CAST(MAP['a', 1, 'b', 2] AS STRING)", "{a=1, b=2}"),
        ("CAST(ROW(1, 'b', TRUE) AS STRING)", "(1, b, TRUE)"),
        ("CAST(ARRAY[ROW(1, ARRAY[2e0])] AS STRING)", "[(1, [2.0])]"),
    ]);
}

#[test]
fn the_clock_is_the_one_that_the_task_sets() {
    streamkeeper_sql::functions::clock::set_now(1_500);
    check_in(
        "Europe/Berlin",
        &[
            ("CAST(PROCTIME() AS STRING)", "1970-01-01 01:00:01.500"),
            ("CAST(CURRENT_TIMESTAMP AS STRING)", "1970-01-01 01:00:01.500"),
            ("CAST(NOW() AS STRING)", "1970-01-01 01:00:01.500"),
            ("CAST(LOCALTIMESTAMP AS STRING)", "1970-01-01 01:00:01.500"),
            ("CAST(CURRENT_DATE AS STRING)", "1970-01-01"),
            ("UNIX_TIMESTAMP()", "1"),
        ],
    );
}

#[test]
fn the_reference_names_every_function_once() {
    let mut usages: Vec<&str> = rows().map(|row| row.usage).collect();
    let count = usages.len();
    usages.sort_unstable();
    usages.dedup();
    assert_eq!(usages.len(), count);
    let page = reference_markdown();
    assert!(rows().all(|row| page.contains(&row.usage.replace('|', "\\|"))));
    assert!(rows().filter(|row| row.served == Served::Refused).all(|row| !row.note.is_empty()));
}

#[test]
fn unknown_functions_name_the_nearest() {
    let functions = streamkeeper_sql::functions::FlinkFunctions::new();
    assert!(functions.not_found("splt_index").to_string().contains("SPLIT_INDEX"));
    assert_eq!(functions.not_found("listagg").code, Code::SqlUnsupported);
    assert!(functions.scalar("Regexp_Extract").is_some());
}
