"""Builds our programs and runs whole jobs, with what the kernel says of the process."""
import json, os, shutil, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMORY = "4GiB"                  # as Flink's TaskManager


def cargo(profile, *target):
    """Builds a target and gives the path of its executable."""
    out = subprocess.run(["cargo", "build", "--profile", profile, *target, "--message-format=json-render-diagnostics"],
                         cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [m["executable"] for m in map(json.loads, out.splitlines()) if m.get("executable")][-1]


def build(profile, say):
    say(f"building streamkeeper ({profile})")
    subprocess.run([os.path.join(ROOT, "tools/setup")], check=True)
    return cargo(profile, "--bin", "streamkeeper")


def build_limit(profile, beside, say):
    """The program of the limit; where a ready binary was given, the one beside it or none."""
    if beside:
        path = os.path.join(os.path.dirname(beside), "examples", "limit")
        return path if os.path.exists(path) else None
    say(f"building the limit ({profile})")
    return cargo(profile, "-p", "streamkeeper-connectors", "--example", "limit")


def job_file(folder, sql, interval, parallelism=1, min_pause="500ms"):
    path = os.path.join(folder, "job.yaml")
    with open(path, "w") as f:
        f.write("apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: bench\nspec:\n"
                f"  parallelism: {parallelism}\n  checkpoint:\n    interval: {interval}\n    minPause: {min_pause}\n  sql: |\n"
                + "".join(f"    {line}\n" for line in sql.splitlines()))
    return path


def finish(command):
    """Runs a command to its end: wall seconds, CPU seconds of all its threads, peak RSS in MB, lines of output."""
    start = time.time()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.time() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
        out.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read().splitlines()


def run(binary, sql, events, interval="10s", parallelism=1):
    """One job from process start to exit."""
    folder = tempfile.mkdtemp(prefix="streamkeeper-bench-")
    try:
        path = job_file(folder, sql, interval, parallelism)
        wall, cpu, rss, lines = finish([binary, "run", path, "--output", "json", "--memory", MEMORY])
        statuses = [s["status"] for s in map(json.loads, lines) if "status" in s]
        done = list(checkpoints(statuses).values())
        return {"records_per_s": round(events / wall), "records_per_cpu_s": round(events / cpu), "wall_s": round(wall, 2),
                "cpu_s": round(cpu, 2), "peak_rss_mb": round(rss), "state_mb": round(max(map(state_bytes, statuses)) / 1e6),
                "checkpoints": statuses[-1]["checkpoints"]["completed"],
                "checkpoint_ms_max": max((c["duration_ms"] for c in done), default=0),
                "sync_ms_max": round(max((c["sync_us"] for c in done), default=0) / 1000, 1),
                "uploaded_mb": round(sum(c["uploaded_bytes"] for c in done) / 1e6, 1)}
    finally:
        shutil.rmtree(folder)


def limit(program, arguments, path, events):
    """The same computation as a plain loop; the file comes after the first argument."""
    wall, cpu, _, _ = finish([program, arguments[0], path, *arguments[1:]])
    return {"records_per_s": round(events / wall), "records_per_cpu_s": round(events / cpu)}


def checkpoints(statuses):
    """Each completed checkpoint that the statuses show, by id. Those of less than a tenth of a second may be missed."""
    last = (s["checkpoints"]["last"] for s in statuses)
    return {c["id"]: c for c in last if c}


def state_bytes(status):
    return sum(v["state_bytes"] for v in status["vertices"])


def state_bench(rows=1_000_000):
    """The state layer's own benchmark; prints a table."""
    subprocess.run(["cargo", "run", "--release", "-q", "-p", "streamkeeper-state-rocksdb", "--example", "state_bench", str(rows)],
                   cwd=ROOT, check=True)
