//! The grammar of types, over sqlparser's tokens.

use datafusion::sql::sqlparser::{
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, Tokenizer},
};
use streamkeeper_types::Error;

use super::{Field, SqlType};
use crate::{
    parse::{
        FlinkDialect,
        cursor::{accept_word, accept_words, expect_word, location, unsigned},
        fault::{into_error, malformed, refused},
    },
    position::Position,
};

/// Types within types; deeper ones are refused before the stack is at risk.
const MAX_DEPTH: usize = 24;

/// Reads a type that stands alone, as in the last argument of our CAST.
///
/// # Errors
/// SQL_SYNTAX or SQL_UNSUPPORTED with the place in `text`.
pub fn parse_type(text: &str) -> Result<SqlType, Error> {
    read_whole(text).map_err(|error| into_error(error, Position::START))
}

fn read_whole(text: &str) -> Result<SqlType, ParserError> {
    let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location()?;
    let mut parser = Parser::new(&FlinkDialect).with_tokens_with_locations(tokens);
    let data_type = parse_data_type(&mut parser)?;
    parser.expect_token(&Token::EOF)?;
    Ok(data_type)
}

/// Reads a type without a trailing NOT NULL.
pub(crate) fn parse_data_type(parser: &mut Parser) -> Result<SqlType, ParserError> {
    let mut types = TypeParser { parser, closing: 0 };
    let data_type = types.data_type(0)?;
    if types.closing > 0 {
        let shift = parser.get_current_token().span.start;
        return Err(malformed(shift, "there is one > too many", "each < has one >"));
    }
    Ok(data_type)
}

struct TypeParser<'p, 'd> {
    parser: &'p mut Parser<'d>,
    /// Closing brackets already consumed with a `>>` token that belongs to outer types.
    closing: usize,
}

impl TypeParser<'_, '_> {
    fn data_type(&mut self, depth: usize) -> Result<SqlType, ParserError> {
        let at = location(self.parser);
        if depth > MAX_DEPTH {
            return Err(malformed(at, "the type is nested too deeply", "flatten it"));
        }
        let mut data_type = self.plain(at, depth)?;
        // `INT ARRAY` is the postfix form of ARRAY<INT>.
        while self.closing == 0 && accept_word(self.parser, "ARRAY") {
            data_type = SqlType::Array(Box::new(Field { name: String::new(), data_type, nullable: true }));
        }
        if self.closing == 0 && accept_word(self.parser, "MULTISET") {
            return Err(no_multiset(at));
        }
        Ok(data_type)
    }

    fn plain(&mut self, at: Location, depth: usize) -> Result<SqlType, ParserError> {
        let token = self.parser.next_token();
        let Token::Word(word) = &token.token else {
            return self.parser.expected("a data type", token);
        };
        if word.quote_style.is_some() {
            return self.parser.expected("a data type", token);
        }
        Ok(match word.value.to_ascii_uppercase().as_str() {
            "STRING" => SqlType::STRING,
            "BOOLEAN" => SqlType::Boolean,
            "TINYINT" => SqlType::TinyInt,
            "SMALLINT" => SqlType::SmallInt,
            "INT" | "INTEGER" => SqlType::Int,
            "BIGINT" => SqlType::BigInt,
            "FLOAT" | "REAL" => SqlType::Float,
            "DOUBLE" => {
                accept_word(self.parser, "PRECISION");
                SqlType::Double
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal(at)?,
            "CHARACTER" | "CHAR" if accept_word(self.parser, "VARYING") => {
                SqlType::Varchar(Some(self.length(at)?.unwrap_or(1)))
            }
            "CHARACTER" | "CHAR" => SqlType::Char(self.length(at)?.unwrap_or(1)),
            "VARCHAR" => SqlType::Varchar(Some(self.length(at)?.unwrap_or(1))).normalised(),
            "BINARY" if accept_word(self.parser, "VARYING") => {
                SqlType::Varbinary(Some(self.length(at)?.unwrap_or(1))).normalised()
            }
            "BINARY" => SqlType::Binary(self.length(at)?.unwrap_or(1)),
            "VARBINARY" => SqlType::Varbinary(Some(self.length(at)?.unwrap_or(1))).normalised(),
            "BYTES" => SqlType::BYTES,
            "DATE" => SqlType::Date,
            "TIME" => self.time(at)?,
            "TIMESTAMP" => self.timestamp(at)?,
            "TIMESTAMP_LTZ" => SqlType::TimestampLtz(self.precision(at)?.unwrap_or(6)),
            "ARRAY" => SqlType::Array(Box::new(self.one_member(depth)?)),
            "MAP" => self.map(depth)?,
            "ROW" => self.row(at, depth)?,
            "MULTISET" => return Err(no_multiset(at)),
            "INTERVAL" => {
                let way_out = "store the number of milliseconds as BIGINT";
                return Err(refused(at, "a column of type INTERVAL is not supported", way_out));
            }
            "RAW" | "NULL" | "VARIANT" | "STRUCTURED" => {
                let cause = format!("the type {} is not supported", word.value.to_ascii_uppercase());
                return Err(refused(at, cause, "use STRING, BYTES or ROW<…>"));
            }
            other => return Err(unknown(at, other)),
        })
    }

    fn decimal(&mut self, at: Location) -> Result<SqlType, ParserError> {
        let (mut precision, mut scale) = (10, 0);
        if self.parser.consume_token(&Token::LParen) {
            precision = unsigned(self.parser)?;
            if self.parser.consume_token(&Token::Comma) {
                scale = unsigned(self.parser)?;
            }
            self.parser.expect_token(&Token::RParen)?;
        }
        if !(1..=38).contains(&precision) || scale > precision {
            let cause = format!("DECIMAL({precision}, {scale}) is no type");
            return Err(malformed(at, cause, "the precision is 1 to 38, the scale 0 to the precision"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 38")]
        let data_type = SqlType::Decimal { precision: precision as u8, scale: scale as u8 };
        Ok(data_type)
    }

    fn length(&mut self, at: Location) -> Result<Option<u32>, ParserError> {
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(None);
        }
        let length = unsigned(self.parser)?;
        self.parser.expect_token(&Token::RParen)?;
        match u32::try_from(length) {
            Ok(length) if (1..=0x7fff_ffff).contains(&length) => Ok(Some(length)),
            _ => Err(malformed(at, format!("a length of {length} is out of range"), "lengths are 1 to 2147483647")),
        }
    }

    fn precision(&mut self, at: Location) -> Result<Option<u8>, ParserError> {
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(None);
        }
        let digits = unsigned(self.parser)?;
        self.parser.expect_token(&Token::RParen)?;
        match u8::try_from(digits) {
            Ok(digits) if digits <= 9 => Ok(Some(digits)),
            _ => Err(malformed(at, format!("{digits} fractional digits are out of range"), "a precision is 0 to 9")),
        }
    }

    fn time(&mut self, at: Location) -> Result<SqlType, ParserError> {
        let precision = self.precision(at)?.unwrap_or(0);
        accept_words(self.parser, &["WITHOUT", "TIME", "ZONE"]);
        Ok(SqlType::Time(precision))
    }

    fn timestamp(&mut self, at: Location) -> Result<SqlType, ParserError> {
        let precision = self.precision(at)?.unwrap_or(6);
        if accept_words(self.parser, &["WITH", "LOCAL", "TIME", "ZONE"]) {
            return Ok(SqlType::TimestampLtz(precision));
        }
        if accept_words(self.parser, &["WITH", "TIME", "ZONE"]) {
            let way_out = "use TIMESTAMP_LTZ for an instant, or TIMESTAMP for wall-clock time";
            return Err(refused(at, "TIMESTAMP WITH TIME ZONE is not supported", way_out));
        }
        accept_words(self.parser, &["WITHOUT", "TIME", "ZONE"]);
        Ok(SqlType::Timestamp(precision))
    }

    fn one_member(&mut self, depth: usize) -> Result<Field, ParserError> {
        self.parser.expect_token(&Token::Lt)?;
        let member = self.member(String::new(), depth)?;
        self.close()?;
        Ok(member)
    }

    fn map(&mut self, depth: usize) -> Result<SqlType, ParserError> {
        self.parser.expect_token(&Token::Lt)?;
        // Keys are never NULL in Arrow, so NOT NULL on one says nothing new.
        let key = self.member(String::new(), depth)?;
        self.parser.expect_token(&Token::Comma)?;
        let value = self.member(String::new(), depth)?;
        self.close()?;
        Ok(SqlType::Map(Box::new(key.data_type), Box::new(value)))
    }

    fn row(&mut self, at: Location, depth: usize) -> Result<SqlType, ParserError> {
        let round = self.parser.consume_token(&Token::LParen);
        if !round {
            self.parser.expect_token(&Token::Lt)?;
        }
        let mut fields: Vec<Field> = Vec::new();
        loop {
            let name = self.parser.parse_identifier()?.value;
            if fields.iter().any(|field| field.name == name) {
                return Err(malformed(at, format!("the ROW has two fields `{name}`"), "give each its own name"));
            }
            let field = self.member(name, depth)?;
            fields.push(field);
            if self.closing > 0 || !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        if round {
            self.parser.expect_token(&Token::RParen)?;
        } else {
            self.close()?;
        }
        Ok(SqlType::Row(fields))
    }

    /// A type, its nullability, and the comment that fields may have.
    fn member(&mut self, name: String, depth: usize) -> Result<Field, ParserError> {
        let data_type = self.data_type(depth + 1)?;
        let mut nullable = true;
        if self.closing == 0 {
            if accept_word(self.parser, "NOT") {
                expect_word(self.parser, "NULL")?;
                nullable = false;
            } else {
                accept_word(self.parser, "NULL");
            }
            if !name.is_empty() && matches!(self.parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
                self.parser.advance_token();
            }
        }
        Ok(Field { name, data_type, nullable })
    }

    /// Consumes one `>`, which may be half of a `>>`.
    fn close(&mut self) -> Result<(), ParserError> {
        if self.closing > 0 {
            self.closing -= 1;
            return Ok(());
        }
        if self.parser.consume_token(&Token::ShiftRight) {
            self.closing = 1;
            return Ok(());
        }
        self.parser.expect_token(&Token::Gt).map(drop)
    }
}

impl SqlType {
    /// VARCHAR(2147483647) is STRING, VARBINARY(2147483647) is BYTES.
    fn normalised(self) -> Self {
        match self {
            Self::Varchar(Some(0x7fff_ffff)) => Self::STRING,
            Self::Varbinary(Some(0x7fff_ffff)) => Self::BYTES,
            other => other,
        }
    }
}

fn no_multiset(at: Location) -> ParserError {
    refused(at, "MULTISET is not supported", "use ARRAY<t>, or MAP<t, INT> with the number of each element")
}

fn unknown(at: Location, name: &str) -> ParserError {
    const HINTS: [(&str, &str); 10] = [
        ("TEXT", "STRING"),
        ("LONG", "BIGINT"),
        ("SHORT", "SMALLINT"),
        ("BYTE", "TINYINT"),
        ("BOOL", "BOOLEAN"),
        ("DATETIME", "TIMESTAMP(3)"),
        ("STRUCT", "ROW<…>"),
        ("TIMESTAMPTZ", "TIMESTAMP_LTZ(3)"),
        ("BLOB", "BYTES"),
        ("NUMBER", "DECIMAL(p, s)"),
    ];
    let hint = HINTS.iter().find(|(wrong, _)| *wrong == name).map_or(
        "types are STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIME, \
         TIMESTAMP(p), TIMESTAMP_LTZ(p), BYTES, ARRAY<t>, MAP<k, v> and ROW<name t, …>"
            .to_owned(),
        |(_, right)| format!("write {right}"),
    );
    malformed(at, format!("there is no type {name}"), hint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use streamkeeper_types::Code;

    use super::*;

    #[test]
    fn types_read_back_from_their_canonical_text() {
        let check = |text: &str, canonical: &str| {
            let parsed = parse_type(text).unwrap();
            assert_eq!(parsed.to_string(), canonical, "{text}");
            assert_eq!(parse_type(canonical).unwrap(), parsed, "{canonical}");
        };
        check("varchar", "VARCHAR(1)");
        check("VARCHAR(2147483647)", "STRING");
        check("numeric(5)", "DECIMAL(5, 0)");
        check("DECIMAL", "DECIMAL(10, 0)");
        check("double precision", "DOUBLE");
        check("TIME(0) WITHOUT TIME ZONE", "TIME(0)");
        check("TIMESTAMP", "TIMESTAMP(6)");
        check("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)");
        check("ARRAY<ARRAY<INT>>", "ARRAY<ARRAY<INT>>");
        check("INT ARRAY", "ARRAY<INT>");
        check("ARRAY<ARRAY<ARRAY<INT NOT NULL>>>", "ARRAY<ARRAY<ARRAY<INT NOT NULL>>>");
        check("MAP<STRING, ARRAY<ROW<a INT>>>", "MAP<STRING, ARRAY<ROW<`a` INT>>>");
        check("ROW(a INT NOT NULL 'the a', `b c` STRING)", "ROW<`a` INT NOT NULL, `b c` STRING>");
        check("ROW<a ROW<b ROW<c INT>>, d INT>", "ROW<`a` ROW<`b` ROW<`c` INT>>, `d` INT>");
    }

    #[test]
    fn bad_types_are_refused_with_place_and_way_out() {
        let check = |text: &str, code: Code, column: u64| {
            let error = parse_type(text).unwrap_err();
            assert_eq!(error.code, code, "{text}: {error}");
            assert_eq!(error.place, [format!("line 1, column {column}")], "{text}: {error}");
        };
        check("TEXT", Code::SqlSyntax, 1);
        check("ARRAY<MULTISET<INT>>", Code::SqlUnsupported, 7);
        check("DECIMAL(39, 2)", Code::SqlSyntax, 1);
        check("DECIMAL(5, 6)", Code::SqlSyntax, 1);
        check("TIMESTAMP(10)", Code::SqlSyntax, 1);
        check("ARRAY<INT", Code::SqlSyntax, 1);
        check("ARRAY<INT>>", Code::SqlSyntax, 10);
        check("ROW<a INT, a INT>", Code::SqlSyntax, 1);
        check("TIMESTAMP(3) WITH TIME ZONE", Code::SqlUnsupported, 1);
        check(&"ARRAY<".repeat(500), Code::SqlSyntax, 6 * 25 + 1);
    }
}
