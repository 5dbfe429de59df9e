//! The clauses of Flink's JSON functions, spelt out as arguments:
//! `__json_value(text, path, type, on_empty, empty_default, on_error, error_default)`,
//! `__json_query(text, path, wrapper, on_empty, on_error)` and `__json_exists(text, path, on_error)`.

use datafusion::sql::sqlparser::{
    ast::Expr,
    parser::{Parser, ParserError},
    tokenizer::{Location, Token},
};

use super::{
    build::{call, null, text},
    cursor::{accept_word, accept_words, expect_word, location},
    fault::{malformed, refused},
};
use crate::types::{SqlType, parse_data_type};

type Parsed = Result<Expr, ParserError>;

/// What a function gives instead of a value: `NULL`, `ERROR` or `DEFAULT`, and the default's expression.
type Fallback = (&'static str, Expr);

/// Behind `JSON_VALUE(`.
pub(super) fn value(parser: &mut Parser, at: Location) -> Parsed {
    let (document, path) = subject(parser)?;
    let mut data_type = SqlType::STRING;
    if accept_word(parser, "RETURNING") {
        let place = location(parser);
        data_type = parse_data_type(parser)?;
        use SqlType::{BigInt, Boolean, Double, Int};
        if !matches!(data_type, SqlType::Varchar(_) | Boolean | Int | BigInt | Double) {
            let cause = format!("JSON_VALUE cannot return {data_type}");
            return Err(refused(place, cause, "return STRING, and CAST it"));
        }
    }
    let [empty, error] = fallbacks(parser, value_fallback)?;
    let (on_empty, empty_default) = empty.unwrap_or(("NULL", null()));
    let (on_error, error_default) = error.unwrap_or(("NULL", null()));
    let args =
        vec![document, path, text(data_type.to_string()), text(on_empty), empty_default, text(on_error), error_default];
    Ok(call(at, "__json_value", args))
}

/// Behind `JSON_QUERY(`.
pub(super) fn query(parser: &mut Parser, at: Location) -> Parsed {
    let (document, path) = subject(parser)?;
    if accept_word(parser, "RETURNING") {
        let place = location(parser);
        let data_type = parse_data_type(parser)?;
        if data_type != SqlType::STRING {
            return Err(refused(place, format!("JSON_QUERY cannot return {data_type}"), "leave RETURNING out"));
        }
    }
    let wrapper = wrapper(parser)?;
    let [empty, error] = fallbacks(parser, query_fallback)?;
    let on_empty = empty.map_or("NULL", |fallback| fallback.0);
    let on_error = error.map_or("NULL", |fallback| fallback.0);
    Ok(call(at, "__json_query", vec![document, path, text(wrapper), text(on_empty), text(on_error)]))
}

/// Behind `JSON_EXISTS(`.
pub(super) fn exists(parser: &mut Parser, at: Location) -> Parsed {
    let (document, path) = subject(parser)?;
    let on_error = ["TRUE", "FALSE", "UNKNOWN", "ERROR"].into_iter().find(|word| accept_word(parser, word));
    if on_error.is_some() {
        expect_word(parser, "ON")?;
        expect_word(parser, "ERROR")?;
    }
    parser.expect_token(&Token::RParen)?;
    Ok(call(at, "__json_exists", vec![document, path, text(on_error.unwrap_or("FALSE"))]))
}

fn subject(parser: &mut Parser) -> Result<(Expr, Expr), ParserError> {
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    Ok((document, parser.parse_expr()?))
}

fn wrapper(parser: &mut Parser) -> Result<&'static str, ParserError> {
    let wrapper = if accept_word(parser, "WITHOUT") {
        accept_word(parser, "ARRAY");
        "NONE"
    } else if accept_word(parser, "WITH") {
        let conditional = accept_word(parser, "CONDITIONAL");
        if !conditional {
            accept_word(parser, "UNCONDITIONAL");
        }
        accept_word(parser, "ARRAY");
        if conditional { "CONDITIONAL" } else { "UNCONDITIONAL" }
    } else {
        return Ok("NONE");
    };
    expect_word(parser, "WRAPPER")?;
    Ok(wrapper)
}

/// Reads `… ON EMPTY` and `… ON ERROR`, each at most once, and the closing parenthesis.
fn fallbacks(
    parser: &mut Parser,
    read: fn(&mut Parser) -> Result<Fallback, ParserError>,
) -> Result<[Option<Fallback>; 2], ParserError> {
    let mut found = [None, None];
    while !parser.consume_token(&Token::RParen) {
        let at = location(parser);
        let fallback = read(parser)?;
        let slot = if accept_words(parser, &["ON", "EMPTY"]) {
            0
        } else if accept_words(parser, &["ON", "ERROR"]) {
            1
        } else {
            return parser.expected("ON EMPTY or ON ERROR", parser.peek_token());
        };
        if found[slot].replace(fallback).is_some() {
            return Err(malformed(at, "the clause is there twice", "remove one of them"));
        }
    }
    Ok(found)
}

fn value_fallback(parser: &mut Parser) -> Result<Fallback, ParserError> {
    if accept_word(parser, "NULL") {
        return Ok(("NULL", null()));
    }
    if accept_word(parser, "ERROR") {
        return Ok(("ERROR", null()));
    }
    if accept_word(parser, "DEFAULT") {
        return Ok(("DEFAULT", parser.parse_expr()?));
    }
    parser.expected("NULL, ERROR or DEFAULT", parser.peek_token())
}

fn query_fallback(parser: &mut Parser) -> Result<Fallback, ParserError> {
    if accept_word(parser, "NULL") {
        return Ok(("NULL", null()));
    }
    if accept_word(parser, "ERROR") {
        return Ok(("ERROR", null()));
    }
    if accept_words(parser, &["EMPTY", "ARRAY"]) {
        return Ok(("EMPTY ARRAY", null()));
    }
    if accept_words(parser, &["EMPTY", "OBJECT"]) {
        return Ok(("EMPTY OBJECT", null()));
    }
    parser.expected("NULL, ERROR, EMPTY ARRAY or EMPTY OBJECT", parser.peek_token())
}
