//! What CREATE TABLE and CREATE VIEW declare.

use std::{collections::BTreeMap, sync::Arc};

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast;
use streamkeeper_types::{
    Error,
    options::{self, OptionProblem, OptionSpec},
};

use crate::{
    parse::Query,
    position::{Extent, Position},
    types::SqlType,
};

/// A declared table: source, sink or both.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub watermark: Option<Watermark>,
    /// Names of physical columns; empty without a key. Nobody enforces it.
    pub primary_key: Vec<String>,
    pub partitioned_by: Vec<String>,
    pub comment: Option<String>,
    /// The WITH clause, by key.
    pub options: BTreeMap<String, TableOption>,
    pub position: Position,
    pub extent: Extent,
}

/// A value of the WITH clause and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOption {
    pub value: String,
    pub key_position: Position,
    pub value_position: Position,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub comment: Option<String>,
    pub position: Position,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a script has few columns, and they are not moved about")]
pub enum ColumnKind {
    /// Part of the data.
    Physical { data_type: SqlType, nullable: bool },
    /// Computed from other columns when rows are read; its type is the expression's.
    Computed(Expression),
}

/// An expression of the DDL.
#[derive(Debug, Clone)]
pub struct Expression {
    pub text: String,
    pub ast: ast::Expr,
    pub position: Position,
    pub extent: Extent,
}

/// `WATERMARK FOR column AS expr`.
#[derive(Debug, Clone)]
pub struct Watermark {
    pub column: String,
    pub expr: Expression,
    pub position: Position,
}

/// A named query.
#[derive(Debug, Clone)]
pub struct View {
    pub name: String,
    /// Names for the query's columns, in order.
    pub columns: Option<Vec<String>>,
    pub query: Query,
    pub position: Position,
}

impl Table {
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The columns that connectors read and write, in order.
    #[must_use]
    pub fn physical_schema(&self) -> SchemaRef {
        let fields = self.columns.iter().filter_map(|column| match &column.kind {
            ColumnKind::Physical { data_type, nullable } => {
                Some(Field::new(&column.name, data_type.arrow(), *nullable))
            }
            ColumnKind::Computed(_) => None,
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The value of an option.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(|option| option.value.as_str())
    }

    /// The WITH clause without places, as connectors take it.
    #[must_use]
    pub fn plain_options(&self) -> BTreeMap<String, String> {
        self.options.iter().map(|(key, option)| (key.clone(), option.value.clone())).collect()
    }

    /// Checks the WITH clause against everything that may stand in it.
    ///
    /// # Errors
    /// OPTION_INVALID with all faults at once and their places.
    pub fn check_options(&self, specs: &[OptionSpec]) -> Result<(), Error> {
        let faults = options::validate(&self.plain_options(), specs);
        let place = |fault: &options::OptionFault| {
            let option = self.options.get(&fault.key);
            let position = match (fault.problem, option) {
                (OptionProblem::Unknown, Some(option)) => option.key_position,
                (OptionProblem::WrongValue, Some(option)) => option.value_position,
                _ => self.position,
            };
            Some(position.to_string())
        };
        match options::to_error(&faults, place) {
            Some(error) => Err(error.at(format!("table `{}`", self.name))),
            None => Ok(()),
        }
    }
}
