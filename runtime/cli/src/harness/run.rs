//! One case in one variant, from planning to the folded rows of each sink.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono_tz::Tz;
use streamkeeper_api::state::StateBackend;
use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_engine::{NodeFactory, StreamGraph, SystemClock};
use streamkeeper_jobmanager::{
    engine::{Bounds, CheckpointOptions, SchedulerOptions, failover::RestartStrategy},
    shell::{JobHandle, JobOutcome, Phase},
};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_sql::{
    parse::{Statement, parse_script},
    plan::{PlanOptions, plan_script},
};
use streamkeeper_storage::FileStorage;
use streamkeeper_taskmanager::{
    TaskManagerOptions,
    local::{JobSpec, LocalJob, RestoreChoice, run_local},
};
use streamkeeper_types::{Code, Error, Result};

use super::{
    Case, ResumeFrom, Suite, Variant, fold,
    gate::{Gate, GatedSource},
    memory_sink::{MemorySink, Store},
};
use crate::launch::backend;

/// A run that does not move for so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rows a batch: few, so that batches, barriers and watermarks mix.
const BATCH_ROWS: usize = 7;
/// Inputs with fewer records than this are read one by one.
const SMALL_INPUT: u64 = 100;
const STATE_BYTES: u64 = 64 << 20;
const NETWORK_BYTES: u64 = 16 << 20;

/// Rows of each sink in the end, changelogs folded.
///
/// # Errors
/// Whatever planning or running says; `TEST_FAILED` for a job that stands still.
pub fn run(suite: &Suite, case: &Case, variant: &Variant) -> Result<BTreeMap<String, Vec<String>>> {
    let folder = tempfile::tempdir().map_err(|e| Error::io(Code::NotWritable, "a temporary folder", &e))?;
    let tables = inputs(suite, case, folder.path())?;
    let total: u64 = case.input.values().map(|lines| lines.len() as u64).sum();
    let batch_rows = if total < SMALL_INPUT { 1 } else { BATCH_ROWS };
    let mut bench = Bench { suite, folder: folder.path(), tables, stores: BTreeMap::new(), batch_rows };

    let mut backend = variant.backend;
    let mut parallelism = case.parallelism.unwrap_or(variant.parallelism);
    let mut restore = RestoreChoice::Auto;
    let mut done_percent = 0;
    for (number, crash) in variant.crashes.iter().enumerate() {
        let gate = Gate::closed();
        let handle = bench.start(backend, parallelism, restore, &gate)?;
        gate.raise(total * crash.after_percent / 100 - total * done_percent / 100);
        if wait_for(&handle, &gate)? == Reached::End {
            return bench.finish(handle);
        }
        restore = match crash.resume_from {
            ResumeFrom::Checkpoint => {
                handle.snapshot(CheckpointKind::Checkpoint, SnapshotFormat::Native, None)?;
                RestoreChoice::Auto
            }
            ResumeFrom::SavepointOnOtherBackend => {
                let target = format!("savepoints/case-{number}");
                handle.snapshot(CheckpointKind::Savepoint, SnapshotFormat::Canonical, Some(target.clone()))?;
                backend = other(backend);
                RestoreChoice::From(target)
            }
        };
        // Work after the snapshot is lost in the crash and must be done again.
        gate.raise(total / 10 + 1);
        if wait_for(&handle, &gate)? == Reached::End {
            return bench.finish(handle);
        }
        handle.abandon();
        parallelism = crash.parallelism;
        done_percent = crash.after_percent;
    }
    let gate = Gate::closed();
    let handle = bench.start(backend, parallelism, restore, &gate)?;
    gate.raise(u64::MAX);
    bench.finish(handle)
}

fn other(backend: StateBackend) -> StateBackend {
    match backend {
        StateBackend::Rocksdb => StateBackend::Memory,
        StateBackend::Memory => StateBackend::Rocksdb,
    }
}

/// Everything that outlives a crash.
struct Bench<'a> {
    suite: &'a Suite,
    folder: &'a Path,
    /// Options that take the place of a source table's own.
    tables: BTreeMap<String, BTreeMap<String, String>>,
    stores: BTreeMap<String, Store>,
    batch_rows: usize,
}

impl Bench<'_> {
    fn start(
        &mut self,
        kind: StateBackend,
        parallelism: u32,
        restore: RestoreChoice,
        gate: &Gate,
    ) -> Result<JobHandle> {
        let options = PlanOptions {
            job: "default/test".to_owned(),
            base_dir: self.suite.base_dir.clone(),
            zone: Tz::UTC,
            config: BTreeMap::new(),
            table_options: self.tables.clone(),
        };
        let plan = plan_script(&self.suite.sql, &options)?;
        let targets: Vec<String> = plan.inserts.iter().map(|insert| insert.target.clone()).collect();
        let graph = self.between(plan.graph, &targets, gate);
        let handle = run_local(LocalJob {
            job: JobSpec {
                namespace: "default".to_owned(),
                name: "test".to_owned(),
                graph,
                program: self.suite.sql.clone(),
                bounds: Bounds::exactly(parallelism),
                scheduler: SchedulerOptions::default(),
                max_parallelism: Some(128),
                checkpoints: CheckpointOptions { interval: None, ..CheckpointOptions::default() },
                restart: RestartStrategy::None,
                storage: Arc::new(FileStorage::new(self.folder.join("state"))?),
                lock: None,
                address: None,
                restore,
                dropped_state: DroppedState::Refuse,
                clock: Arc::new(SystemClock),
            },
            tasks: TaskManagerOptions::new(parallelism, NETWORK_BYTES, self.folder.join("work")),
            backend: backend(kind, STATE_BYTES),
        })?;
        // All tasks run before the first record: readers without a split have said so, and hold no watermark back.
        handle.wait_until(PATIENCE, |status| status.phase == Phase::Running);
        Ok(handle)
    }

    /// Waits for the end and folds what the sinks received.
    fn finish(&self, handle: JobHandle) -> Result<BTreeMap<String, Vec<String>>> {
        match handle.join()? {
            JobOutcome::Finished => {}
            other => {
                return Err(Error::new(Code::TestFailed, format!("the job ended as {other:?} instead of finishing")));
            }
        }
        self.stores.iter().map(|(sink, store)| Ok((sink.clone(), fold(&store.committed())?))).collect()
    }

    /// Puts gates before the graph's sources and stores in place of its sinks.
    fn between(&mut self, mut graph: StreamGraph, targets: &[String], gate: &Gate) -> StreamGraph {
        let mut targets = targets.iter();
        for index in 0..graph.nodes.len() {
            let is_sink = !graph.edges.iter().any(|edge| edge.from == index);
            let node = &mut graph.nodes[index];
            if let NodeFactory::Source { source, .. } = &mut node.factory {
                let inner = Arc::clone(source);
                *source = Arc::new(GatedSource { inner, gate: gate.clone(), batch_rows: self.batch_rows });
            }
            if is_sink && let Some(target) = targets.next() {
                let store = self.stores.entry(target.clone()).or_default().clone();
                node.factory = NodeFactory::Operator(Arc::new(MemorySink { store }));
            }
        }
        graph
    }
}

/// Writes each table's lines to a file, and gives the options by which the table reads it.
fn inputs(suite: &Suite, case: &Case, folder: &Path) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let script = parse_script(&suite.sql)?;
    let mut tables = BTreeMap::new();
    for (name, lines) in &case.input {
        let table = script.statements.iter().find_map(|statement| match statement {
            Statement::CreateTable(table) if table.name == *name => Some(table),
            _ => None,
        });
        let Some(table) = table else {
            return Err(Error::new(Code::JobInvalid, format!("case `{}`: there is no table `{name}`", case.name)));
        };
        let path = folder.join(format!("{name}.input"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).map_err(|e| Error::io(Code::NotWritable, path.display(), &e))?;
        let is_format = |key: &str| {
            key == "format" || ["csv.", "json.", "raw.", "on-error"].iter().any(|prefix| key.starts_with(prefix))
        };
        let mut options: BTreeMap<String, String> = table
            .options
            .iter()
            .filter(|(key, _)| is_format(key))
            .map(|(key, option)| (key.clone(), option.value.clone()))
            .collect();
        options.insert("connector".to_owned(), "filesystem".to_owned());
        options.insert("path".to_owned(), path.display().to_string());
        tables.insert(name.clone(), options);
    }
    Ok(tables)
}

/// Where a job stands that was let on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Gate,
    /// Its input ended before.
    End,
}

/// Waits until the gate holds the job back, or the job ended.
///
/// # Errors
/// Why the job failed, or that it stands still.
fn wait_for(handle: &JobHandle, gate: &Gate) -> Result<Reached> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = handle.wait_until(Duration::from_millis(1), |_| false);
        if status.phase == Phase::Ended {
            return Ok(Reached::End);
        }
        if status.phase == Phase::Running && gate.is_closed() {
            return Ok(Reached::Gate);
        }
        if Instant::now() > deadline {
            let cause = format!("the job stands still after {} records", gate.read());
            return Err(Error::new(Code::TestFailed, cause));
        }
    }
}
