//! CREATE TABLE as Flink has it, behind the words `CREATE TABLE`.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::{
    parser::ParserError,
    tokenizer::{Location, Token},
};

use super::{
    cursor::{accept_word, accept_words, expect_word, literal, location, peeks_word},
    fault::{invalid, malformed, refused},
    fields,
    script::ScriptParser,
    table_functions,
};
use crate::{
    catalog::{Column, ColumnKind, Expression, Table, TableOption, Watermark},
    position::Position,
    types::parse_data_type,
};

/// Names within a table, with their places.
type Names = Vec<(String, Location)>;

pub(super) fn parse(script: &mut ScriptParser) -> Result<Table, ParserError> {
    let at = location(&script.parser);
    accept_words(&mut script.parser, &["IF", "NOT", "EXISTS"]);
    let (name, position) = script.name()?;
    let mut table = Elements::default();
    if script.parser.consume_token(&Token::LParen) {
        loop {
            table.element(script)?;
            if !script.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        script.parser.expect_token(&Token::RParen)?;
    } else if !peeks_word(&script.parser, 0, "LIKE") && !peeks_word(&script.parser, 0, "AS") {
        return script.parser.expected("( and the columns", script.parser.peek_token());
    }
    let comment = comment(script)?;
    if peeks_word(&script.parser, 0, "DISTRIBUTED") {
        let at = location(&script.parser);
        return Err(refused(at, "DISTRIBUTED is not supported", "leave it out: keys decide the distribution"));
    }
    let partitioned_by = if accept_words(&mut script.parser, &["PARTITIONED", "BY"]) { names(script)? } else { vec![] };
    let options = if accept_word(&mut script.parser, "WITH") { options(script)? } else { BTreeMap::new() };
    for (word, what) in [("LIKE", "CREATE TABLE … LIKE"), ("AS", "CREATE TABLE … AS")] {
        if peeks_word(&script.parser, 0, word) {
            let at = location(&script.parser);
            return Err(refused(at, format!("{what} is not supported"), "write out the columns and options"));
        }
    }
    table.finish(
        Table {
            name,
            columns: vec![],
            watermark: None,
            primary_key: vec![],
            partitioned_by: vec![],
            comment,
            options,
            position,
            extent: script.extent_from(at),
        },
        partitioned_by,
    )
}

/// What stands between the parentheses.
#[derive(Default)]
struct Elements {
    columns: Vec<(Column, Location)>,
    watermark: Option<(Watermark, Location)>,
    primary_key: Option<Names>,
}

impl Elements {
    fn element(&mut self, script: &mut ScriptParser) -> Result<(), ParserError> {
        let at = location(&script.parser);
        let parser = &mut script.parser;
        // A column may have such a name as well, so the next word decides.
        if peeks_word(parser, 0, "WATERMARK") && peeks_word(parser, 1, "FOR") {
            return self.watermark(script, at);
        }
        let named = peeks_word(parser, 0, "CONSTRAINT") && peeks_word(parser, 2, "PRIMARY");
        if named {
            parser.advance_token();
            parser.advance_token();
        }
        if accept_words(parser, &["PRIMARY", "KEY"]) {
            let key = names(script)?;
            not_enforced(script, at)?;
            return self.key(key, at);
        }
        if peeks_word(parser, 0, "UNIQUE") && parser.peek_nth_token_ref(1).token == Token::LParen {
            return Err(refused(at, "UNIQUE is not supported", "declare PRIMARY KEY (…) NOT ENFORCED"));
        }
        self.column(script, at)
    }

    fn column(&mut self, script: &mut ScriptParser, at: Location) -> Result<(), ParserError> {
        let name = script.parser.parse_identifier()?.value;
        if accept_word(&mut script.parser, "AS") {
            let expr = expression(script)?;
            let comment = comment(script)?;
            let column = Column { name, kind: ColumnKind::Computed(expr), comment, position: at.into() };
            self.columns.push((column, at));
            return Ok(());
        }
        let data_type = parse_data_type(&mut script.parser)?;
        let mut nullable = true;
        let mut note = None;
        loop {
            let here = location(&script.parser);
            if accept_words(&mut script.parser, &["NOT", "NULL"]) {
                nullable = false;
            } else if accept_word(&mut script.parser, "NULL") {
            } else if peeks_word(&script.parser, 0, "METADATA") {
                let way_out = "make it a plain column of the data, or a computed one: name AS expression";
                return Err(refused(here, "METADATA columns are not supported yet", way_out));
            } else if accept_words(&mut script.parser, &["PRIMARY", "KEY"]) {
                not_enforced(script, here)?;
                self.key(vec![(name.clone(), at)], here)?;
            } else if peeks_word(&script.parser, 0, "CONSTRAINT") {
                script.parser.advance_token();
                script.parser.parse_identifier()?;
            } else if peeks_word(&script.parser, 0, "DEFAULT") || peeks_word(&script.parser, 0, "UNIQUE") {
                let word = script.parser.peek_token().token.to_string().to_ascii_uppercase();
                return Err(refused(here, format!("{word} is not supported for a column"), "leave it out"));
            } else if let Some(text) = comment(script)? {
                note = Some(text);
            } else {
                break;
            }
        }
        let column = Column {
            name,
            kind: ColumnKind::Physical { data_type, nullable },
            comment: note,
            position: Position::from(at),
        };
        self.columns.push((column, at));
        Ok(())
    }

    fn watermark(&mut self, script: &mut ScriptParser, at: Location) -> Result<(), ParserError> {
        script.parser.advance_token();
        script.parser.advance_token();
        let column_at = location(&script.parser);
        let column = script.parser.parse_identifier()?.value;
        if script.parser.peek_token_ref().token == Token::Period {
            let way_out = format!("add a computed column: ts AS {column}.…, and declare the watermark for it");
            return Err(refused(column_at, "a watermark for a field of a ROW is not supported", way_out));
        }
        expect_word(&mut script.parser, "AS")?;
        let expr = expression(script)?;
        if self.watermark.is_some() {
            return Err(invalid(at, "the table has two watermarks", "keep the one for the column that windows use"));
        }
        self.watermark = Some((Watermark { column, expr, position: at.into() }, column_at));
        Ok(())
    }

    fn key(&mut self, key: Names, at: Location) -> Result<(), ParserError> {
        if self.primary_key.is_some() {
            let way_out = "name all its columns in one: PRIMARY KEY (a, b) NOT ENFORCED";
            return Err(invalid(at, "the table has two primary keys", way_out));
        }
        self.primary_key = Some(key);
        Ok(())
    }

    /// Checks that the parts fit each other.
    fn finish(self, mut table: Table, partitioned_by: Names) -> Result<Table, ParserError> {
        for (i, (column, at)) in self.columns.iter().enumerate() {
            if self.columns[..i].iter().any(|(other, _)| other.name == column.name) {
                let cause = format!("the table has two columns `{}`", column.name);
                return Err(invalid(*at, cause, "rename one of them"));
            }
        }
        if self.columns.iter().all(|(column, _)| matches!(column.kind, ColumnKind::Computed(_))) {
            let at = self.columns.first().map_or(Location { line: 0, column: 0 }, |(_, at)| *at);
            return Err(invalid(at, "the table has no physical column", "declare at least one column with a type"));
        }
        table.columns = self.columns.into_iter().map(|(column, _)| column).collect();
        if let Some((watermark, at)) = self.watermark {
            known(&table, &watermark.column, at)?;
            table.watermark = Some(watermark);
        }
        for (name, at) in self.primary_key.unwrap_or_default() {
            match &mut physical(&mut table, &name, at)?.kind {
                // A key's columns are never NULL, as in Flink.
                ColumnKind::Physical { nullable, .. } => *nullable = false,
                ColumnKind::Computed(_) => {}
            }
            table.primary_key.push(name);
        }
        for (name, at) in partitioned_by {
            physical(&mut table, &name, at)?;
            table.partitioned_by.push(name);
        }
        Ok(table)
    }
}

fn known<'t>(table: &'t Table, name: &str, at: Location) -> Result<&'t Column, ParserError> {
    table.column(name).ok_or_else(|| {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        invalid(at, format!("the table has no column `{name}`"), format!("its columns are {}", names.join(", ")))
    })
}

fn physical<'t>(table: &'t mut Table, name: &str, at: Location) -> Result<&'t mut Column, ParserError> {
    known(table, name, at)?;
    let found = table.columns.iter_mut().find(|column| column.name == name);
    match found {
        Some(column) if matches!(column.kind, ColumnKind::Physical { .. }) => Ok(column),
        _ => Err(invalid(at, format!("`{name}` is a computed column"), "name a column that has a type of its own")),
    }
}

fn expression(script: &mut ScriptParser) -> Result<Expression, ParserError> {
    let at = location(&script.parser);
    let first = script.parser.get_current_index() + 1;
    let mut ast = script.parser.parse_expr()?;
    table_functions::refuse_in(&ast, at)?;
    fields::resolve(&mut ast);
    let text = script.text_between(first, script.parser.get_current_index() + 1);
    Ok(Expression { text, ast, position: at.into(), extent: script.extent_from(at) })
}

fn comment(script: &mut ScriptParser) -> Result<Option<String>, ParserError> {
    if accept_word(&mut script.parser, "COMMENT") { literal(&mut script.parser).map(Some) } else { Ok(None) }
}

fn not_enforced(script: &mut ScriptParser, at: Location) -> Result<(), ParserError> {
    if accept_words(&mut script.parser, &["NOT", "ENFORCED"]) {
        return Ok(());
    }
    Err(refused(at, "a primary key is not enforced by a stream", "write PRIMARY KEY (…) NOT ENFORCED"))
}

fn names(script: &mut ScriptParser) -> Result<Names, ParserError> {
    script.parser.expect_token(&Token::LParen)?;
    let names = script.parser.parse_comma_separated(|parser| {
        let at = location(parser);
        Ok((parser.parse_identifier()?.value, at))
    })?;
    script.parser.expect_token(&Token::RParen)?;
    for (i, (name, at)) in names.iter().enumerate() {
        if names[..i].iter().any(|(other, _)| other == name) {
            return Err(malformed(*at, format!("`{name}` is named twice"), "name it once"));
        }
    }
    Ok(names)
}

fn options(script: &mut ScriptParser) -> Result<BTreeMap<String, TableOption>, ParserError> {
    let mut options = BTreeMap::new();
    script.parser.expect_token(&Token::LParen)?;
    loop {
        let key_at = location(&script.parser);
        let key = literal(&mut script.parser)?;
        script.parser.expect_token(&Token::Eq)?;
        let value_at = location(&script.parser);
        let value = literal(&mut script.parser)?;
        let option = TableOption { value, key_position: key_at.into(), value_position: value_at.into() };
        if options.insert(key.clone(), option).is_some() {
            return Err(invalid(key_at, format!("option '{key}' is there twice"), "keep one of them"));
        }
        if !script.parser.consume_token(&Token::Comma) {
            break;
        }
    }
    script.parser.expect_token(&Token::RParen)?;
    Ok(options)
}
