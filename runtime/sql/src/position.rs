//! Places in the user's SQL text: a table of tokens with line and column, so that every later error can point.
//!
//! Must not know: what the statements mean.

use std::{fmt, ops::Range, sync::Arc};

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use streamkeeper_types::{Code, Error};

/// Line and column of a character, both counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

impl Position {
    pub const START: Self = Self { line: 1, column: 1 };

    /// An error at this place.
    pub fn error(self, code: Code, cause: impl Into<String>) -> Error {
        Error::new(code, cause).at(self.to_string())
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        // Empty spans have line 0.
        Self { line: location.line.max(1), column: location.column.max(1) }
    }
}

/// The tokens of a statement or clause, as indices into the script's token table.
pub type Extent = Range<usize>;

/// All tokens of a script that are no blanks or comments. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Locator {
    tokens: Arc<[TokenWithSpan]>,
}

impl Locator {
    pub(crate) fn new(tokens: &[TokenWithSpan]) -> Self {
        let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        Self { tokens: words.cloned().collect() }
    }

    /// Every token of the script.
    #[must_use]
    pub fn whole(&self) -> Extent {
        0..self.tokens.len()
    }

    /// Index of the first token at or behind a place.
    pub(crate) fn index_at(&self, position: Position) -> usize {
        self.tokens.partition_point(|token| Position::from(token.span.start) < position)
    }

    /// Where an extent begins; the start of the text if it is empty.
    #[must_use]
    pub fn start_of(&self, extent: &Extent) -> Position {
        self.tokens.get(extent.start).map_or(Position::START, |token| token.span.start.into())
    }

    /// The first use of an identifier, spelt exactly, quoted or not.
    #[must_use]
    pub fn find_identifier(&self, extent: &Extent, name: &str) -> Option<Position> {
        self.find(extent, |window| matches!(&window[0].token, Token::Word(word) if word.value == name))
    }

    /// The first call of a function, in any case.
    #[must_use]
    pub fn find_function(&self, extent: &Extent, name: &str) -> Option<Position> {
        self.find(extent, |window| {
            is_keyword(&window[0].token, name) && window.get(1).is_some_and(|next| next.token == Token::LParen)
        })
    }

    /// The first place with these keywords in a row, as in `["GROUP", "BY"]`, in any case.
    #[must_use]
    pub fn find_clause(&self, extent: &Extent, keywords: &[&str]) -> Option<Position> {
        self.find(extent, |window| {
            window.len() >= keywords.len()
                && keywords.iter().zip(window).all(|(keyword, token)| is_keyword(&token.token, keyword))
        })
    }

    /// The first string literal with exactly this value, as in a key or value of WITH.
    #[must_use]
    pub fn find_literal(&self, extent: &Extent, value: &str) -> Option<Position> {
        self.find(extent, |window| matches!(&window[0].token, Token::SingleQuotedString(text) if text == value))
    }

    fn find(&self, extent: &Extent, matches: impl Fn(&[TokenWithSpan]) -> bool) -> Option<Position> {
        let end = extent.end.min(self.tokens.len());
        let tokens = self.tokens.get(extent.start..end)?;
        (0..tokens.len()).find(|&i| matches(&tokens[i..])).map(|i| tokens[i].span.start.into())
    }
}

fn is_keyword(token: &Token, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::FlinkDialect;

    #[test]
    fn identifiers_functions_and_clauses_are_found_by_line_and_column() {
        let text = "SELECT `user`, count(x) -- GROUP BY\nFROM t\n  GROUP  BY 'a'";
        let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location().unwrap();
        let locator = Locator::new(&tokens);
        let all = locator.whole();
        let at = |line, column| Some(Position { line, column });
        assert_eq!(locator.find_identifier(&all, "user"), at(1, 8));
        assert_eq!(locator.find_identifier(&all, "USER"), None);
        assert_eq!(locator.find_function(&all, "COUNT"), at(1, 16));
        assert_eq!(locator.find_clause(&all, &["group", "by"]), at(3, 3));
        assert_eq!(locator.find_literal(&all, "a"), at(3, 13));
        assert_eq!(locator.find_identifier(&(5..2_000), "t"), Some(Position { line: 2, column: 6 }));
        assert_eq!(locator.find_identifier(&(900..2_000), "t"), None);
    }
}
