"""Runs our binary on a workload and reads what the kernel says of the process."""
import json, os, shutil, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build(profile, say):
    say(f"building streamkeeper ({profile})")
    subprocess.run([os.path.join(ROOT, "tools/setup")], check=True)
    out = subprocess.run(["cargo", "build", "--profile", "dev" if profile == "dev" else profile, "--bin", "streamkeeper",
                          "--message-format=json-render-diagnostics"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [m["executable"] for m in map(json.loads, out.splitlines()) if m.get("executable")][-1]


def job_file(folder, sql, interval, parallelism, extra=""):
    path = os.path.join(folder, "job.yaml")
    with open(path, "w") as f:
        f.write("apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: bench\nspec:\n"
                f"  parallelism: {parallelism}\n  checkpoint:\n    interval: {interval}\n{extra}  sql: |\n"
                + "".join(f"    {line}\n" for line in sql.splitlines()))
    return path


def execute(binary, arguments):
    """Wall seconds, CPU seconds of all threads, peak RSS in MB, and the JSON lines that the command printed."""
    start = time.time()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([binary, *arguments, "--output", "json", "--memory", "4GiB"], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.time() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}")
        out.seek(0)
        lines = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines


def run(binary, workload, sql, events, parallelism):
    folder = tempfile.mkdtemp(prefix="streamkeeper-bench-")
    try:
        path = job_file(folder, sql, workload.interval, parallelism)
        wall, cpu, rss, _ = execute(binary, ["run", path, "--quiet"])
        return {"records_per_s": round(events / wall), "records_per_cpu_s": round(events / cpu), "wall_s": round(wall, 2),
                "cpu_s": round(cpu, 2), "peak_rss_mb": round(rss)}
    finally:
        shutil.rmtree(folder)


def state_bench(rows=1_000_000):
    """The state layer's own benchmark; prints a table."""
    subprocess.run(["cargo", "run", "--release", "-q", "-p", "streamkeeper-state-rocksdb", "--example", "state_bench", str(rows)],
                   cwd=ROOT, check=True)
