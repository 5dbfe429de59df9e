//! Limits that keep any text from exhausting the stack: sqlparser guards its own recursion, but a long chain of
//! operators is a deep tree too, and dropping or visiting it recurses.

use datafusion::sql::sqlparser::{
    parser::ParserError,
    tokenizer::{Token, TokenWithSpan, Whitespace},
};

use super::fault::{malformed, refused};

/// Parentheses, brackets and CASE within each other.
const MAX_NESTING: usize = 64;
/// Operators in one expression, not counting those within parentheses of it. Planning takes time that grows with the
/// square of their number, and a stack that grows with it.
const MAX_OPERATORS: usize = 500;
/// What sqlparser may recurse; each parenthesis costs it about two.
pub(crate) const MAX_RECURSION: usize = 150;

/// Checks the tokens of a script before anything parses them.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<(), ParserError> {
    // One count of operators for each open parenthesis.
    let mut operators = vec![0];
    for TokenWithSpan { token, span } in tokens {
        match token {
            Token::LParen => operators.push(0),
            Token::LBracket => {
                count(&mut operators);
                operators.push(0);
            }
            Token::RParen | Token::RBracket if operators.len() > 1 => {
                operators.pop();
            }
            Token::Comma | Token::SemiColon => reset(&mut operators),
            Token::DoubleQuotedString(text) => {
                let cause = format!("\"{text}\" is in double quotes");
                return Err(malformed(span.start, cause, "put names into `backquotes` and texts into 'single quotes'"));
            }
            Token::Whitespace(Whitespace::MultiLineComment(text)) if text.starts_with('+') => {
                let way_out = "state a table's options in its WITH clause, and leave the hint out";
                return Err(refused(span.start, "hints are not supported", way_out));
            }
            Token::Whitespace(_) => {}
            Token::Word(word) if !is_operator_word(&word.value) => {}
            Token::SingleQuotedString(_) | Token::Number(..) => {}
            _ => count(&mut operators),
        }
        if operators.len() > MAX_NESTING {
            let cause = format!("more than {MAX_NESTING} parentheses are open");
            return Err(malformed(span.start, cause, "move inner parts into views"));
        }
        if operators.last().is_some_and(|count| *count > MAX_OPERATORS) {
            let cause = format!("an expression has more than {MAX_OPERATORS} operators");
            return Err(malformed(span.start, cause, "write IN (…) for a long OR, or split the query into views"));
        }
    }
    Ok(())
}

fn count(operators: &mut [usize]) {
    if let Some(count) = operators.last_mut() {
        *count += 1;
    }
}

fn reset(operators: &mut [usize]) {
    if let Some(count) = operators.last_mut() {
        *count = 0;
    }
}

/// Words that make a tree one level deeper.
fn is_operator_word(word: &str) -> bool {
    ["AND", "OR", "NOT", "IS", "LIKE", "BETWEEN", "IN", "UNION", "EXCEPT", "INTERSECT", "JOIN", "CASE", "COLLATE"]
        .iter()
        .any(|operator| word.eq_ignore_ascii_case(operator))
}
