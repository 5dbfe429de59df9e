//! [`FlinkDialect`]: how Flink's SQL is spelt, for sqlparser's tokenizer and parser.

use datafusion::sql::sqlparser::{
    ast::Expr,
    dialect::Dialect,
    keywords::{self, Keyword},
    parser::{Parser, ParserError},
};

use super::forms;

/// Flink SQL: names in backquotes, texts in single quotes, special forms as [`forms`] reads them.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlinkDialect;

/// Words that begin a form with a grammar of its own. Flink reserves them, and so do we: sqlparser would otherwise
/// parse a broken form a second time as a call, which takes exponential time when they are nested.
const FORMS: [Keyword; 17] = [
    Keyword::ARRAY,
    Keyword::CASE,
    Keyword::CAST,
    Keyword::CEIL,
    Keyword::CONVERT,
    Keyword::EXISTS,
    Keyword::EXTRACT,
    Keyword::FLOOR,
    Keyword::INTERVAL,
    Keyword::NOT,
    Keyword::OVERLAY,
    Keyword::POSITION,
    Keyword::SUBSTRING,
    Keyword::TRIM,
    Keyword::TRY_CAST,
    Keyword::TRY_CONVERT,
    Keyword::SAFE_CAST,
];

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || matches!(ch, '_' | '$')
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        keywords::RESERVED_FOR_IDENTIFIER.contains(&kw) || FORMS.contains(&kw)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_match_recognize(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        forms::parse_prefix(parser)
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        forms::parse_infix(parser, expr)
    }
}
