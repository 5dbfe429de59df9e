//! Small steps over sqlparser's public `Parser`: words in any case, whether or not sqlparser has them as keywords.

use datafusion::sql::sqlparser::{
    parser::{Parser, ParserError},
    tokenizer::{Location, Token},
};

/// Where the next token begins; behind the last one, where that began.
pub(crate) fn location(parser: &Parser) -> Location {
    let next = parser.peek_token_ref();
    if next.token == Token::EOF { parser.get_current_token().span.end } else { next.span.start }
}

/// Whether the n-th next token (0 = next) is this unquoted word.
pub(crate) fn peeks_word(parser: &Parser, n: usize, word: &str) -> bool {
    is_word(&parser.peek_nth_token_ref(n).token, word)
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// Consumes the word if it comes next.
pub(crate) fn accept_word(parser: &mut Parser, word: &str) -> bool {
    let found = peeks_word(parser, 0, word);
    if found {
        parser.advance_token();
    }
    found
}

/// Consumes all the words if they come next, else none.
pub(crate) fn accept_words(parser: &mut Parser, words: &[&str]) -> bool {
    let found = words.iter().enumerate().all(|(i, word)| peeks_word(parser, i, word));
    if found {
        words.iter().for_each(|_| parser.advance_token());
    }
    found
}

pub(crate) fn expect_word(parser: &mut Parser, word: &str) -> Result<(), ParserError> {
    if accept_word(parser, word) { Ok(()) } else { parser.expected(word, parser.peek_token()) }
}

/// An unsigned whole number.
pub(crate) fn unsigned(parser: &mut Parser) -> Result<u64, ParserError> {
    let token = parser.next_token();
    match &token.token {
        Token::Number(digits, _) => match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) => parser.expected("a whole number", token),
        },
        _ => parser.expected("a whole number", token),
    }
}

/// A quoted text.
pub(crate) fn literal(parser: &mut Parser) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) => Ok(text),
        _ => parser.expected("a text in single quotes", token),
    }
}
