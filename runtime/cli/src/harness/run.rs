//! One case in one variant, from planning to the folded rows of each sink.

use std::{
    collections::BTreeMap,
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
use streamkeeper_sql::plan::{PlanOptions, plan_script};
use streamkeeper_storage::FileStorage;
use streamkeeper_taskmanager::{
    TaskManagerOptions,
    local::{JobSpec, LocalJob, RestoreChoice, run_local},
};
use streamkeeper_types::{Code, Error, Result};

use super::{
    Prepared, ResumeFrom, Suite, Variant, fold,
    gate::{Gate, GatedSource},
    memory_sink::{MemorySink, Store},
};
use crate::launch::backend;

/// A run that does not move for so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rows a batch, at least: few, so that batches, barriers and watermarks mix.
const BATCH_ROWS: u64 = 7;
/// Batches in which large inputs are read, about.
const BATCHES: u64 = 300;
/// Inputs with fewer records than this are read one by one.
const SMALL_INPUT: u64 = 100;
const STATE_BYTES: u64 = 64 << 20;
const NETWORK_BYTES: u64 = 16 << 20;

/// Rows of each sink in the end, changelogs folded.
///
/// # Errors
/// Whatever planning or running says; `TEST_FAILED` for a job that stands still.
pub fn run(prepared: &Prepared, variant: &Variant) -> Result<BTreeMap<String, Vec<String>>> {
    let suite = prepared.suite;
    let folder = tempfile::tempdir().map_err(|e| Error::io(Code::NotWritable, "a temporary folder", &e))?;
    let total = prepared.total_rows();
    let batch_rows = if total < SMALL_INPUT { 1 } else { BATCH_ROWS.max(total / BATCHES) };
    let mut bench = Bench {
        suite,
        folder: folder.path(),
        tables: prepared.table_options(),
        stores: BTreeMap::new(),
        batch_rows: usize::try_from(batch_rows).unwrap_or(usize::MAX),
    };

    let mut backend = variant.backend;
    let mut parallelism = variant.parallelism;
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
        run_local(LocalJob {
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
        })
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
