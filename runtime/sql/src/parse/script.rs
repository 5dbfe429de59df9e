//! [`parse_script`]: statement by statement over one stream of tokens.

use datafusion::sql::sqlparser::{
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer},
};
use streamkeeper_types::Error;

use super::{
    FlinkDialect, Insert, Query, Statement, create_table,
    cursor::{accept_word, accept_words, expect_word, literal, location, peeks_word},
    fault::{into_error, malformed, refused},
    fields, limits, table_functions,
};
use crate::{
    catalog::View,
    position::{Extent, Locator, Position},
};

/// A parsed script.
#[derive(Debug, Clone)]
pub struct Script {
    pub statements: Vec<Statement>,
    /// Points later errors to the text.
    pub locator: Locator,
}

impl Script {
    /// All inserts in order, whatever sets they stand in.
    pub fn inserts(&self) -> impl Iterator<Item = &Insert> {
        self.statements.iter().flat_map(|statement| match statement {
            Statement::Inserts(inserts) => inserts.as_slice(),
            _ => &[],
        })
    }
}

/// Parses a whole script. Statements end with `;`, which may lack behind the last one.
///
/// # Errors
/// SQL_SYNTAX, SQL_INVALID or SQL_UNSUPPORTED for the first fault, with line and column in `text`.
pub fn parse_script(text: &str) -> Result<Script, Error> {
    let dialect = FlinkDialect;
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| into_error(error.into(), Position::START))?;
    let end = tokens.last().map_or(Position::START, |token| token.span.end.into());
    limits::check(&tokens).map_err(|error| into_error(error, end))?;
    let locator = Locator::new(&tokens);
    let mut parser = ScriptParser::new(&dialect, tokens, locator);
    match parser.statements() {
        Ok(statements) => Ok(Script { statements, locator: parser.locator }),
        Err(error) => {
            // What carries no place ends either the text or, by its depth, the statement.
            let fallback = if error == ParserError::RecursionLimitExceeded { parser.statement_start } else { end };
            Err(into_error(error, fallback))
        }
    }
}

/// The parser and what it needs to tell where it is.
pub(super) struct ScriptParser<'d> {
    pub(super) parser: Parser<'d>,
    pub(super) locator: Locator,
    statement_start: Position,
}

impl<'d> ScriptParser<'d> {
    fn new(dialect: &'d FlinkDialect, tokens: Vec<TokenWithSpan>, locator: Locator) -> Self {
        let parser =
            Parser::new(dialect).with_recursion_limit(limits::MAX_RECURSION).with_tokens_with_locations(tokens);
        Self { parser, locator, statement_start: Position::START }
    }

    fn statements(&mut self) -> Result<Vec<Statement>, ParserError> {
        let mut statements = Vec::new();
        loop {
            while self.parser.consume_token(&Token::SemiColon) {}
            if self.at_end() {
                return Ok(statements);
            }
            let is_optional = self.creates_if_not_exists();
            let statement = self.statement()?;
            self.end_of_statement()?;
            let exists = created(&statement)
                .is_some_and(|name| statements.iter().filter_map(created).any(|earlier| earlier == name));
            // What is there already stays as it is.
            if !(is_optional && exists) {
                statements.push(statement);
            }
        }
    }

    /// Whether the next statement is CREATE … IF NOT EXISTS.
    fn creates_if_not_exists(&self) -> bool {
        let is = |n, word| peeks_word(&self.parser, n, word);
        let kind = 1 + usize::from(is(1, "TEMPORARY"));
        is(0, "CREATE") && is(kind + 1, "IF") && is(kind + 2, "NOT") && is(kind + 3, "EXISTS")
    }

    fn at_end(&self) -> bool {
        self.parser.peek_token_ref().token == Token::EOF
    }

    fn end_of_statement(&mut self) -> Result<(), ParserError> {
        if self.at_end() || self.parser.consume_token(&Token::SemiColon) {
            return Ok(());
        }
        self.parser.expected("the end of the statement", self.parser.peek_token())
    }

    fn statement(&mut self) -> Result<Statement, ParserError> {
        let at = location(&self.parser);
        self.statement_start = at.into();
        if accept_word(&mut self.parser, "CREATE") {
            return self.create(at);
        }
        if peeks_word(&self.parser, 0, "INSERT") {
            return Ok(Statement::Inserts(vec![self.insert()?]));
        }
        if accept_word(&mut self.parser, "SET") {
            return self.set(at);
        }
        if accept_words(&mut self.parser, &["EXECUTE", "STATEMENT", "SET"]) {
            expect_word(&mut self.parser, "BEGIN")?;
            return self.statement_set(at);
        }
        if accept_words(&mut self.parser, &["BEGIN", "STATEMENT", "SET"]) {
            self.parser.expect_token(&Token::SemiColon)?;
            return self.statement_set(at);
        }
        if accept_word(&mut self.parser, "EXPLAIN") {
            accept_words(&mut self.parser, &["PLAN", "FOR"]);
            return Ok(Statement::Explain(self.insert()?));
        }
        if accept_word(&mut self.parser, "EXECUTE") {
            return Ok(Statement::Inserts(vec![self.insert()?]));
        }
        self.other(at)
    }

    fn create(&mut self, at: Location) -> Result<Statement, ParserError> {
        if accept_words(&mut self.parser, &["OR", "REPLACE"]) {
            return Err(refused(at, "OR REPLACE is not supported", "a script starts empty: write CREATE alone"));
        }
        accept_word(&mut self.parser, "TEMPORARY");
        if accept_word(&mut self.parser, "TABLE") {
            return create_table::parse(self).map(Statement::CreateTable);
        }
        if accept_word(&mut self.parser, "VIEW") {
            return self.view().map(Statement::CreateView);
        }
        let kind = self.parser.peek_token().token.to_string();
        let way_out = "CREATE TABLE and CREATE VIEW are what a script can create";
        Err(refused(at, format!("CREATE {kind} is not supported"), way_out))
    }

    fn view(&mut self) -> Result<View, ParserError> {
        accept_words(&mut self.parser, &["IF", "NOT", "EXISTS"]);
        let (name, position) = self.name()?;
        let columns = self.column_list()?;
        if accept_word(&mut self.parser, "COMMENT") {
            literal(&mut self.parser)?;
        }
        expect_word(&mut self.parser, "AS")?;
        Ok(View { name, columns, query: self.query()?, position })
    }

    fn insert(&mut self) -> Result<Insert, ParserError> {
        let at = location(&self.parser);
        expect_word(&mut self.parser, "INSERT")?;
        if accept_word(&mut self.parser, "OVERWRITE") {
            let way_out = "write INSERT INTO; remove old output before the job starts";
            return Err(refused(at, "INSERT OVERWRITE is for bounded batch jobs", way_out));
        }
        expect_word(&mut self.parser, "INTO")?;
        let (target, target_position) = self.name()?;
        if peeks_word(&self.parser, 0, "PARTITION") {
            let way_out = "select the partition's value as a column";
            return Err(refused(location(&self.parser), "INSERT … PARTITION is not supported", way_out));
        }
        // `(SELECT …)` is a query, not a list of columns.
        let is_query = ["SELECT", "WITH", "VALUES"].iter().any(|word| peeks_word(&self.parser, 1, word))
            || self.parser.peek_nth_token_ref(1).token == Token::LParen;
        let columns = if is_query { None } else { self.column_list()? };
        let query = self.query()?;
        Ok(Insert { target, target_position, columns, query, extent: self.extent_from(at) })
    }

    fn statement_set(&mut self, at: Location) -> Result<Statement, ParserError> {
        let mut inserts = Vec::new();
        loop {
            while self.parser.consume_token(&Token::SemiColon) {}
            if accept_word(&mut self.parser, "END") {
                break;
            }
            if !peeks_word(&self.parser, 0, "INSERT") {
                return self.parser.expected("INSERT INTO or END", self.parser.peek_token());
            }
            inserts.push(self.insert()?);
            self.parser.expect_token(&Token::SemiColon)?;
        }
        if inserts.is_empty() {
            return Err(malformed(
                at,
                "the statement set is empty",
                "put INSERT INTO statements between BEGIN and END",
            ));
        }
        Ok(Statement::Inserts(inserts))
    }

    fn set(&mut self, at: Location) -> Result<Statement, ParserError> {
        if !matches!(self.parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
            return Err(malformed(at, "SET wants key and value in quotes", "write SET 'key' = 'value';"));
        }
        let position = location(&self.parser).into();
        let key = literal(&mut self.parser)?;
        self.parser.expect_token(&Token::Eq)?;
        Ok(Statement::Set { key, value: literal(&mut self.parser)?, position })
    }

    fn other(&mut self, at: Location) -> Result<Statement, ParserError> {
        const QUERIES: [&str; 3] = ["SELECT", "WITH", "VALUES"];
        const REFUSED: [&str; 14] = [
            "DROP", "ALTER", "SHOW", "DESCRIBE", "DESC", "USE", "RESET", "UPDATE", "DELETE", "LOAD", "UNLOAD",
            "ANALYZE", "TRUNCATE", "CALL",
        ];
        let is = |words: &[&'static str]| words.iter().copied().find(|word| peeks_word(&self.parser, 0, word));
        if is(&QUERIES).is_some() || self.parser.peek_token_ref().token == Token::LParen {
            let way_out = "send its rows somewhere: INSERT INTO t SELECT …, where t may have 'connector' = 'print'";
            return Err(refused(at, "a query alone is no job", way_out));
        }
        if let Some(word) = is(&REFUSED) {
            let way_out = "a script creates tables and views, sets options and inserts";
            return Err(refused(at, format!("{word} is not supported"), way_out));
        }
        self.parser.expected("CREATE, INSERT INTO, SET or EXECUTE STATEMENT SET", self.parser.peek_token())
    }

    pub(super) fn query(&mut self) -> Result<Query, ParserError> {
        let at = location(&self.parser);
        let first = self.parser.get_current_index() + 1;
        let mut ast = self.parser.parse_query()?;
        table_functions::resolve(&mut ast, at)?;
        fields::resolve(&mut ast);
        let text = self.text_between(first, self.parser.get_current_index() + 1);
        Ok(Query { ast, text, extent: self.extent_from(at), position: at.into() })
    }

    /// A name of one part. Catalogs and databases are Flink's; a script has one of each.
    pub(super) fn name(&mut self) -> Result<(String, Position), ParserError> {
        let at = location(&self.parser);
        let name = self.parser.parse_identifier()?.value;
        if self.parser.peek_token_ref().token == Token::Period {
            let way_out =
                format!("name it without catalog and database, or put the whole name into backquotes: `{name}.…`");
            return Err(refused(at, "names of several parts are not supported", way_out));
        }
        Ok((name, at.into()))
    }

    /// `(a, b)`, if there.
    pub(super) fn column_list(&mut self) -> Result<Option<Vec<String>>, ParserError> {
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(None);
        }
        let names = self.parser.parse_comma_separated(|parser| {
            let name = parser.parse_identifier()?.value;
            if peeks_word(parser, 0, "COMMENT") {
                parser.advance_token();
                literal(parser)?;
            }
            Ok(name)
        })?;
        self.parser.expect_token(&Token::RParen)?;
        Ok(Some(names))
    }

    /// From a place up to the token before the next one.
    pub(super) fn extent_from(&self, at: Location) -> Extent {
        let start = self.locator.index_at(at.into());
        let next = self.parser.peek_token_ref();
        let end = if next.token == Token::EOF {
            self.locator.whole().end
        } else {
            self.locator.index_at(next.span.start.into())
        };
        start..end.max(start)
    }

    /// The text of the tokens from one index of the parser up to another, without blanks around it.
    pub(super) fn text_between(&self, first: usize, end: usize) -> String {
        let text: String = (first..end).map(|i| self.parser.token_at(i).token.to_string()).collect();
        text.trim().to_owned()
    }
}

/// The name of what a statement creates.
fn created(statement: &Statement) -> Option<&str> {
    match statement {
        Statement::CreateTable(table) => Some(&table.name),
        Statement::CreateView(view) => Some(&view.name),
        _ => None,
    }
}
