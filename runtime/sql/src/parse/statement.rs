//! What a script consists of.

use datafusion::sql::sqlparser::ast;

use crate::{
    catalog::{Table, View},
    position::{Extent, Position},
};

/// One statement of a script.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a script has few statements, and they are not moved about")]
pub enum Statement {
    CreateTable(Table),
    CreateView(View),
    /// `SET 'key' = 'value'`.
    Set {
        key: String,
        value: String,
        position: Position,
    },
    /// A lone INSERT is a set of one. Inserts of one set, and all sets of a script, run as one job.
    Inserts(Vec<Insert>),
    /// `EXPLAIN …`: the plan is shown, nothing runs.
    Explain(Insert),
}

/// `INSERT INTO target [(columns)] query`.
#[derive(Debug, Clone)]
pub struct Insert {
    pub target: String,
    pub target_position: Position,
    /// Columns that the query's columns go to, in order; `None` means all physical ones.
    pub columns: Option<Vec<String>>,
    pub query: Query,
    /// The whole statement.
    pub extent: Extent,
}

/// A query with its place in the text.
#[derive(Debug, Clone)]
pub struct Query {
    /// Without Flink's special forms: DataFusion's `SqlToRel` reads it as it is.
    pub ast: Box<ast::Query>,
    pub text: String,
    pub extent: Extent,
    pub position: Position,
}
