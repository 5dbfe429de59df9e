//! Texts that are no SQL, and values that no function expects: errors, never panics.

use proptest::prelude::*;
use streamkeeper_sql::{parse::parse_script, types::parse_type};

use crate::harness::Session;

/// Words that lead the parser deep into its forms.
const WORDS: &str = "CREATE TABLE TEMPORARY VIEW INSERT INTO SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT UNION ALL JOIN ON AS WITH \
    SET EXECUTE STATEMENT BEGIN END EXPLAIN t a 's' 1 1.5 1e3 ( ) [ ] < > >> , ; . = => + - * / || :: NOT NULL IS \
    JSON LIKE BETWEEN AND OR IN CASE WHEN THEN ELSE CAST TRY_CAST INTERVAL DAY TO SECOND MINUTES EXTRACT FLOOR CEIL \
    TRIM BOTH POSITION OVERLAY PLACING SUBSTRING FOR TUMBLE HOP SESSION CUMULATE DESCRIPTOR DATA TIMECOL SIZE \
    PARTITION PARTITIONED WATERMARK PRIMARY KEY ENFORCED CONSTRAINT COMMENT METADATA JSON_VALUE RETURNING DEFAULT \
    EMPTY ERROR TIMESTAMPADD TIMESTAMP DATE MAP ARRAY ROW MULTISET DECIMAL STRING INT OVER ROWS UNBOUNDED PRECEDING \
    DISTINCT FILTER EXISTS VALUES LATERAL UNNEST MATCH_RECOGNIZE PATTERN DEFINE QUALIFY FETCH OFFSET /* */ -- \"q\" \
    \u{1} é $ @ ? # \\";

/// Words with a blank in them.
const PHRASES: &[&str] = &["`x y`", "\n", "/*+ h */"];

fn words() -> Vec<&'static str> {
    WORDS.split(' ').chain(PHRASES.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_soup_of_words_makes_the_parser_panic(words in prop::collection::vec(prop::sample::select(words()), 0..60)) {
        let soup = words.join(" ");
        let _ = parse_script(&soup);
        let _ = parse_script(&format!("INSERT INTO t SELECT {soup}"));
        let _ = parse_script(&format!("CREATE TABLE t (a {soup}"));
        let _ = parse_type(&soup);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = parse_script(&text);
    }
}

/// Functions of texts and a number, each with every way in which they take them.
const CALLS: &[&str] = &[
    "SUBSTRING({a}, {n}, {m})",
    "LPAD({a}, MOD({n}, 100), {b})",
    "OVERLAY({a} PLACING {b} FROM {n} FOR {m})",
    "LOCATE({a}, {b}, {n})",
    "SPLIT_INDEX({a}, {b}, {n})",
    "LEFT({a}, {n})",
    "RIGHT({a}, {n})",
    "CHR({n})",
    "REGEXP_EXTRACT({a}, {b}, {n})",
    "REGEXP_REPLACE({a}, {b}, {a})",
    "JSON_VALUE({a}, {b})",
    "JSON_QUERY({a}, {b})",
    "DATE_FORMAT({a}, {b})",
    "TO_TIMESTAMP({a}, {b})",
    "TO_TIMESTAMP_LTZ({n}, 0)",
    "FROM_UNIXTIME({n}, {b})",
    "UNIX_TIMESTAMP({a}, {b})",
    "CONVERT_TZ({a}, {b}, 'UTC')",
    "TIMESTAMPADD(MONTH, {n}, TO_TIMESTAMP_LTZ({m}, 3))",
    "TIMESTAMPADD(DAY, {n}, DATE '2020-01-01')",
    "FLOOR(TO_TIMESTAMP_LTZ({n}, 3) TO MONTH)",
    "CEIL(TO_TIMESTAMP_LTZ({n}, 3) TO MILLENNIUM)",
    "YEAR(TO_TIMESTAMP_LTZ({n}, 3))",
    "TIMESTAMPDIFF(YEAR, TO_TIMESTAMP_LTZ({n}, 3), TO_TIMESTAMP_LTZ({m}, 3))",
    "CAST(TO_TIMESTAMP_LTZ({n}, 3) AS STRING)",
    "TRY_CAST({a} AS DECIMAL(10, 2))",
    "TRY_CAST({a} AS DOUBLE)",
    "TRY_CAST({a} AS TIMESTAMP(3))",
    "TRY_CAST({a} AS TIME)",
    "CAST({n} AS DECIMAL(5, 2))",
    "CAST({n} AS TINYINT)",
    "ROUND({n}, {m})",
    "ROUND(CAST({n} AS DOUBLE), {m})",
    "TRUNCATE(CAST({n} AS DOUBLE), {m})",
    "ROUND(CAST({n} AS DECIMAL(30, 4)), {m})",
    "{n} / {m}",
    "MOD({n}, {m})",
    "CAST({n} AS DECIMAL(30, 10)) / CAST({m} AS DECIMAL(30, 10))",
    "ABS({n})",
    "BIN({n})",
    "HEX({n})",
    "FROM_BASE64({a})",
    "DECODE(ENCODE({a}, 'UTF-16'), 'UTF-16LE')",
    "ELEMENT(ARRAY[{n}])",
    "{a} LIKE {b} ESCAPE '!'",
    "RAND_INTEGER({n})",
    "ARRAY[{n}, {m}][{n}]",
    "EXTRACT(NANOSECOND FROM TO_TIMESTAMP_LTZ({n}, 3))",
];

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3..40_i64, Just(i64::MIN), Just(i64::MAX), Just(i64::from(i32::MIN))]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,8}", "[-0-9:. T]{0,24}", "[yMdHms'$.\\[\\]{}\"a-c*?()]{0,12}", Just("UTC".to_owned())]
}

thread_local! {
    static SESSION: Session = Session::new("Europe/Berlin");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_value_makes_a_function_panic(call in prop::sample::select(CALLS), a in text(), b in text(), n in number(), m in number()) {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        // The least BIGINT has no literal of its own.
        let literal = |number: i64| format!("CAST('{number}' AS BIGINT)");
        let expression = call
            .replace("{a}", &quoted(&a))
            .replace("{b}", &quoted(&b))
            .replace("{n}", &literal(n))
            .replace("{m}", &literal(m));
        SESSION.with(|session| {
            let _ = session.value_and_type(&expression);
        });
    }
}
