"""Checkpoints, savepoints and restores of a big state, and what checkpoints cost in throughput."""
import os, shutil, statistics, tempfile

import inputs, ours, workloads
from big_state import HOT_DRIFT, HOT_ROWS, HOT_SHARE, BigState, hot

FRESH_BYTES = 5_000_000          # new state before an incremental checkpoint
# Flink 2.3 with 1.17 GB of state of 500 bytes a key, seconds, on another day on another 2-core machine.
FLINK = {"first checkpoint": 5.1, "incremental checkpoint, 5 MB new": 0.1, "canonical savepoint": 9.0, "1 → 1": 1.1, "2 → 2": 0.94,
         "1 → 2": 2.2, "2 → 1": 5.0, "savepoint → 1": "12–17"}
BARS = {"1 → 1": 1.0, "2 → 2": 1.0, "1 → 2": 2.0, "2 → 1": 2.0}


def measure(binary, args, say):
    """The parts among `checkpoint`, `restore`, `hot1g` and `w4cost` that were asked for; one row each or more."""
    parts = set(args.workloads)
    rows = []
    if parts & {"checkpoint", "restore", "hot1g"}:
        state = BigState(binary, args.state_mb, say)
        try:
            rows += of_big_state(state, parts, args, say)
        finally:
            state.remove()
    if "w4cost" in parts:
        rows += w4_cost(binary, args, say)
    return rows


def of_big_state(state, parts, args, say):
    grown, first = state.grow(1)
    say(f"filled in {first['fill_s']} s, first checkpoint {first}")
    only_first = state.copy(grown)
    base, incremental = state.settle(grown, 1, FRESH_BYTES, 3)
    say(f"base {base}, incremental checkpoints {incremental}")
    rows = [{"what": "state", "bytes": first["state_bytes"], "groups": state.keys, "fill_s": first["fill_s"]}]
    if "checkpoint" in parts:
        rows += [checkpoint("first checkpoint", [first]), checkpoint("incremental checkpoint, 5 MB new", incremental),
                 checkpoint("base: all again as files", [base])]
        rows.append(savepoint(state, grown, args.reps, say)[0])
    if "restore" in parts:
        rows += restores(state, grown, only_first, args.reps, say)
    if "hot1g" in parts:
        rows += hot_cost(state, grown, args, say)
    return rows


def checkpoint(what, done):
    median = lambda key: statistics.median(c[key] for c in done)
    return {"what": what, "seconds": median("duration_ms") / 1000, "sync_ms": round(median("sync_us") / 1000, 1),
            "async_ms": round(median("async_us") / 1000, 1), "uploaded_mb": round(median("uploaded_bytes") / 1e6, 1),
            "full_mb": round(median("full_bytes") / 1e6, 1), "runs": len(done)}


def savepoint(state, grown, reps, say):
    """Stops with canonical savepoints; a row, and a job's folder whose newest point is one."""
    done = []
    for rep in range(reps):
        storage = state.copy(grown)
        job = state.start(storage, "0s")
        try:
            job.wait_running()
            done.append(job.stop()["status"]["checkpoints"]["last"])
        finally:
            job.kill()
        say(f"canonical savepoint {rep + 1} of {reps}: {done[-1]}")
        if rep + 1 < reps:
            shutil.rmtree(storage)
    return checkpoint("canonical savepoint", done), storage


def restores(state, grown_at_1, only_first, reps, say):
    """Of a base and three small deltas, of a savepoint, and of a first checkpoint that is one large delta."""
    grown_at_2, _ = state.grow(2)
    state.settle(grown_at_2, 2, FRESH_BYTES, 3)
    _, saved = savepoint(state, grown_at_1, 1, say)
    cases = [("1 → 1", grown_at_1, 1), ("2 → 2", grown_at_2, 2), ("1 → 2", grown_at_1, 2), ("2 → 1", grown_at_2, 1),
             ("savepoint → 1", saved, 1), ("savepoint → 2", saved, 2),
             ("first checkpoint → 1", only_first, 1)]
    runs = {name: [] for name, _, _ in cases}
    for rep in range(reps):
        for name, storage, parallelism in cases:
            runs[name].append(restore(state, storage, parallelism))
            say(f"restore {name}, {rep + 1} of {reps}: {runs[name][-1]}")
    median = lambda name, key: statistics.median(r[key] for r in runs[name])
    return [{"what": f"restore {name}", "seconds": median(name, "restore_s"), "from_process_start_s": median(name, "start_s"),
             "cpu_s": median(name, "cpu_s"), "runs": reps} for name, _, _ in cases]


def restore(state, storage, parallelism):
    """From the beginning of the deployment, metadata and state included, until all tasks run; and from process start."""
    copy = state.copy(storage)
    job = state.start(copy, "0s", parallelism)
    try:
        running = job.wait_running()
    finally:
        job.kill()
    if running.status["restored_from"] is None:
        raise SystemExit("the job began without its state")
    shutil.rmtree(copy)
    return {"restore_s": running.status["deployment_ms"] / 1000, "start_s": round(running.time - job.begin, 1), "cpu_s": running.cpu_s}


def hot_cost(state, grown, args, say):
    """Throughput over 1 GB of state of which at most 1 % changes in a second, with 1 s checkpoints and without."""
    rows_of_file = int(HOT_ROWS * args.scale)
    path = inputs.once(os.path.join(inputs.CACHE, f"hot-{state.keys}-{rows_of_file}-v1.csv"), hot(state.keys, rows_of_file), say)
    state.add(path, "hot-1.csv")
    state.add(path, "hot-2.csv")
    variants = {"0s": [], "1s": []}
    for rep in range(args.reps):
        for interval, runs in variants.items():
            runs.append(steady(state, grown, interval, 2 * rows_of_file))
            say(f"hot groups, checkpoints every {interval}, {rep + 1} of {args.reps}: {runs[-1]}")
    median = lambda interval, key: statistics.median(r[key] for r in variants[interval])
    changed = HOT_SHARE + HOT_DRIFT * median("1s", "records_per_s") / 1e6
    return [loss("1 s checkpoints, ≤ 1 % of the groups change", 5, variants) | {
        "changed_percent_per_s": round(changed * 100, 2), "checkpoints": median("1s", "checkpoints"),
        "checkpoint_ms": median("1s", "checkpoint_ms"), "sync_ms": median("1s", "sync_ms"), "uploaded_mb_per_s": median("1s", "uploaded_mb_per_s")}]


def steady(state, grown, interval, total):
    """From a tenth of the records, when the hot groups have come into the cache, to the last."""
    storage = state.copy(grown)
    job = state.start(storage, interval)
    try:
        begin = job.wait("a tenth is read", lambda s: s.taken_in() >= total / 10)
        end = job.wait("all is read", lambda s: s.taken_in() >= total)
    finally:
        job.kill()
    shutil.rmtree(storage)
    records, seconds = end.taken_in() - begin.taken_in(), end.time - begin.time
    done = ours.checkpoints(s.status for s in job.samples if begin.time <= s.time <= end.time).values()
    median = lambda key: statistics.median([c[key] for c in done] or [0])
    return {"records_per_s": round(records / seconds), "records_per_cpu_s": round(records / (end.cpu_s - begin.cpu_s)),
            "seconds": round(seconds, 1), "checkpoints": len(done), "checkpoint_ms": median("duration_ms"),
            "sync_ms": round(median("sync_us") / 1000, 1),
            "uploaded_mb_per_s": round(sum(c["uploaded_bytes"] for c in done) / 1e6 / seconds, 1)}


def w4_cost(binary, args, say):
    """W4, where all keys are hot, over its file five times: with 1 s checkpoints and without."""
    data = inputs.prepare({"kv"}, args.scale, say)
    folder = tempfile.mkdtemp(prefix="w4-", dir=inputs.CACHE)
    try:
        for part in range(5):
            os.link(data.path("kv"), os.path.join(folder, f"{part}.csv"))
        sql = workloads.running_count(data).replace(data.path("kv"), folder)
        variants = {"0s": [], "1s": []}
        for rep in range(args.reps):
            for interval, runs in variants.items():
                runs.append(ours.run(binary, sql, 5 * data.rows["kv"], interval, args.parallelism))
                say(f"W4, checkpoints every {interval}, {rep + 1} of {args.reps}: {runs[-1]}")
    finally:
        shutil.rmtree(folder)
    return [loss("1 s checkpoints, W4 (all keys hot)", 20, variants)]


def loss(what, bar, variants):
    """By how much 1 s checkpoints lower the throughput."""
    median = lambda interval, key: statistics.median(r[key] for r in variants[interval])
    percent = lambda key: round(100 * (1 - median("1s", key) / median("0s", key)), 1)
    return {"what": what, "loss_percent_per_cpu": percent("records_per_cpu_s"), "loss_percent_wall": percent("records_per_s"),
            "records_per_cpu_s": {i: median(i, "records_per_cpu_s") for i in variants},
            "records_per_s": {i: median(i, "records_per_s") for i in variants}, "bar_percent": bar, "runs": len(variants["1s"])}


def table(rows):
    """The rows as text of at most 100 columns."""
    lines = []
    timed = [r for r in rows if "seconds" in r]
    for r in (r for r in rows if r["what"] == "state"):
        lines.append(f"state: {r['bytes'] / 1e6:,.0f} MB in {r['groups']:,} groups, built up in {r['fill_s']} s")
    if timed:
        lines += ["", f"{'':34} {'seconds':>8} {'Flink*':>7} {'bar':>5}  details", "-" * 99]
    for r in timed:
        name = r["what"].removeprefix("restore ")
        if "uploaded_mb" in r:
            details = f"sync {r['sync_ms']} ms, async {r['async_ms']} ms, {r['uploaded_mb']} MB"
        else:
            details = f"{r['from_process_start_s']} s from process start"
        bar = f"{BARS[name]:.0f}" if name in BARS else ""
        lines.append(f"{r['what']:34} {r['seconds']:8.2f} {FLINK.get(name, '–'):>7} {bar:>5}  {details}")
    if timed:
        lines.append("* Flink 2.3 on another day on another 2-core machine: an anchor, not a comparison")
    for r in (r for r in rows if "bar_percent" in r):
        cpu = r["records_per_cpu_s"]
        lines += ["", f"{r['what']}: {-r['loss_percent_per_cpu']:+.1f} % per CPU second, {-r['loss_percent_wall']:+.1f} % per second"
                  f" (bar: −{r['bar_percent']} %)", f"  {cpu['0s']:,.0f} → {cpu['1s']:,.0f} records per CPU second"]
        if "checkpoints" in r:
            lines.append(f"  {r['changed_percent_per_s']} % of the groups change per second; {r['checkpoints']} checkpoints,"
                         f" {r['checkpoint_ms']} ms, sync {r['sync_ms']} ms; {r['uploaded_mb_per_s']} MB/s written")
    return "\n".join(lines).strip()
