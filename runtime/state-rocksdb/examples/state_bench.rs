//! Fixed-work measurements of keyed state, for docs/performance.md:
//! `cargo run --release -p streamkeeper-state-rocksdb --example state_bench [rows]`.
//!
//! A running count over a million keys: look-up and update, checkpoint with all keys hot, base, eviction with a tenth
//! of the memory, restore at the same and at another parallelism. Prints nanoseconds a row.

use std::{sync::Arc, time::Instant};

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{DataType, Field},
};
use streamkeeper_state::{
    Backend, DroppedState, Extent, KeyRows, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget, Missing,
    Slot, SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec, ValueField,
};
use streamkeeper_state_rocksdb::RocksdbBackend;
use streamkeeper_storage::FileStorage;
use streamkeeper_types::{CheckpointId, Result, key_group, snapshot::KeyedHandle};

const KEYS: i64 = 1_000_000;
const BATCH: usize = 8192;
const MAX_PARALLELISM: u32 = 128;

struct Bench {
    backend: Arc<dyn Backend>,
    storage: FileStorage,
    dir: std::path::PathBuf,
    opened: u32,
}

fn main() -> Result<()> {
    let rows: usize = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(3_000_000);
    let dir = std::env::temp_dir().join(format!("streamkeeper-state-bench-{}", std::process::id()));
    let large = MemoryBudget::new(2 << 30);
    let small = MemoryBudget::new(8 << 20);
    let runs: [(&str, Arc<dyn Backend>); 3] = [
        ("memory", Arc::new(MemoryBackend::new(MemoryBudget::new(2 << 30)))),
        ("rocksdb, all in the cache", Arc::new(RocksdbBackend::new(large))),
        ("rocksdb, a tenth in the cache", Arc::new(RocksdbBackend::new(small))),
    ];
    for (name, backend) in runs {
        println!("{name}");
        let storage = FileStorage::new(dir.join("storage"))?;
        let mut bench = Bench { backend, storage, dir: dir.join("work"), opened: 0 };
        bench.run(rows)?;
    }
    if let Err(error) = std::fs::remove_dir_all(&dir) {
        eprintln!("{} stays: {error}", dir.display());
    }
    Ok(())
}

impl Bench {
    fn run(&mut self, rows: usize) -> Result<()> {
        let mut state = self.open(0, 1, &[])?;
        let mut keys = Keys::new(&state);
        let mut random = 1_u64;
        timed("insert", KEYS as usize, || keys.count(&mut state, (0..KEYS).map(|i| i * 7919 % KEYS)))?;
        timed("look up and update", rows, || {
            keys.count(
                &mut state,
                (0..rows).map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 33) as i64 % KEYS
                }),
            )
        })?;
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
                (0..parallelism)
                    .try_for_each(|index| self.open(index, parallelism, std::slice::from_ref(&handle)).map(|_| ()))
            })?;
        }
        Ok(())
    }

    fn open(&mut self, index: u32, parallelism: u32, handles: &[KeyedHandle]) -> Result<KeyedState> {
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
        let spec = TableSpec::new("counts", key, vec![ValueField::zero("n", DataType::Int64)])?;
        KeyedState::open(self.backend.as_ref(), options, vec![spec], handles, &self.storage)
    }
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
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let batch: Int64Array = keys.by_ref().take(BATCH).collect::<Vec<_>>().into();
            let columns: [ArrayRef; 1] = [Arc::new(batch)];
            self.encoder.encode(&columns, columns[0].len(), &mut self.keys)?;
            let table = state.table_mut(0);
            table.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
            for slot in &self.slots {
                if let Some(counts) = table.columns_mut()[0].as_i64_mut() {
                    counts.values[slot.index()] += 1;
                }
                table.mark_dirty(*slot);
            }
            state.maintain()?;
        }
        Ok(())
    }
}

fn timed<T>(what: &str, rows: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = work()?;
    let elapsed = start.elapsed();
    println!(
        "  {what:<32} {:>8.1} ns a row, {:>8.3} s",
        elapsed.as_nanos() as f64 / rows as f64,
        elapsed.as_secs_f64()
    );
    Ok(result)
}
