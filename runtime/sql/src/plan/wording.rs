//! What DataFusion's planner says, in the words of Flink's SQL.

use std::sync::LazyLock;

use arrow::datatypes::DataType;
use regex::{Captures, Regex};

use crate::types::SqlType;

/// A message as a person can use it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Worded {
    pub(super) cause: String,
    pub(super) way_out: Option<String>,
}

impl Worded {
    fn new(cause: impl Into<String>, way_out: &str) -> Self {
        Self { cause: cause.into(), way_out: Some(way_out.to_owned()) }
    }
}

/// Rewords a message of DataFusion, or of ours that came through it.
pub(super) fn worded(message: &str) -> Worded {
    let text = clean(message);
    if let Some(found) = common_mistake(&text) {
        return found;
    }
    match text.split_once("; write ") {
        Some((cause, signature)) => {
            Worded { cause: in_sql(cause), way_out: Some(format!("write {}", signature.trim_end_matches('.'))) }
        }
        None => Worded { cause: in_sql(&text), way_out: None },
    }
}

fn common_mistake(text: &str) -> Option<Worded> {
    if text.contains("must appear in the GROUP BY clause") {
        let column = text.split('"').nth(1).or_else(|| text.split("references: ").nth(1)?.split(" must appear").next());
        let name = in_sql(column?.trim());
        let name = name.rsplit('.').next().unwrap_or(&name);
        let way_out = format!("add it to GROUP BY, or aggregate it: MAX({name})");
        return Some(Worded::new(format!("`{name}` is neither grouped nor aggregated"), &way_out));
    }
    if let Some((_, rest)) = text.split_once("Cannot create filter with non-boolean predicate") {
        let given = in_sql(rest.rsplit("returning ").next().unwrap_or_default());
        let cause = format!("a condition must be BOOLEAN, but is {given}");
        return Some(Worded::new(cause, "compare it with a value: x <> 0"));
    }
    if let Some((_, rest)) = text.split_once("Cannot coerce arithmetic expression ") {
        let operation = in_sql(rest.split(" to valid types").next().unwrap_or(rest));
        return Some(Worded::new(format!("{operation} has no meaning"), "CAST one of them to the other's type"));
    }
    None
}

/// Without DataFusion's prefixes, its list of candidates, its dumps of syntax trees and its request to report a bug.
fn clean(message: &str) -> String {
    let mut text = message;
    for prefix in
        ["Error during planning: ", "This feature is not implemented: ", "Internal error: ", "Execution error: "]
    {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    if let Some((_, ours)) = text.split_once("user-defined coercion failed with: Error during planning: ") {
        text = ours;
    }
    for end in ["\nThis issue was likely caused by", " No function matches the given name"] {
        text = text.split(end).next().unwrap_or(text);
    }
    if text.contains("span: Span(") {
        text = text.split(": ").next().unwrap_or(text);
    }
    text.trim().trim_end_matches('.').to_owned()
}

/// Literals and types as SQL has them: `Int32(10)` is `10`, `Utf8` is `STRING`.
pub(super) fn in_sql(text: &str) -> String {
    static TYPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"\b(Int8|Int16|Int32|Int64|Float32|Float64|Utf8|Date32|Boolean|Binary|Timestamp\((ms|µs|ns)\))")
            .ok()
    });
    replace(&TYPE, &name_in_sql(text), |found| {
        found[1].parse::<DataType>().map_or_else(|_| found[1].to_owned(), |known| SqlType::name_of(&known))
    })
}

/// The name that DataFusion gives to a column that the text does not name, with SQL's literals: `count(Int64(1))` is
/// `COUNT(*)`.
pub(super) fn name_in_sql(name: &str) -> String {
    static LITERAL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(Int8|Int16|Int32|Int64|Float32|Float64|Boolean|Utf8)\(([^()]*)\)").ok());
    replace(&LITERAL, &name.replace("count(Int64(1))", "COUNT(*)"), |found| match &found[1] {
        "Utf8" => format!("'{}'", found[2].trim_matches('"')),
        _ => found[2].to_owned(),
    })
}

fn replace(pattern: &Option<Regex>, text: &str, with: impl Fn(&Captures) -> String) -> String {
    match pattern {
        Some(pattern) => pattern.replace_all(text, |found: &Captures| with(found)).into_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_datafusion_wraps_around_a_cause_is_left_out() {
        let ours = "argument 1 of HOUR must be TIMESTAMP, but is STRING";
        let wrapped = format!(
            "Execution error: Function 'hour' user-defined coercion failed with: Error during planning: {ours}; write \
             HOUR(time TIMESTAMP) → BIGINT. No function matches the given name and argument types 'hour(Utf8)'.\n\t\
             Candidate functions:\n\thour(UserDefined)"
        );
        assert_eq!(worded(&wrapped), Worded::new(ours, "write HOUR(time TIMESTAMP) → BIGINT"));
        let dump = "Dot access not supported for non-string expr: Identifier(Ident { value: \"y\", span: Span(Location(3,8)) })";
        assert_eq!(worded(dump).cause, "Dot access not supported for non-string expr");
        assert_eq!(worded("Error during planning: no such thing.").cause, "no such thing");
        assert_eq!(worded("Internal error: x.\nThis issue was likely caused by a bug").cause, "x");
    }

    #[test]
    fn a_column_that_is_not_grouped_is_told_with_both_ways_out() {
        let theirs = "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \
                      \"t.price\" must appear in the GROUP BY clause or must be part of an aggregate function, currently \
                      only \"t.k, count(Int64(1))\" appears in the SELECT clause satisfies this requirement";
        let found = worded(theirs);
        assert_eq!(
            found,
            Worded::new("`price` is neither grouped nor aggregated", "add it to GROUP BY, or aggregate it: MAX(price)")
        );
    }

    #[test]
    fn types_and_literals_are_shown_as_sql_has_them() {
        assert_eq!(in_sql("Int32 + Utf8"), "INT + STRING");
        assert_eq!(in_sql("sum(t.a) > Int64(10)"), "sum(t.a) > 10");
        assert_eq!(in_sql("x = Utf8(\"a\")"), "x = 'a'");
        assert_eq!(in_sql("count(Int64(1))"), "COUNT(*)");
        let found =
            worded("Error during planning: Cannot create filter with non-boolean predicate 't.k' returning Int64");
        assert_eq!(found.cause, "a condition must be BOOLEAN, but is BIGINT");
    }
}
