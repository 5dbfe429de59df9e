//! [`plan_script`]: statement by statement to one graph.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    thread,
};

use chrono_tz::Tz;
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    logical_expr::LogicalPlan,
};
use streamkeeper_engine::StreamGraph;
use streamkeeper_types::{Code, Error, Result};

use super::{
    fault::{Scope, Spot},
    graph::GraphBuilder,
    logical::Analyst,
    settings::Settings,
    sink,
    source::{SourceNode, SourceTable, connector_of},
    translate::Translator,
};
use crate::{
    catalog::{Catalog, Relation, Table, TableOption},
    explain::{self, Format},
    parse::{Insert, Script, Statement, parse_script},
    position::Position,
};

/// Address space for planning's stack; memory only as far as it is used.
const STACK_BYTES: usize = 256 << 20;

/// What planning must know besides the text.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// `<namespace>/<name>` of the job.
    pub job: String,
    /// Folder from which relative paths are resolved: that of the StreamJob's file.
    pub base_dir: PathBuf,
    /// The session's zone, unless the text or `config` sets `table.local-time-zone`.
    pub zone: Tz,
    /// Settings of the StreamJob, as SET would make them.
    pub config: BTreeMap<String, String>,
    /// Options that take the place of a table's own, by table: tests read their lines through them.
    pub table_options: BTreeMap<String, BTreeMap<String, String>>,
}

/// A script as a dataflow.
#[derive(Clone)]
pub struct Plan {
    pub graph: StreamGraph,
    /// The script's INSERTs in order; each ends in one sink of the graph.
    pub inserts: Vec<PlannedInsert>,
    /// The script asks for its plan (EXPLAIN): it is shown and nothing runs.
    pub explain_only: bool,
}

/// One INSERT INTO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedInsert {
    pub target: String,
    /// Where the target stands in the text.
    pub position: Position,
}

impl Plan {
    /// The dataflow as text.
    #[must_use]
    pub fn explain(&self, format: Format) -> String {
        explain::explain(&self.graph, format)
    }
}

/// Plans a whole script as one job. The same text and options give an equal graph in every process of one binary.
///
/// # Errors
/// `SQL_SYNTAX`, `SQL_INVALID`, `SQL_UNSUPPORTED` or `OPTION_INVALID` with line and column; `INTERNAL` for a bug.
pub fn plan_script(text: &str, options: &PlanOptions) -> Result<Plan> {
    // A thread of its own has room for plans as deep as nested views make them. It also holds back a panic of
    // DataFusion, which leaves nothing half done, since planning shares nothing.
    thread::scope(|scope| {
        let planner = thread::Builder::new().name("planner".to_owned()).stack_size(STACK_BYTES);
        let planner = planner.spawn_scoped(scope, || plan(text, options));
        let planner =
            planner.map_err(|error| Error::new(Code::MemoryExceeded, format!("no thread to plan in: {error}")))?;
        planner.join().unwrap_or_else(|panic| {
            Err(Error::internal(format!("planning failed: {}", panic_text(panic.as_ref())))
                .way_out("write the query in another way, and report this text as a bug"))
        })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

fn plan(text: &str, options: &PlanOptions) -> Result<Plan> {
    let mut script = parse_script(text)?;
    replace_options(&mut script, &options.table_options);
    let catalog = Arc::new(Catalog::from_script(&script)?);
    check_tables(&catalog)?;
    let inserts = inserts(&script, options)?;
    let Some(first) = inserts.first() else {
        return Err(Position::START
            .error(Code::SqlInvalid, "the script has no INSERT INTO")
            .way_out("send rows somewhere: INSERT INTO t SELECT …"));
    };
    let explain_only = first.explains;
    check_views(&script, &catalog, &first.settings)?;
    let mut queries = Vec::with_capacity(inserts.len());
    for insert in inserts {
        queries.push(Query::new(insert, &script, &catalog)?);
    }
    let mut graph = GraphBuilder::default();
    let sources = add_sources(&queries, &mut graph, options)?;
    let mut planned = Vec::with_capacity(queries.len());
    for query in &queries {
        query.translate(&mut graph, &sources, options)?;
        planned.push(PlannedInsert { target: query.table.name.clone(), position: query.insert.target_position });
    }
    Ok(Plan { graph: graph.graph, inserts: planned, explain_only })
}

/// Gives tables other options than the text does. They keep the place of the table in messages.
fn replace_options(script: &mut Script, by_table: &BTreeMap<String, BTreeMap<String, String>>) {
    for statement in &mut script.statements {
        let Statement::CreateTable(table) = statement else { continue };
        let Some(options) = by_table.get(&table.name) else { continue };
        let position = table.position;
        let option =
            |value: &String| TableOption { value: value.clone(), key_position: position, value_position: position };
        table.options = options.iter().map(|(key, value)| (key.clone(), option(value))).collect();
    }
}

/// Checks the WITH clauses of all tables, used or not.
fn check_tables(catalog: &Catalog) -> Result<()> {
    for (_, relation) in catalog.iter() {
        if let Relation::Table(table) = relation {
            table.check_options(connector_of(table)?.options())?;
        }
    }
    Ok(())
}

/// Plans every view once, used or not, so that its faults are told where it stands.
fn check_views(script: &Script, catalog: &Arc<Catalog>, settings: &Settings) -> Result<()> {
    let analyst = Analyst::new(Arc::clone(catalog), script.locator.clone(), settings);
    for statement in &script.statements {
        if let Statement::CreateView(view) = statement {
            let mut scope = Scope::new(script.locator.clone(), view.query.extent.clone());
            analyst.query(&view.query, &mut scope)?;
        }
    }
    Ok(())
}

/// An INSERT with the settings in force where it stands.
struct Ordered<'a> {
    insert: &'a Insert,
    settings: Settings,
    explains: bool,
}

fn inserts<'a>(script: &'a Script, options: &PlanOptions) -> Result<Vec<Ordered<'a>>> {
    let mut settings = Settings::new(options.zone, &options.config)?;
    let mut inserts = Vec::new();
    for statement in &script.statements {
        match statement {
            Statement::Set { key, value, position } => {
                settings.set(key, value).map_err(|error| error.at(position.to_string()))?;
            }
            Statement::Inserts(set) => {
                let ordered = |insert| Ordered { insert, settings: settings.clone(), explains: false };
                inserts.extend(set.iter().map(ordered));
            }
            Statement::Explain(insert) => {
                inserts.push(Ordered { insert, settings: settings.clone(), explains: true });
            }
            Statement::CreateTable(_) | Statement::CreateView(_) => {}
        }
    }
    // EXPLAIN shows one INSERT; others beside it would run.
    if let Some(explained) = inserts.iter().find(|insert| insert.explains)
        && inserts.len() > 1
    {
        let position = explained.insert.target_position;
        return Err(position
            .error(Code::SqlUnsupported, "EXPLAIN beside other statements that insert is not supported")
            .way_out("leave EXPLAIN out and use `streamkeeper plan`, which shows the whole job"));
    }
    Ok(inserts)
}

/// An INSERT with its logical plan.
struct Query<'a> {
    insert: &'a Insert,
    table: Arc<Table>,
    settings: Settings,
    analyst: Analyst,
    scope: Scope,
    plan: LogicalPlan,
}

impl<'a> Query<'a> {
    fn new(ordered: Ordered<'a>, script: &Script, catalog: &Arc<Catalog>) -> Result<Self> {
        let Ordered { insert, settings, .. } = ordered;
        let table = match catalog.get(&insert.target) {
            Some(Relation::Table(table)) => Arc::clone(table),
            Some(Relation::View(_)) => {
                let cause = format!("`{}` is a view, nothing can be inserted into it", insert.target);
                return Err(insert.target_position.error(Code::SqlInvalid, cause).way_out("insert into a table"));
            }
            None => return Err(catalog.not_found(&insert.target, Some(insert.target_position))),
        };
        let analyst = Analyst::new(Arc::clone(catalog), script.locator.clone(), &settings);
        let mut scope = Scope::new(script.locator.clone(), insert.extent.clone());
        let plan = analyst.query(&insert.query, &mut scope)?;
        let plan = sink::fit(plan, insert, &table, &analyst, &scope)?;
        let plan = analyst.prune(plan, &scope)?;
        Ok(Self { insert, table, settings, analyst, scope, plan })
    }

    fn translate(
        &self,
        graph: &mut GraphBuilder,
        sources: &BTreeMap<String, SourceNode>,
        options: &PlanOptions,
    ) -> Result<()> {
        let Self { insert, table, settings, analyst, scope, plan } = self;
        let mut translator = Translator::new(graph, sources, analyst, scope, settings, &table.name, plan)?;
        let stream = translator.relation(plan)?;
        translator.sink(stream, insert, table, options)
    }
}

/// Adds a node for each table that is read, with all columns that any query reads.
fn add_sources(
    queries: &[Query],
    graph: &mut GraphBuilder,
    options: &PlanOptions,
) -> Result<BTreeMap<String, SourceNode>> {
    let mut sources = BTreeMap::new();
    let mut used: BTreeMap<String, (Arc<SourceTable>, BTreeSet<usize>, usize)> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        for (table, columns) in scans(query)? {
            let name = table.table.name.clone();
            let entry = used.entry(name.clone()).or_insert_with(|| {
                order.push(name);
                (table, BTreeSet::new(), number)
            });
            entry.1.extend(columns);
        }
    }
    for name in order {
        let Some((table, columns, first)) = used.remove(&name) else { continue };
        let query = &queries[first];
        let scope = Scope::new(query.analyst.locator().clone(), table.table.extent.clone());
        let node = table.add(&columns, graph, &query.analyst, &scope, &query.settings, options)?;
        sources.insert(name, node);
    }
    Ok(sources)
}

/// The tables that a query reads, with the columns of each.
fn scans(query: &Query) -> Result<Vec<(Arc<SourceTable>, Vec<usize>)>> {
    let mut scans = Vec::new();
    let visited = query.plan.apply(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let Some(source) = scan.source.downcast_ref::<SourceTable>() else { return Ok(TreeNodeRecursion::Continue) };
        let columns = scan.projection.clone().unwrap_or_else(|| (0..source.schema.fields().len()).collect());
        let table = query
            .analyst
            .table(&source.table)
            .map_err(|error| datafusion::common::DataFusionError::External(Box::new(error)))?;
        scans.push((table, columns));
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(|error| query.scope.datafusion(error, &[Spot::Clause(&["FROM"])]))?;
    Ok(scans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_told_by_their_text() {
        assert_eq!(panic_text(&"plain"), "plain");
        assert_eq!(panic_text(&"made".to_owned()), "made");
        assert_eq!(panic_text(&7), "no reason given");
    }
}
