//! Flink's expressions that are no plain calls, read by hand and turned into calls:
//!
//! | in the text | in the tree |
//! | --- | --- |
//! | `CAST(x AS t)`, `TRY_CAST(x AS t)` | `__cast(x, 't')`, `__try_cast(x, 't')` |
//! | `TIMESTAMP '…'`, `DATE '…'`, `TIME '…'`, `1e3` | `__cast('…', 't')` |
//! | `EXTRACT(u FROM x)`, `FLOOR(x TO u)`, `CEIL(x TO u)` | `__extract('u', x)`, `__floor_to(x, 'u')`, `__ceil_to(x, 'u')` |
//! | `TIMESTAMPADD(u, n, x)`, `TIMESTAMPDIFF(u, x, y)` | the same with `'u'` |
//! | `TRIM(BOTH c FROM x)` | `__trim('BOTH', x, c)` |
//! | `POSITION`, `OVERLAY`, `SUBSTRING` with words | the same with commas |
//! | `MAP[k, v, …]` | `map(make_array(k, …), make_array(v, …))` |
//! | `x BETWEEN SYMMETRIC y AND z` | `x BETWEEN y AND z OR x BETWEEN z AND y` |
//! | `U&'\00e4'` | `'ä'` |
//! | `x IS JSON OBJECT` | `__is_json(x, 'OBJECT')` |
//! | JSON functions with clauses | see [`json_forms`] |
//! | `TUMBLE(TABLE t, …)` | a subquery, see [`window`] |

use datafusion::sql::sqlparser::{
    ast::{BinaryOperator, Expr, UnaryOperator},
    dialect::{Dialect, Precedence},
    parser::{Parser, ParserError},
    tokenizer::{Location, Token},
};

use super::{
    FlinkDialect,
    build::{call, text},
    cursor::{accept_word, expect_word, literal, location, peeks_word},
    fault::{malformed, refused},
    interval, json_forms, window,
};
use crate::types::parse_data_type;

type Parsed = Result<Expr, ParserError>;

/// A special form at the parser's place, or `None` if sqlparser shall go on.
pub(crate) fn parse_prefix(parser: &mut Parser) -> Option<Parsed> {
    let first = parser.peek_token_ref();
    let at = first.span.start;
    let word = match &first.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        Token::Number(digits, _) if digits.contains(['e', 'E']) => {
            let value = text(digits.clone());
            parser.advance_token();
            return Some(Ok(call(at, "__cast", vec![value, text("DOUBLE")])));
        }
        Token::UnicodeStringLiteral(value) => {
            let value = text(value.clone());
            parser.advance_token();
            if peeks_word(parser, 0, "UESCAPE") {
                let way_out = "write the escapes of U&'…' with a backslash, as in U&'\\00e4'";
                return Some(Err(refused(location(parser), "UESCAPE is not supported", way_out)));
            }
            return Some(Ok(value));
        }
        _ => return None,
    };
    match (word.as_str(), &parser.peek_nth_token_ref(1).token) {
        (_, Token::LParen) => {}
        ("MAP", Token::LBracket) => return Some(map(parser, at)),
        ("DATE" | "TIME" | "TIMESTAMP", Token::SingleQuotedString(_)) => return Some(time_literal(parser, at, &word)),
        ("INTERVAL", Token::SingleQuotedString(_) | Token::Minus | Token::Plus) => {
            parser.advance_token();
            return Some(interval::parse(parser).map(interval::Interval::expression));
        }
        _ => return None,
    }
    let form: fn(&mut Parser, Location) -> Parsed = match word.as_str() {
        "CAST" => |parser, at| cast(parser, at, "__cast"),
        "TRY_CAST" => |parser, at| cast(parser, at, "__try_cast"),
        "EXTRACT" => extract,
        "FLOOR" => |parser, at| rounded(parser, at, "floor", "__floor_to"),
        "CEIL" | "CEILING" => |parser, at| rounded(parser, at, "ceil", "__ceil_to"),
        "TIMESTAMPADD" => |parser, at| with_unit(parser, at, "timestampadd"),
        "TIMESTAMPDIFF" => |parser, at| with_unit(parser, at, "timestampdiff"),
        "POSITION" => position,
        "OVERLAY" => overlay,
        "SUBSTRING" | "SUBSTR" => substring,
        "TRIM" => trim,
        "JSON_VALUE" => json_forms::value,
        "JSON_QUERY" => json_forms::query,
        "JSON_EXISTS" => json_forms::exists,
        "TUMBLE" | "HOP" | "CUMULATE" | "SESSION" => return Some(window::parse(parser, at, &word)),
        _ if window::is_group_window_part(&word) => return Some(Err(window::no_group_windows(at, &word))),
        "CURRENT_WATERMARK" => {
            let way_out = "compare with window_end in a window aggregate, which drops late rows by itself";
            return Some(Err(refused(at, "CURRENT_WATERMARK is not supported", way_out)));
        }
        "CONVERT" | "TRY_CONVERT" | "SAFE_CAST" => {
            return Some(Err(malformed(at, format!("{word} is no function of Flink SQL"), "write CAST(x AS t)")));
        }
        _ => return None,
    };
    parser.advance_token();
    parser.advance_token();
    Some(form(parser, at))
}

/// A special operator behind `expr`, or `None` if sqlparser shall go on.
pub(crate) fn parse_infix(parser: &mut Parser, expr: &Expr) -> Option<Parsed> {
    let at = location(parser);
    if parser.peek_token_ref().token == Token::DoubleColon {
        return Some(Err(malformed(at, ":: is no operator of Flink SQL", "write CAST(x AS t)")));
    }
    if let Some(between) = symmetric(parser, expr) {
        return Some(between);
    }
    if !peeks_word(parser, 0, "IS") {
        return None;
    }
    let negated = peeks_word(parser, 1, "NOT");
    if !peeks_word(parser, 1 + usize::from(negated), "JSON") {
        return None;
    }
    (0..2 + usize::from(negated)).for_each(|_| parser.advance_token());
    let kind = ["VALUE", "OBJECT", "ARRAY", "SCALAR"].into_iter().find(|kind| accept_word(parser, kind));
    let test = call(at, "__is_json", vec![expr.clone(), text(kind.unwrap_or("VALUE"))]);
    Some(Ok(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(test) } } else { test }))
}

/// `[NOT] BETWEEN {SYMMETRIC | ASYMMETRIC} low AND high` behind `expr`.
fn symmetric(parser: &mut Parser, expr: &Expr) -> Option<Parsed> {
    let negated = peeks_word(parser, 0, "NOT");
    let first = usize::from(negated);
    let is_symmetric = peeks_word(parser, first + 1, "SYMMETRIC");
    if !peeks_word(parser, first, "BETWEEN") || !(is_symmetric || peeks_word(parser, first + 1, "ASYMMETRIC")) {
        return None;
    }
    (0..first + 2).for_each(|_| parser.advance_token());
    Some(bounds(parser).map(|(low, high)| {
        let between = |negated: bool, low: Box<Expr>, high: Box<Expr>| {
            Box::new(Expr::Between { expr: Box::new(expr.clone()), negated, low, high })
        };
        let (low, high) = (Box::new(low), Box::new(high));
        if !is_symmetric {
            return *between(negated, low, high);
        }
        let left = between(negated, low.clone(), high.clone());
        let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        let either = Expr::BinaryOp { left, op, right: between(negated, high, low) };
        Expr::Nested(Box::new(either))
    }))
}

fn bounds(parser: &mut Parser) -> Result<(Expr, Expr), ParserError> {
    let low = parser.parse_subexpr(FlinkDialect.prec_value(Precedence::Between))?;
    expect_word(parser, "AND")?;
    Ok((low, parser.parse_subexpr(FlinkDialect.prec_value(Precedence::Between))?))
}

/// Closes a form.
fn close(parser: &mut Parser) -> Result<(), ParserError> {
    parser.expect_token(&Token::RParen).map(drop)
}

/// Further arguments behind commas, and the closing parenthesis.
fn rest(parser: &mut Parser, mut args: Vec<Expr>) -> Result<Vec<Expr>, ParserError> {
    while parser.consume_token(&Token::Comma) {
        args.push(parser.parse_expr()?);
    }
    close(parser)?;
    Ok(args)
}

fn cast(parser: &mut Parser, at: Location, name: &str) -> Parsed {
    let value = parser.parse_expr()?;
    expect_word(parser, "AS")?;
    let data_type = parse_data_type(parser)?;
    close(parser)?;
    Ok(call(at, name, vec![value, text(data_type.to_string())]))
}

fn time_literal(parser: &mut Parser, at: Location, kind: &str) -> Parsed {
    parser.advance_token();
    let value = literal(parser)?;
    // The literal's precision is the number of digits that it shows.
    let digits = value.rsplit_once('.').map_or(0, |(_, fraction)| fraction.trim().len()).min(9);
    let data_type = if kind == "DATE" { kind.to_owned() } else { format!("{kind}({digits})") };
    Ok(call(at, "__cast", vec![text(value), text(data_type)]))
}

/// A unit of time, in the singular and in capitals.
fn unit(parser: &mut Parser) -> Result<Expr, ParserError> {
    let token = parser.next_token();
    let known = match &token.token {
        Token::Word(word) => crate::functions::time::Unit::parse(&word.value),
        _ => None,
    };
    match known {
        Some(unit) => Ok(text(unit.name())),
        None => parser.expected("a unit such as SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", token),
    }
}

fn extract(parser: &mut Parser, at: Location) -> Parsed {
    let unit = unit(parser)?;
    expect_word(parser, "FROM")?;
    let value = parser.parse_expr()?;
    close(parser)?;
    Ok(call(at, "__extract", vec![unit, value]))
}

fn rounded(parser: &mut Parser, at: Location, plain: &str, timed: &str) -> Parsed {
    let value = parser.parse_expr()?;
    if accept_word(parser, "TO") {
        let unit = unit(parser)?;
        close(parser)?;
        return Ok(call(at, timed, vec![value, unit]));
    }
    let args = rest(parser, vec![value])?;
    Ok(call(at, plain, args))
}

fn with_unit(parser: &mut Parser, at: Location, name: &str) -> Parsed {
    let unit = unit(parser)?;
    let args = rest(parser, vec![unit])?;
    Ok(call(at, name, args))
}

fn position(parser: &mut Parser, at: Location) -> Parsed {
    // IN would otherwise be taken as the operator.
    let needle = parser.parse_subexpr(FlinkDialect.prec_value(Precedence::Between))?;
    expect_word(parser, "IN")?;
    let haystack = parser.parse_expr()?;
    close(parser)?;
    Ok(call(at, "position", vec![needle, haystack]))
}

fn overlay(parser: &mut Parser, at: Location) -> Parsed {
    let mut args = vec![parser.parse_expr()?];
    if !accept_word(parser, "PLACING") {
        let args = rest(parser, args)?;
        return Ok(call(at, "overlay", args));
    }
    args.push(parser.parse_expr()?);
    expect_word(parser, "FROM")?;
    args.push(parser.parse_expr()?);
    if accept_word(parser, "FOR") {
        args.push(parser.parse_expr()?);
    }
    close(parser)?;
    Ok(call(at, "overlay", args))
}

fn substring(parser: &mut Parser, at: Location) -> Parsed {
    let mut args = vec![parser.parse_expr()?];
    if !accept_word(parser, "FROM") {
        let args = rest(parser, args)?;
        return Ok(call(at, "substring", args));
    }
    args.push(parser.parse_expr()?);
    if accept_word(parser, "FOR") {
        args.push(parser.parse_expr()?);
    }
    close(parser)?;
    Ok(call(at, "substring", args))
}

fn trim(parser: &mut Parser, at: Location) -> Parsed {
    let side = ["BOTH", "LEADING", "TRAILING"].into_iter().find(|side| accept_word(parser, side));
    if side.is_some() && accept_word(parser, "FROM") {
        let value = parser.parse_expr()?;
        close(parser)?;
        return Ok(call(at, "__trim", vec![text(side.unwrap_or("BOTH")), value, text(" ")]));
    }
    let first = parser.parse_expr()?;
    let args = if accept_word(parser, "FROM") { vec![parser.parse_expr()?, first] } else { vec![first, text(" ")] };
    close(parser)?;
    Ok(call(at, "__trim", std::iter::once(text(side.unwrap_or("BOTH"))).chain(args).collect()))
}

fn map(parser: &mut Parser, at: Location) -> Parsed {
    parser.advance_token();
    parser.advance_token();
    let items = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RBracket)?;
    if items.len() % 2 == 1 {
        return Err(malformed(at, "MAP[…] has a key without a value", "write MAP[key1, value1, key2, value2]"));
    }
    let (keys, values): (Vec<_>, Vec<_>) = items.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
    let array = |items: Vec<(usize, Expr)>| call(at, "make_array", items.into_iter().map(|(_, item)| item).collect());
    Ok(call(at, "map", vec![array(keys), array(values)]))
}
