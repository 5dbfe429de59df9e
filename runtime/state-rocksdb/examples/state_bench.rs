//! Fixed-work measurements of keyed state, for docs/performance.md:
//! `cargo run --release -p streamkeeper-state-rocksdb --example state_bench [rows] [part of a case's name]`.
//!
//! A running count over a million keys: look-up and update, checkpoint with all keys hot, base, eviction with a tenth
//! of the memory, restore at the same and at another parallelism. Then a deduplication over ten million ids, most of
//! them new. Prints nanoseconds a row, of the clock and of all threads' CPU time.

use std::{sync::Arc, time::Instant};

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{DataType, Field},
};
use streamkeeper_state::{
    Backend, DroppedState, Extent, KeyRows, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget, Missing,
    Slot, SnapshotFormat, SnapshotKind, SnapshotRequest, Table, TableSpec, ValueField,
};
use streamkeeper_state_rocksdb::RocksdbBackend;
use streamkeeper_storage::FileStorage;
use streamkeeper_types::{CheckpointId, Result, key_group, snapshot::KeyedHandle};

const KEYS: i64 = 1_000_000;
const BATCH: usize = 8192;
const MAX_PARALLELISM: u32 = 128;

/// Ids that a deduplication draws from.
const IDS: i64 = 10_000_000;

type Work = fn(&mut Bench, usize) -> Result<()>;

struct Bench {
    backend: Arc<dyn Backend>,
    storage: FileStorage,
    dir: std::path::PathBuf,
    opened: u32,
}

fn main() -> Result<()> {
    let rows: usize = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(3_000_000);
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let dir = std::env::temp_dir().join(format!("streamkeeper-state-bench-{}", std::process::id()));
    let rocksdb = |bytes| -> Arc<dyn Backend> { Arc::new(RocksdbBackend::new(MemoryBudget::new(bytes))) };
    let memory = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::new(MemoryBudget::new(2 << 30))) };
    let cases: [(&str, Arc<dyn Backend>, Work); 6] = [
        ("count: memory", memory(), Bench::count),
        ("count: rocksdb, all in the cache", rocksdb(2 << 30), Bench::count),
        ("count: rocksdb, 8 MiB", rocksdb(8 << 20), Bench::count),
        ("deduplication: memory", memory(), Bench::deduplicate),
        ("deduplication: rocksdb, all in the cache", rocksdb(2 << 30), Bench::deduplicate),
        ("deduplication: rocksdb, 64 MiB", rocksdb(64 << 20), Bench::deduplicate),
    ];
    for (name, backend, work) in cases.into_iter().filter(|(name, ..)| name.contains(&wanted)) {
        println!("{name}");
        let storage = FileStorage::new(dir.join("storage"))?;
        let mut bench = Bench { backend, storage, dir: dir.join("work"), opened: 0 };
        work(&mut bench, rows)?;
    }
    if let Err(error) = std::fs::remove_dir_all(&dir) {
        eprintln!("{} stays: {error}", dir.display());
    }
    Ok(())
}

impl Bench {
    fn deduplicate(&mut self, rows: usize) -> Result<()> {
        let mut state = self.open(0, 1, Vec::new(), &[])?;
        let mut keys = Keys::new(&state);
        let mut random = Random(1);
        timed("first rows", rows, || keys.mark(&mut state, (0..rows).map(|_| random.below(IDS))))
    }

    fn count(&mut self, rows: usize) -> Result<()> {
        let mut state = self.open(0, 1, counts(), &[])?;
        let mut keys = Keys::new(&state);
        let mut random = Random(1);
        timed("insert", KEYS as usize, || keys.count(&mut state, (0..KEYS).map(|i| i * 7919 % KEYS)))?;
        timed("look up and update", rows, || keys.count(&mut state, (0..rows).map(|_| random.below(KEYS))))?;
        let mut id = 0;
        let mut checkpoint = |state: &mut KeyedState, what: &str, extent| -> Result<KeyedHandle> {
            id += 1;
            let request = SnapshotRequest {
                id: CheckpointId(id),
                kind: SnapshotKind::Checkpoint,
                format: SnapshotFormat::Native,
                extent,
                target: String::new(),
                unique: format!("bench-{}", self.opened),
            };
            let frozen = timed(&format!("{what}: cut"), KEYS as usize, || state.freeze(&request))?;
            let handle = timed(&format!("{what}: upload"), KEYS as usize, || frozen.upload(&self.storage))?;
            state.confirmed(request.id)?;
            println!("    {:>8} bytes a row in {} files", handle.size() / KEYS as u64, handle.files().count());
            Ok(handle)
        };
        checkpoint(&mut state, "delta of all keys", Extent::Incremental)?;
        keys.count(&mut state, 0..KEYS)?;
        let handle = checkpoint(&mut state, "base", Extent::Full)?;
        drop(state);
        for parallelism in [1, 2] {
            timed(&format!("restore at parallelism {parallelism}"), KEYS as usize, || {
                (0..parallelism).try_for_each(|index| {
                    self.open(index, parallelism, counts(), std::slice::from_ref(&handle)).map(|_| ())
                })
            })?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        index: u32,
        parallelism: u32,
        values: Vec<ValueField>,
        handles: &[KeyedHandle],
    ) -> Result<KeyedState> {
        self.opened += 1;
        let options = KeyedOptions {
            range: key_group::range_of(index, parallelism, MAX_PARALLELISM),
            max_parallelism: MAX_PARALLELISM,
            work_dir: self.dir.join(self.opened.to_string()),
            fold_every: 8,
            now: 0,
            dropped: DroppedState::Refuse,
        };
        let key = KeySchema::new(vec![Arc::new(Field::new("k", DataType::Int64, true))])?;
        let spec = TableSpec::new("rows", key, values)?;
        KeyedState::open(self.backend.as_ref(), options, vec![spec], handles, &self.storage)
    }
}

fn counts() -> Vec<ValueField> {
    vec![ValueField::zero("n", DataType::Int64)]
}

/// The loop that an operator runs.
struct Keys {
    encoder: streamkeeper_state::KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
}

impl Keys {
    fn new(state: &KeyedState) -> Self {
        Self { encoder: state.key_encoder(0), keys: KeyRows::new(), slots: Vec::new() }
    }

    fn count(&mut self, state: &mut KeyedState, keys: impl Iterator<Item = i64>) -> Result<()> {
        self.batches(state, keys, |table, slots| {
            for slot in slots {
                if let Some(counts) = table.columns_mut()[0].as_i64_mut() {
                    counts.values[slot.index()] += 1;
                }
                table.mark_dirty(*slot);
            }
        })
    }

    /// What a deduplication that keeps first rows does.
    fn mark(&mut self, state: &mut KeyedState, keys: impl Iterator<Item = i64>) -> Result<()> {
        self.batches(state, keys, |table, slots| {
            for slot in slots {
                if !table.exists(*slot) {
                    table.mark_dirty(*slot);
                }
            }
        })
    }

    fn batches(
        &mut self,
        state: &mut KeyedState,
        keys: impl Iterator<Item = i64>,
        mut work: impl FnMut(&mut Table, &[Slot]),
    ) -> Result<()> {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let batch: Int64Array = keys.by_ref().take(BATCH).collect::<Vec<_>>().into();
            let columns: [ArrayRef; 1] = [Arc::new(batch)];
            self.encoder.encode(&columns, columns[0].len(), &mut self.keys)?;
            let table = state.table_mut(0);
            table.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
            work(table, &self.slots);
            state.maintain()?;
        }
        Ok(())
    }
}

/// The same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as i64 % limit
    }
}

fn timed<T>(what: &str, rows: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = work()?;
    let (elapsed, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let per_row = |seconds: f64| seconds * 1e9 / rows as f64;
    println!("  {what:<32} {:>8.1} ns a row, {:>8.1} ns of CPU, {elapsed:>8.3} s", per_row(elapsed), per_row(cpu));
    Ok(result)
}

/// CPU time of all threads of this process, to a hundredth of a second; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
