//! Window table functions in FROM, `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))`.
//!
//! One becomes an ordinary subquery that DataFusion can plan by itself, views, CTEs and nested queries included:
//! `SELECT *, __window_start(ts, spec) AS window_start, __window_end(ts, spec) AS window_end, __window_time(ts, spec)
//! AS window_time FROM t`. The planner recognises the projection by these calls; [`WindowTvf`] reads and writes `spec`.

use std::fmt;

use datafusion::sql::sqlparser::{
    ast::{Expr, Ident, Query, SetExpr, TableAlias, TableFactor},
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, Tokenizer},
};

use super::{
    FlinkDialect,
    build::{call, text},
    cursor::{accept_word, expect_word, location, peeks_word},
    fault::{malformed, refused},
    interval::expect_millis,
};

/// A window table function's kind and sizes. All in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowTvf {
    pub kind: WindowKind,
    /// Added to the borders of windows; 0 for sessions.
    pub offset: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    Tumble {
        size: i64,
    },
    /// `size` is a multiple of `slide`.
    Hop {
        slide: i64,
        size: i64,
    },
    /// `size` is a multiple of `step`.
    Cumulate {
        step: i64,
        size: i64,
    },
    Session {
        gap: i64,
    },
}

impl WindowTvf {
    /// Reads the text that [`fmt::Display`] writes, and that the calls of `__window_start` and its like carry.
    #[must_use]
    pub fn parse(spec: &str) -> Option<Self> {
        let mut words = spec.split(' ');
        let name = words.next()?;
        let mut number = || words.next()?.parse::<i64>().ok();
        let (first, second, offset) = (number()?, number()?, number()?);
        let kind = match name {
            "TUMBLE" => WindowKind::Tumble { size: second },
            "HOP" => WindowKind::Hop { slide: first, size: second },
            "CUMULATE" => WindowKind::Cumulate { step: first, size: second },
            "SESSION" => WindowKind::Session { gap: second },
            _ => return None,
        };
        Some(Self { kind, offset })
    }
}

impl fmt::Display for WindowTvf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, first, second) = match self.kind {
            WindowKind::Tumble { size } => ("TUMBLE", 0, size),
            WindowKind::Hop { slide, size } => ("HOP", slide, size),
            WindowKind::Cumulate { step, size } => ("CUMULATE", step, size),
            WindowKind::Session { gap } => ("SESSION", 0, gap),
        };
        write!(f, "{name} {first} {second} {}", self.offset)
    }
}

/// Names of the functions that only group windows have.
pub(super) fn is_group_window_part(word: &str) -> bool {
    let Some((window, part)) = word.split_once('_') else { return false };
    matches!(window, "TUMBLE" | "HOP" | "SESSION") && matches!(part, "START" | "END" | "ROWTIME" | "PROCTIME")
}

pub(super) fn no_group_windows(at: Location, word: &str) -> ParserError {
    let kind = word.split('_').next().unwrap_or(word);
    let way_out = format!(
        "use the window table function: FROM TABLE({kind}(TABLE t, DESCRIPTOR(ts), INTERVAL …)) GROUP BY window_start, window_end"
    );
    refused(at, format!("{word}(…) as a group window is not supported"), way_out)
}

/// At the name of a window function.
pub(super) fn parse(parser: &mut Parser, at: Location, name: &str) -> Result<Expr, ParserError> {
    let is_table_function = peeks_word(parser, 2, "TABLE")
        || parser.peek_nth_token_ref(2).token == Token::LParen
        || parser.peek_nth_token_ref(3).token == Token::RArrow;
    if !is_table_function {
        return Err(no_group_windows(at, name));
    }
    parser.advance_token();
    parser.advance_token();
    let arguments = Arguments::read(parser, name)?;
    let Arguments { data: Some(data), time: Some(time), .. } = &arguments else {
        let way_out = format!("write {name}(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE …)");
        return Err(malformed(at, format!("{name} lacks its table or its DESCRIPTOR"), way_out));
    };
    let spec = arguments.spec(at, name)?;
    subquery(at, data.clone(), time, &arguments.keys, spec).map(|query| Expr::Subquery(Box::new(query)))
}

#[derive(Default)]
struct Arguments {
    data: Option<TableFactor>,
    keys: Vec<Ident>,
    time: Option<Ident>,
    /// In the order of the function's positional arguments.
    intervals: Vec<(String, Location, i64)>,
}

/// Positional intervals of each function, behind the table and the descriptor.
fn interval_names(name: &str) -> &'static [&'static str] {
    match name {
        "HOP" => &["SLIDE", "SIZE", "OFFSET"],
        "CUMULATE" => &["STEP", "SIZE", "OFFSET"],
        "SESSION" => &["GAP"],
        _ => &["SIZE", "OFFSET"],
    }
}

impl Arguments {
    fn read(parser: &mut Parser, name: &str) -> Result<Self, ParserError> {
        let mut arguments = Self::default();
        let mut index = 0;
        loop {
            let at = location(parser);
            let named = match (&parser.peek_nth_token_ref(0).token, &parser.peek_nth_token_ref(1).token) {
                (Token::Word(word), Token::RArrow) => Some(word.value.to_ascii_uppercase()),
                _ => None,
            };
            let key = match &named {
                Some(key) => {
                    parser.advance_token();
                    parser.advance_token();
                    key.clone()
                }
                None => match index {
                    0 => "DATA".to_owned(),
                    1 => "TIMECOL".to_owned(),
                    _ => (*interval_names(name).get(index - 2).unwrap_or(&"")).to_owned(),
                },
            };
            arguments.one(parser, at, name, &key)?;
            index += 1;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
        Ok(arguments)
    }

    fn one(&mut self, parser: &mut Parser, at: Location, name: &str, key: &str) -> Result<(), ParserError> {
        match key {
            "DATA" => self.data = Some(self.table(parser)?),
            "TIMECOL" => {
                expect_word(parser, "DESCRIPTOR")?;
                parser.expect_token(&Token::LParen)?;
                self.time = Some(parser.parse_identifier()?);
                parser.expect_token(&Token::RParen)?;
            }
            _ if interval_names(name).contains(&key) => {
                if self.intervals.iter().any(|(known, ..)| known == key) {
                    return Err(malformed(at, format!("{key} is there twice"), "remove one of them"));
                }
                let (at, millis) = expect_millis(parser)?;
                self.intervals.push((key.to_owned(), at, millis));
            }
            _ => {
                let cause = format!("{name} has no such argument");
                let way_out = format!("its arguments are DATA, TIMECOL, {}", interval_names(name).join(", "));
                return Err(malformed(at, cause, way_out));
            }
        }
        Ok(())
    }

    /// `TABLE t`, `TABLE t PARTITION BY (k)`, `TABLE (query)` or `(query)`.
    fn table(&mut self, parser: &mut Parser) -> Result<TableFactor, ParserError> {
        let word = accept_word(parser, "TABLE");
        let factor = if parser.consume_token(&Token::LParen) {
            let query = parser.parse_query()?;
            parser.expect_token(&Token::RParen)?;
            derived(*query)
        } else if word {
            let at = location(parser);
            let name = parser.parse_object_name(false)?;
            // The name's parts are read as a table's; `AS` may follow it.
            named_table(at, &name.to_string())?
        } else {
            return parser.expected("TABLE and a name", parser.peek_token());
        };
        if accept_word(parser, "PARTITION") {
            expect_word(parser, "BY")?;
            let round = parser.consume_token(&Token::LParen);
            self.keys = if round {
                parser.parse_comma_separated(Parser::parse_identifier)?
            } else {
                vec![parser.parse_identifier()?]
            };
            if round {
                parser.expect_token(&Token::RParen)?;
            }
        }
        Ok(factor)
    }

    fn interval(&self, key: &str) -> Option<(Location, i64)> {
        self.intervals.iter().find(|(known, ..)| known == key).map(|(_, at, millis)| (*at, *millis))
    }

    fn positive(&self, at: Location, name: &str, key: &str) -> Result<i64, ParserError> {
        match self.interval(key) {
            Some((_, millis)) if millis > 0 => Ok(millis),
            Some((at, _)) => {
                Err(malformed(at, format!("{key} of {name} is not above zero"), "write a longer interval"))
            }
            None => Err(malformed(at, format!("{name} lacks its {key}"), format!("add {key} => INTERVAL '1' MINUTE"))),
        }
    }

    fn spec(&self, at: Location, name: &str) -> Result<WindowTvf, ParserError> {
        let divides = |part: &str| -> Result<(i64, i64), ParserError> {
            let (step, size) = (self.positive(at, name, part)?, self.positive(at, name, "SIZE")?);
            if size % step == 0 {
                return Ok((step, size));
            }
            let (at, _) = self.interval("SIZE").unwrap_or((at, 0));
            let cause = format!("SIZE is {size} ms, which is no multiple of {part}, {step} ms");
            Err(malformed(at, cause, format!("choose a SIZE that is a multiple of {part}")))
        };
        if !self.keys.is_empty() && name != "SESSION" {
            return Err(malformed(at, format!("{name} takes no PARTITION BY"), "group by the columns instead"));
        }
        let kind = match name {
            "HOP" => divides("SLIDE").map(|(slide, size)| WindowKind::Hop { slide, size })?,
            "CUMULATE" => divides("STEP").map(|(step, size)| WindowKind::Cumulate { step, size })?,
            "SESSION" => WindowKind::Session { gap: self.positive(at, name, "GAP")? },
            _ => WindowKind::Tumble { size: self.positive(at, name, "SIZE")? },
        };
        Ok(WindowTvf { kind, offset: self.interval("OFFSET").map_or(0, |(_, millis)| millis) })
    }
}

/// The subquery that stands for the function.
fn subquery(
    at: Location,
    data: TableFactor,
    time: &Ident,
    keys: &[Ident],
    spec: WindowTvf,
) -> Result<Query, ParserError> {
    let mut query = template("SELECT *, 0 AS window_start, 0 AS window_end, 0 AS window_time FROM t")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(malformed(at, "the window cannot be read", ""));
    };
    let marker = |function: &str| {
        let fixed = [Expr::Identifier(time.clone()), text(spec.to_string())];
        call(at, function, fixed.into_iter().chain(keys.iter().cloned().map(Expr::Identifier)).collect())
    };
    let functions = ["__window_start", "__window_end", "__window_time"];
    for (item, function) in select.projection.iter_mut().skip(1).zip(functions) {
        if let datafusion::sql::sqlparser::ast::SelectItem::ExprWithAlias { expr, .. } = item {
            *expr = marker(function);
        }
    }
    if let Some(from) = select.from.first_mut() {
        from.relation = data;
    }
    Ok(query)
}

fn named_table(at: Location, name: &str) -> Result<TableFactor, ParserError> {
    let query = template(&format!("SELECT * FROM {name}"))?;
    match *query.body {
        SetExpr::Select(mut select) if select.from.len() == 1 => Ok(select.from.remove(0).relation),
        _ => Err(malformed(at, format!("{name} is no name of a table"), "name a table or view")),
    }
}

fn derived(query: Query) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: None::<TableAlias>, sample: None }
}

fn template(text: &str) -> Result<Query, ParserError> {
    let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location()?;
    Parser::new(&FlinkDialect).with_tokens_with_locations(tokens).parse_query().map(|query| *query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_read_back_from_their_text() {
        for kind in [
            WindowKind::Tumble { size: 60_000 },
            WindowKind::Hop { slide: 1, size: 2 },
            WindowKind::Cumulate { step: 3, size: 9 },
            WindowKind::Session { gap: 7 },
        ] {
            let spec = WindowTvf { kind, offset: -5 };
            assert_eq!(WindowTvf::parse(&spec.to_string()), Some(spec));
        }
        assert_eq!(WindowTvf::parse("TUMBLE 1"), None);
    }
}
