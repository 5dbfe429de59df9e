//! Errors of the parser, both ways: ours travel through sqlparser's error type as text, and its errors become ours.
//!
//! sqlparser's dialect hooks can return its own error only, which is one string; place and way out are packed into it.

use datafusion::sql::sqlparser::{parser::ParserError, tokenizer::Location};
use streamkeeper_types::{Code, Error};

use crate::position::Position;

/// Separates the parts of a packed error. No SQL text that parses has it outside of a literal.
const SEPARATOR: char = '\u{1}';

/// Valid Flink SQL that this version does not run.
pub(crate) fn refused(at: Location, cause: impl AsRef<str>, way_out: impl AsRef<str>) -> ParserError {
    packed('U', at, cause.as_ref(), way_out.as_ref())
}

/// Text that is no SQL at all.
pub(crate) fn malformed(at: Location, cause: impl AsRef<str>, way_out: impl AsRef<str>) -> ParserError {
    packed('S', at, cause.as_ref(), way_out.as_ref())
}

/// Well-formed, but something in it does not exist or does not fit.
pub(crate) fn invalid(at: Location, cause: impl AsRef<str>, way_out: impl AsRef<str>) -> ParserError {
    packed('I', at, cause.as_ref(), way_out.as_ref())
}

fn packed(kind: char, at: Location, cause: &str, way_out: &str) -> ParserError {
    let s = SEPARATOR;
    ParserError::ParserError(format!("{s}{kind}{s}{}{s}{}{s}{cause}{s}{way_out}", at.line, at.column))
}

/// The error as users see it. `fallback` is the place of errors that carry none.
pub(crate) fn into_error(error: ParserError, fallback: Position) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => fallback
            .error(Code::SqlSyntax, "the statement is nested too deeply")
            .way_out("move inner parts into views: CREATE TEMPORARY VIEW v AS SELECT …"),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            unpack(&text).unwrap_or_else(|| from_sqlparser(&text, fallback))
        }
    }
}

fn unpack(text: &str) -> Option<Error> {
    let mut parts = text.strip_prefix(SEPARATOR)?.splitn(5, SEPARATOR);
    let code = match parts.next()? {
        "U" => Code::SqlUnsupported,
        "I" => Code::SqlInvalid,
        _ => Code::SqlSyntax,
    };
    let (line, column) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let error = Position::from(Location { line, column }).error(code, parts.next()?);
    Some(match parts.next()? {
        "" => error,
        way_out => error.way_out(way_out),
    })
}

fn from_sqlparser(text: &str, fallback: Position) -> Error {
    let (message, position) = match text.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, read_place(place).unwrap_or(fallback)),
        None => (text, fallback),
    };
    let message = message.replace("Expected: ", "expected ").replace(", found: ", ", found ");
    let error = position.error(Code::SqlSyntax, message.trim());
    match message.rsplit_once("found ") {
        Some((_, "EOF")) => error.way_out("the text ends too early: is a parenthesis, quote or END missing?"),
        Some((_, word)) if word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            error.way_out(format!("if {word} is a name, put it into backquotes: `{word}`"))
        }
        _ => error,
    }
}

fn read_place(place: &str) -> Option<Position> {
    let (line, column) = place.split_once(", Column: ")?;
    Some(Position::from(Location { line: line.parse().ok()?, column: column.trim().parse().ok()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_errors_come_out_as_they_went_in() {
        let at = Location { line: 3, column: 7 };
        let error = into_error(refused(at, "no MULTISET", "write ARRAY"), Position::START);
        assert_eq!(error.code, Code::SqlUnsupported);
        assert_eq!(error.place, ["line 3, column 7"]);
        assert_eq!((error.cause.as_str(), error.way_out.as_deref()), ("no MULTISET", Some("write ARRAY")));
    }

    #[test]
    fn foreign_errors_keep_their_place() {
        let foreign = ParserError::ParserError("Expected: ), found: user at Line: 2, Column: 5".to_owned());
        let error = into_error(foreign, Position::START);
        assert_eq!(error.place, ["line 2, column 5"]);
        assert_eq!(error.cause, "expected ), found user");
        assert!(error.way_out.is_some_and(|text| text.contains("`user`")));
    }
}
