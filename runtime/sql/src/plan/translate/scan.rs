//! Reading a table: a table's node is shared by all that read it, each takes the columns it needs.

use datafusion::logical_expr::TableScan;
use streamkeeper_engine::Changelog;
use streamkeeper_types::{Error, Result};

use super::Translator;
use crate::plan::{source::SourceTable, stream::Stream};

impl Translator<'_> {
    pub(super) fn scan(&mut self, scan: &TableScan) -> Result<Stream> {
        let table = scan.source.downcast_ref::<SourceTable>();
        let table =
            table.ok_or_else(|| Error::internal(format!("{} is no table of the catalogue", scan.table_name)))?;
        let name = &table.table.name;
        let source = self.sources.get(name).ok_or_else(|| Error::internal(format!("table {name} has no source")))?;
        let used = scan.projection.clone().unwrap_or_else(|| (0..table.schema.fields().len()).collect());
        let columns = used
            .into_iter()
            .map(|index| match source.columns.get(&index) {
                Some(column) => Ok(column.clone()),
                None => Err(Error::internal(format!("column {index} of table {name} is not read"))),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Stream::of_node(source.node, Changelog::InsertOnly, columns, source.lineage.clone()))
    }
}
