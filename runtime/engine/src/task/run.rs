//! From a deployment to a running loop: operators are made, state is put in place, then records flow.

use std::{sync::Arc, time::Instant};

use crossbeam_channel::Receiver;
use streamkeeper_protocol::{TaskState, ToTask};
use streamkeeper_types::{Result, Watermark};

use super::{
    TaskEnvironment, TaskSpec, TaskWiring,
    chain::{Chain, Link},
    core::{Core, Counters},
    keyed::{self, Uploader},
    operator_task::OperatorTask,
    rate_limit::{self, RateLimit},
    reporter::Reporter,
    router::Router,
    snapshots::Snapshots,
    source_head::{self, SourceHead},
    source_task::{SourceSetup, SourceTask},
    source_watermarks::SourceWatermarks,
    time::TimeSheet,
};
use crate::{
    Node, NodeFactory, OperatorContext, OperatorFactory, OperatorMetrics, OperatorRestore, SourceContext, SubtaskInfo,
};

/// How a task ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskEnd {
    Finished,
    Cancelled,
}

/// Runs one attempt from its start to its end, on this thread.
pub(super) fn run(
    spec: TaskSpec,
    wiring: TaskWiring,
    environment: &TaskEnvironment,
    commands: Receiver<ToTask>,
) -> Result<TaskEnd> {
    let reporter = Reporter::new(spec.attempt, environment.reports.clone());
    let builder = Builder { spec: &spec, environment };
    let mut source = None;
    let mut links = Vec::with_capacity(spec.vertex.nodes.len());
    for node in &spec.vertex.nodes {
        match &node.factory {
            NodeFactory::Source { .. } => source = Some(builder.source(node)?),
            NodeFactory::Operator(factory) => links.push(builder.link(node, factory.as_ref())?),
        }
    }
    let core = Core {
        chain: Chain::new(links, Router::new(wiring.outputs)),
        snapshots: Snapshots::new(
            reporter.clone(),
            environment.uploads.clone(),
            Uploader::new(environment, spec.attempt),
        ),
        reporter: reporter.clone(),
        clock: Arc::clone(&environment.clock),
        commands,
        interrupt: wiring.interrupt,
        time: TimeSheet::start(Instant::now()),
        counters: Counters::default(),
    };
    reporter.state(TaskState::Running);
    match (source, wiring.input) {
        (Some(setup), _) => SourceTask::new(core, setup).run(),
        (None, Some(input)) => OperatorTask::new(core, input, environment.batch_rows, environment.flush_timeout).run(),
        (None, None) => Err(streamkeeper_types::Error::internal("a task has neither a source nor an input")),
    }
}

struct Builder<'a> {
    spec: &'a TaskSpec,
    environment: &'a TaskEnvironment,
}

impl Builder<'_> {
    fn info(&self, node: &Node) -> SubtaskInfo {
        SubtaskInfo {
            operator: node.id,
            name: node.name.clone(),
            subtask: self.spec.attempt.subtask,
            parallelism: self.spec.vertex.parallelism,
            max_parallelism: self.spec.max_parallelism,
        }
    }

    fn restore(&self, node: &Node) -> OperatorRestore {
        self.spec.restore.get(&node.id).cloned().unwrap_or_default()
    }

    fn source(&self, node: &Node) -> Result<SourceSetup> {
        let NodeFactory::Source { source, prelude, watermark, rate_limit, idle_wait } = &node.factory else {
            return Err(streamkeeper_types::Error::internal(format!("{} is no source", node.name)));
        };
        let info = self.info(node);
        let restore = self.restore(node);
        let metrics = Arc::new(OperatorMetrics::default());
        let context = SourceContext {
            clock: Arc::clone(&self.environment.clock),
            metrics: Arc::clone(&metrics),
            batch_rows: rate_limit::batch_rows(*rate_limit, info.parallelism, self.environment.batch_rows),
        };
        let needed = !restore.finished || source_head::holds_extra(&restore.lists);
        let reader = needed.then(|| source.reader(&info, context)).transpose().map_err(|e| e.at(info.name.clone()))?;
        let watermarks = watermark.clone().map(SourceWatermarks::new);
        let mut head = SourceHead::new(&info, reader, prelude.clone(), metrics, watermarks);
        head.restore(&restore.lists).map_err(|e| e.at(info.name.clone()))?;
        Ok(SourceSetup {
            head,
            rate_limit: rate_limit.map(|limit| RateLimit::new(limit, info.parallelism, Instant::now())),
            idle_wait: *idle_wait,
            finished_on_restore: restore.finished,
        })
    }

    fn link(&self, node: &Node, factory: &dyn OperatorFactory) -> Result<Link> {
        let info = self.info(node);
        let restore = self.restore(node);
        let place = info.name.clone();
        self.open_link(info, restore, factory).map_err(|e| e.at(place))
    }

    fn open_link(&self, info: SubtaskInfo, restore: OperatorRestore, factory: &dyn OperatorFactory) -> Result<Link> {
        let tables = if restore.finished { Vec::new() } else { factory.tables() };
        let state = keyed::open(self.environment, self.spec.attempt, &info, tables, &restore)?;
        let mut context = OperatorContext {
            info,
            state,
            watermark: Watermark::MIN,
            clock: Arc::clone(&self.environment.clock),
            metrics: Arc::new(OperatorMetrics::default()),
        };
        // A finished sink may still hold what is to be committed (R17); anything else finished stays closed (B26).
        let needed = !restore.finished || restore.lists.lists.values().any(|items| !items.is_empty());
        let mut operator = needed.then(|| factory.create(&context.info)).transpose()?;
        if let Some(operator) = operator.as_mut() {
            operator.open(&restore.lists, &mut context)?;
        }
        Ok(Link { operator, context, finished_on_restore: restore.finished })
    }
}
