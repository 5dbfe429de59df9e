//! THE table: every function of Flink that a query may name, and how it is served.

use std::{fmt::Write, sync::Arc};

use datafusion::logical_expr::{ScalarUDF, Volatility};

use super::{
    cast, collection, conditional,
    definition::{Definition, FlinkFunction},
    encoding, json, number, regex, text, time, window,
};

/// How a function is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// By an implementation of ours, with Flink's result.
    Ours,
    /// By DataFusion's function of the same name, whose result is Flink's.
    DataFusion,
    /// By DataFusion's function of this name.
    Renamed(&'static str),
    /// By an operator: an aggregate or window function.
    Operator,
    /// Not at all; the note says what to write instead.
    Refused,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// As users write it, in capitals.
    pub name: &'static str,
    pub usage: &'static str,
    pub served: Served,
    /// The difference or limit that is worth knowing.
    pub note: &'static str,
}

/// Groups of ours, in the order of the reference.
fn ours() -> [(&'static str, &'static [Definition]); 15] {
    [
        ("Texts", &text::FUNCTIONS),
        ("Regular expressions", &regex::FUNCTIONS),
        ("Digests and encodings", &encoding::FUNCTIONS),
        ("JSON", &json::FUNCTIONS),
        ("Parts and arithmetic of times", &time::PARTS),
        ("Times from texts and numbers", &time::CONVERSIONS),
        ("The clock", &time::CLOCK),
        ("Arithmetic", &number::ARITHMETIC),
        ("Rounding", &number::ROUNDING),
        ("Mathematics", &number::DOUBLE),
        ("Integers as texts", &number::INTEGER),
        ("Conversion", &cast::FUNCTIONS),
        ("Conditions", &conditional::FUNCTIONS),
        ("Collections", &collection::FUNCTIONS),
        ("Window columns", &window::FUNCTIONS),
    ]
}

const fn row(name: &'static str, usage: &'static str, served: Served, note: &'static str) -> Row {
    Row { name, usage, served, note }
}

/// What we do not serve ourselves.
const OTHERS: [Row; 39] = [
    row("UPPER", "UPPER(text STRING) → STRING", Served::DataFusion, ""),
    row("LOWER", "LOWER(text STRING) → STRING", Served::DataFusion, ""),
    row("INITCAP", "INITCAP(text STRING) → STRING", Served::DataFusion, ""),
    row("REVERSE", "REVERSE(text STRING) → STRING", Served::DataFusion, ""),
    row("REPLACE", "REPLACE(text STRING, old STRING, new STRING) → STRING", Served::DataFusion, ""),
    row("TRANSLATE", "TRANSLATE(text STRING, from STRING, to STRING) → STRING", Served::DataFusion, ""),
    row("STARTSWITH", "STARTSWITH(text STRING, start STRING) → BOOLEAN", Served::Renamed("starts_with"), ""),
    row("ENDSWITH", "ENDSWITH(text STRING, end STRING) → BOOLEAN", Served::Renamed("ends_with"), ""),
    row("MD5", "MD5(text STRING) → STRING", Served::DataFusion, ""),
    row("NULLIF", "NULLIF(x, y) → type of x", Served::DataFusion, ""),
    row("UUID", "UUID() → STRING", Served::DataFusion, ""),
    row("ARRAY_CONTAINS", "ARRAY_CONTAINS(array, x) → BOOLEAN", Served::Renamed("array_has"), ""),
    row("ARRAY_DISTINCT", "ARRAY_DISTINCT(array) → ARRAY", Served::DataFusion, ""),
    row("ARRAY_POSITION", "ARRAY_POSITION(array, x) → INT", Served::DataFusion, "NULL, not 0, if x is not there."),
    row("ARRAY_REVERSE", "ARRAY_REVERSE(array) → ARRAY", Served::DataFusion, ""),
    row("ARRAY_SLICE", "ARRAY_SLICE(array, start INT [, end INT]) → ARRAY", Served::DataFusion, ""),
    row(
        "MAP_FROM_ARRAYS",
        "MAP_FROM_ARRAYS(keys, values) → MAP",
        Served::Renamed("map"),
        "A key that comes twice fails the job.",
    ),
    row("MAP_KEYS", "MAP_KEYS(map) → ARRAY", Served::DataFusion, ""),
    row("MAP_VALUES", "MAP_VALUES(map) → ARRAY", Served::DataFusion, ""),
    row("ARRAY[…]", "ARRAY[x, …] → ARRAY", Served::Renamed("make_array"), ""),
    row("MAP[…]", "MAP[key, value, …] → MAP", Served::Renamed("map"), ""),
    row("array[i]", "array[i] → element", Served::Renamed("array_element"), "The first element is 1."),
    row("map[k]", "map[k], row.field", Served::Renamed("get_field"), ""),
    row("x || y", "x || y → STRING", Served::DataFusion, ""),
    row(
        "LIKE",
        "x LIKE pattern [ESCAPE c] → BOOLEAN",
        Served::DataFusion,
        "No escape character unless ESCAPE names one.",
    ),
    row(
        "x = y",
        "x = y, x < y, BETWEEN, IN, CASE x WHEN y, IS DISTINCT FROM",
        Served::Ours,
        "DOUBLE and FLOAT compare as in Java: -0.0 equals 0.0, NaN equals nothing and is neither less nor greater.",
    ),
    row("COUNT", "COUNT([DISTINCT] x | *) → BIGINT", Served::Operator, ""),
    row("SUM", "SUM(x) → type of x", Served::Operator, "Wraps. DECIMAL(p, s) gives DECIMAL(38, s)."),
    row(
        "AVG",
        "AVG(x) → type of x",
        Served::Operator,
        "Of integers cut towards zero. DECIMAL(p, s) gives DECIMAL(38, max(6, s)).",
    ),
    row("MIN", "MIN(x) → type of x", Served::Operator, ""),
    row("MAX", "MAX(x) → type of x", Served::Operator, ""),
    row("ROW_NUMBER", "ROW_NUMBER() OVER (…) → BIGINT", Served::Operator, "For deduplication."),
    row(
        "LAG",
        "LAG(x [, 1 [, default]]) OVER (PARTITION BY … ORDER BY time) → type of x",
        Served::Operator,
        "The row before. For an earlier one take LAG(x) of LAG(x) in an outer query.",
    ),
    row(
        "CURRENT_WATERMARK",
        "CURRENT_WATERMARK(time)",
        Served::Refused,
        "Window aggregates drop late rows by themselves.",
    ),
    row(
        "TUMBLE",
        "GROUP BY TUMBLE(time, size)",
        Served::Refused,
        "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), size)); so with HOP and SESSION.",
    ),
    row(
        "LISTAGG",
        "LISTAGG(x)",
        Served::Refused,
        "Insert the single values, SELECT DISTINCT key, x, and join them where they are read; MIN and MAX give one of them.",
    ),
    row(
        "COLLECT",
        "COLLECT(x)",
        Served::Refused,
        "Write SELECT key, x, COUNT(*) … GROUP BY key, x: a row for each member of the multiset.",
    ),
    row("JSON_OBJECT", "JSON_OBJECT(…)", Served::Refused, "Build the text with CONCAT."),
    row("JSON_ARRAY", "JSON_ARRAY(…)", Served::Refused, "Build the text with CONCAT."),
];

/// Every row of the table: ours first, by group.
pub fn rows() -> impl Iterator<Item = Row> {
    let ours = ours().into_iter().flat_map(|(_, group)| group).map(of_definition);
    ours.chain(OTHERS)
}

fn of_definition(definition: &'static Definition) -> Row {
    let name = definition.usage.split(['(', ' ']).next().unwrap_or(definition.name);
    Row { name, usage: definition.usage, served: Served::Ours, note: definition.note }
}

/// Every scalar function that a query can reach, under the name by which DataFusion looks it up. Later ones win.
#[must_use]
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    let theirs = datafusion::functions::all_default_functions()
        .into_iter()
        .chain(datafusion::functions_nested::all_default_nested_functions())
        .filter(|udf| is_offered(udf));
    let ours =
        ours().into_iter().flat_map(|(_, group)| group).map(|definition| Arc::new(FlinkFunction::udf(definition)));
    theirs.chain(ours).collect()
}

/// DataFusion's functions that read its clock or draw its numbers are left out: ours do. So are those that only its
/// optimiser can run.
fn is_offered(udf: &ScalarUDF) -> bool {
    match udf.name() {
        "uuid" => true,
        "coalesce" | "nvl" | "nvl2" => false,
        _ => udf.signature().volatility == Volatility::Immutable,
    }
}

/// Other names of Flink for DataFusion's functions.
pub(crate) const ALIASES: [(&str, &str); 3] =
    [("startswith", "starts_with"), ("endswith", "ends_with"), ("map_from_arrays", "map")];

/// Whether a name is one that Flink has and we refuse, with what to write instead.
#[must_use]
pub fn refusal(name: &str) -> Option<&'static str> {
    OTHERS.iter().find(|row| row.served == Served::Refused && row.name.eq_ignore_ascii_case(name)).map(|row| row.note)
}

/// The reference page, `docs/reference/sql-functions.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# SQL functions\n\nGenerated from the table in `runtime/sql/src/functions`; do not edit. Functions have Flink's \
         names and Flink's results; where a result differs, the last column says how.\n",
    );
    for (title, group) in ours() {
        section(&mut page, title, group.iter().map(of_definition));
    }
    section(&mut page, "Served by DataFusion, by operators, or refused", OTHERS.into_iter());
    page
}

fn section(page: &mut String, title: &str, rows: impl Iterator<Item = Row>) {
    let cell = |text: &str| text.replace('|', "\\|");
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {title}\n\n| function | served | remark |\n| --- | --- | --- |\n");
    for row in rows {
        let served = match row.served {
            Served::Ours => "yes".to_owned(),
            Served::DataFusion => "yes, as DataFusion's".to_owned(),
            Served::Renamed(name) => format!("yes, as DataFusion's `{name}`"),
            Served::Operator => "yes, as an operator".to_owned(),
            Served::Refused => "no".to_owned(),
        };
        let _ = writeln!(page, "| `{}` | {served} | {} |", cell(row.usage), cell(row.note));
    }
}
