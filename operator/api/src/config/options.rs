//! The table of options, by area.

use super::Kind::{AsField, Choice, Decimal, Duration, Flag, Integer, Size, TimeZone};
use super::Standing::{Free, OwnedBy, Planned};
use super::{ConfigOption, Kind, Standing};

const fn option(
    key: &'static str,
    kind: Kind,
    default: &'static str,
    standing: Standing,
    doc: &'static str,
) -> ConfigOption {
    ConfigOption { key, kind, default, doc, standing }
}

/// A share of something, as a fraction of one.
const SHARE: Kind = Decimal { least: 0.0, most: 1.0 };

const fn count(least: u64, most: u64) -> Kind {
    Integer { least, most }
}

const fn owned(key: &'static str, field: &'static str) -> ConfigOption {
    option(key, AsField, "", OwnedBy(field), "Held by a field of the spec.")
}

/// Every option of the runtime.
pub const OPTIONS: &[ConfigOption] = &[
    owned("parallelism", "parallelism"),
    owned("max-parallelism", "maxParallelism"),
    option("mode", Choice(&["streaming", "batch"]), "streaming", Planned, "Whether bounded input may run in stages."),
    // Memory and state.
    option(
        "memory.total",
        Size,
        "",
        Free,
        "Memory of one TaskManager; without it the container's limit, on a laptop a quarter of the machine, at most 4 GiB.",
    ),
    owned("state.backend", "state.backend"),
    owned("state.memory-percent", "state.memoryPercent"),
    option("state.async", Flag, "false", Planned, "Whether state may be read without waiting."),
    option("state.delta", Flag, "true", Planned, "Write what changed as one delta object per checkpoint."),
    option(
        "state.delta.fold-every",
        count(1, 1000),
        "8",
        Planned,
        "Checkpoints after which deltas are folded into a new base.",
    ),
    option("state.log-tail", Flag, "false", Planned, "Append writes to a log object."),
    option("state.remote", Flag, "false", Planned, "Keep state in object storage, with the local disk as a cache."),
    option(
        "state.latency-sample-every",
        count(0, 1_000_000_000),
        "0",
        Planned,
        "Accesses between two measurements of latency; 0 is off.",
    ),
    option("state.rocksdb.write-buffer-share", SHARE, "0.5", Planned, "Share of RocksDB's memory for write buffers."),
    option(
        "state.rocksdb.high-priority-share",
        SHARE,
        "0.1",
        Planned,
        "Share of the block cache for index and filter blocks.",
    ),
    option(
        "state.rocksdb.background-threads",
        count(1, 64),
        "2",
        Planned,
        "Threads for flush and compaction in one process.",
    ),
    option("state.rocksdb.transfer-threads", count(1, 64), "4", Planned, "Threads for upload and download of files."),
    option("state.rocksdb.target-file-size", Size, "64MiB", Planned, "Size at which compaction starts a new file."),
    option(
        "state.rocksdb.compression",
        Choice(&["none", "lz4", "zstd"]),
        "lz4",
        Planned,
        "Compression of RocksDB's blocks.",
    ),
    option("state.rocksdb.bloom", Flag, "true", Planned, "Bloom filters over keys."),
    option(
        "state.rocksdb.max-files-per-snapshot",
        count(10, 1_000_000),
        "2000",
        Free,
        "Files of one subtask's snapshot before small ones are merged.",
    ),
    // Time to live and timers.
    option("ttl.duration", Duration, "", Planned, "Time after which state expires; without it never."),
    option("ttl.refresh", Choice(&["on-write", "on-read"]), "on-write", Planned, "Which access keeps state alive."),
    option(
        "ttl.visibility",
        Choice(&["never-expired", "until-cleaned"]),
        "never-expired",
        Planned,
        "Whether expired state may still be seen.",
    ),
    option(
        "ttl.cleanup.clock-every",
        count(1, 1_000_000_000),
        "1000",
        Planned,
        "Entries of a compaction between two looks at the clock.",
    ),
    option("ttl.cleanup.max-file-age", Duration, "720h", Planned, "Age at which a file is compacted to clean it."),
    option(
        "ttl.cleanup.entries-per-access",
        count(0, 1000),
        "5",
        Planned,
        "Entries that one access cleans in the memory backend.",
    ),
    option("ttl.cleanup.on-full-snapshot", Flag, "true", Planned, "Leave expired state out of full snapshots."),
    option("timers.store", Choice(&["rocksdb", "memory"]), "rocksdb", Planned, "Where timers live."),
    option(
        "timers.cache-per-group",
        count(1, 1_000_000),
        "128",
        Planned,
        "Timers of one key group that are held in memory.",
    ),
    option("timers.interruptible", Flag, "false", Planned, "Whether firing timers may yield to a barrier."),
    // Checkpoints and savepoints.
    owned("checkpoint.storage", "checkpoint.storage"),
    owned("checkpoint.interval", "checkpoint.interval"),
    owned("checkpoint.min-pause", "checkpoint.minPause"),
    owned("checkpoint.timeout", "checkpoint.timeout"),
    owned("checkpoint.mode", "checkpoint.mode"),
    owned("checkpoint.tolerable-failures", "checkpoint.tolerableFailures"),
    owned("checkpoint.incremental", "checkpoint.incremental"),
    owned("checkpoint.retained", "checkpoint.retained"),
    owned("checkpoint.unaligned", "checkpoint.unaligned"),
    owned("checkpoint.aligned-timeout", "checkpoint.alignedTimeout"),
    option("checkpoint.max-concurrent", count(1, 100), "1", Planned, "Checkpoints in progress at a time."),
    option("checkpoint.max-queued", count(1, 100_000), "1000", Free, "Requests that may wait."),
    option("checkpoint.inline-below", Size, "20KiB", Planned, "Smaller state goes into the manifest."),
    option(
        "checkpoint.on-cancel",
        Choice(&["keep", "delete"]),
        "keep",
        Planned,
        "What becomes of checkpoints when the job is cancelled.",
    ),
    option(
        "checkpoint.compression",
        Choice(&["none", "lz4", "zstd"]),
        "lz4",
        Planned,
        "Compression of full snapshots.",
    ),
    option("checkpoint.after-finish", Flag, "true", Planned, "Whether checkpoints go on after some tasks finished."),
    option(
        "checkpoint.delete-parallelism",
        count(1, 1000),
        "16",
        Planned,
        "Files of one checkpoint that are deleted at a time.",
    ),
    option("checkpoint.history", count(1, 10_000), "50", Free, "Checkpoints whose statistics are kept."),
    option("checkpoint.interval-during-backlog", Duration, "", Planned, "Interval while a source reports backlog."),
    option("checkpoint.local-copy", Flag, "false", Planned, "Keep a second copy of state on local disk."),
    option("checkpoint.merge-small-files", Flag, "false", Planned, "Put many files into one object."),
    option("checkpoint.key-entropy", Choice(&["none"]), "none", Planned, "Random part of paths."),
    owned("savepoint.format", "savepoint.format"),
    option("stop.drain", Flag, "false", Free, "Let a stop end event time first, so that open windows are put out."),
    option(
        "restore.claim",
        Choice(&["no-claim", "claim"]),
        "no-claim",
        Planned,
        "Whether a snapshot that is restored belongs to the job afterwards.",
    ),
    owned("restore.allow-dropped-state", "upgrade.allowNonRestoredState"),
    option(
        "restore.drop-in-flight-of",
        count(1, u64::MAX),
        "",
        Planned,
        "Checkpoint whose records in flight are left out.",
    ),
    // Failures, scheduling, high availability.
    owned("restart.strategy", "restart.strategy"),
    owned("restart.initial-delay", "restart.initialDelay"),
    owned("restart.max-delay", "restart.maxDelay"),
    owned("restart.reset-after", "restart.resetAfter"),
    owned("restart.attempts", "restart.attempts"),
    owned("restart.delay", "restart.delay"),
    owned("restart.failures", "restart.failures"),
    owned("restart.window", "restart.window"),
    option("restart.multiplier", Decimal { least: 1.0, most: 100.0 }, "1.5", Free, "Factor from one wait to the next."),
    option("restart.jitter", SHARE, "0.1", Free, "Random share of each wait."),
    option("restart.scope", Choice(&["region"]), "region", Planned, "Which tasks restart together."),
    option("scheduler.slot-wait", Duration, "5m", Planned, "How long a start waits for slots."),
    option("rescale.cooldown", Duration, "30s", Planned, "Least time between two rescales."),
    option("rescale.stabilization", Duration, "1m", Planned, "How long the wanted parallelism must stay the same."),
    option(
        "rescale.max-failed-checkpoints",
        count(1, 100),
        "2",
        Planned,
        "Failed checkpoints after which a rescale goes ahead from an older one.",
    ),
    option("rescale.history", count(1, 10_000), "50", Planned, "Rescales that are remembered."),
    option("liveness.interval", Duration, "250ms", Planned, "Time between two signs of life."),
    option("liveness.timeout", Duration, "2s", Planned, "Silence after which a peer counts as lost."),
    option("task.cancel-timeout", Duration, "30s", Free, "A task that does not stop by then takes its process down."),
    option("ha.lease", Duration, "3s", Planned, "How long leadership lasts without renewal."),
    option("ha.renew-deadline", Duration, "2s", Planned, "A leader that cannot renew for this long steps down."),
    option("ha.retry", Duration, "500ms", Planned, "Wait between two tries to lead."),
    owned("autoscale", "autoscaler.mode"),
    // Checkpoint storage over a network.
    option(
        "storage.timeout",
        Duration,
        "30s",
        Free,
        "How long one call to remote storage may take, retries included; a second more for each MiB it moves.",
    ),
    option("storage.retries", count(0, 1000), "4", Free, "Tries of a storage request after the first."),
    option("storage.part-size", Size, "8MiB", Free, "Parts in which large objects are uploaded; at least 5MiB."),
    // Time, sinks, network.
    option("watermark.min-gap", Duration, "10ms", Planned, "Least time between two watermarks of a source."),
    option(
        "watermark.idle-timeout",
        Duration,
        "",
        Planned,
        "A split that could be read and gave nothing for this long no longer holds the watermark.",
    ),
    option("watermark.max-drift", Duration, "", Planned, "How far a split may run ahead of the slowest."),
    option("watermark.align-interval", Duration, "1s", Planned, "How often drift is judged."),
    option(
        "window.allowed-lateness",
        Duration,
        "0s",
        Free,
        "How long after its end a window by rowtime still takes rows; above 0 its result is updated for them.",
    ),
    option("sink.commit-timeout", Duration, "1m", Planned, "How long a commit is retried before the job fails."),
    option("network.flush-timeout", Duration, "10ms", Free, "A frame that is not full leaves after this time."),
    option("network.memory-share", SHARE, "0.1", Planned, "Share of memory for network buffers."),
    option("network.debloat", Flag, "false", Planned, "Let buffered bytes follow the throughput."),
    option("network.debloat.target", Duration, "1s", Planned, "Time in which queued data shall drain."),
    // SQL, under Flink's names.
    option("table.local-time-zone", TimeZone, "UTC", Free, "Zone of the session."),
    option(
        "table.exec.state.ttl",
        Duration,
        "0s",
        Free,
        "Time after which idle state of updating queries expires; 0s: never.",
    ),
    option(
        "table.exec.source.idle-timeout",
        Duration,
        "0s",
        Free,
        "Silence after which a source no longer holds back the watermark; 0s: never.",
    ),
    option(
        "table.exec.sink.not-null-enforcer",
        Choice(&["ERROR", "DROP"]),
        "ERROR",
        Free,
        "What a sink does with NULL for a NOT NULL column.",
    ),
    option("table.exec.mini-batch.enabled", Flag, "false", Planned, "Gather input rows before an aggregate puts out."),
    option("table.exec.mini-batch.allow-latency", Duration, "0s", Planned, "How long rows are gathered."),
    option("table.exec.mini-batch.size", count(1, 1_000_000_000), "", Planned, "How many rows are gathered."),
];
