"""Flink beside us: a JobManager and one TaskManager from the jars that flink_setup fetched, jobs over its own client.

The PyPI package has no shell scripts, so the main classes behind them are started here, with memory flags from Flink's own
BashJavaUtils. What counts is the TaskManager's CPU time between RUNNING and FINISHED, JIT and GC included, on a warm JVM.
"""
import atexit, glob, json, os, re, shutil, subprocess, tempfile, threading, time, urllib.request

BASE = os.environ.get("FLINKBASE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "streamkeeper", "flink")
REST = "http://127.0.0.1:8081"
TICK = os.sysconf("SC_CLK_TCK")
MODULES = ("java.base/java.lang java.base/java.net java.base/java.io java.base/java.nio java.base/sun.nio.ch java.base/java.lang.reflect "
           "java.base/java.text java.base/java.time java.base/java.util java.base/java.util.concurrent "
           "java.base/java.util.concurrent.atomic java.base/java.util.concurrent.locks").split()
OPENS = [f"--add-opens={m}=ALL-UNNAMED" for m in MODULES]
CONFIG = """jobmanager.bind-host: localhost
jobmanager.rpc.address: localhost
jobmanager.memory.process.size: 1600m
taskmanager.bind-host: localhost
taskmanager.host: localhost
taskmanager.numberOfTaskSlots: 2
taskmanager.memory.process.size: 4096m
rest.address: localhost
rest.bind-address: localhost
rest.port: 8081
web.refresh-interval: 50
pipeline.max-parallelism: 128
state.backend.type: rocksdb
execution.checkpointing.incremental: true
"""


def rest(path):
    with urllib.request.urlopen(REST + path, timeout=10) as answer:
        return json.load(answer)


def start(say):
    """A running cluster, or None where Flink is not set up."""
    if not os.path.exists(os.path.join(BASE, "runsql.jar")):
        say(f"no Flink in {BASE} (e2e/bench/flink_setup prepares it): our figures stand alone")
        return None
    return Cluster()


class Cluster:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="flink-bench-")
        for folder in ("conf", "checkpoints", "tmp"):
            os.mkdir(os.path.join(self.dir, folder))
        with open(os.path.join(self.dir, "conf", "config.yaml"), "w") as f:
            f.write(CONFIG + f"execution.checkpointing.dir: file://{self.dir}/checkpoints\nio.tmp.dirs: {self.dir}/tmp\n")
        self.classpath = ":".join(sorted(glob.glob(os.path.join(BASE, "flink/lib/*.jar"))))
        self.processes = []
        atexit.register(self.stop)
        self.spawn("GET_JM_RESOURCE_PARAMS", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")
        self.taskmanager = self.spawn("GET_TM_RESOURCE_PARAMS", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner")
        deadline = time.time() + 90
        while True:
            try:
                if rest("/overview")["taskmanagers"] == 1:
                    break
            except OSError:
                pass
            if time.time() > deadline:
                raise SystemExit(f"Flink did not start; logs in {self.dir}")
            time.sleep(0.1)
        self.warm = False

    def spawn(self, parameters, main):
        out = subprocess.run(["java", "-cp", f"{BASE}/flink/bin/bash-java-utils.jar:{self.classpath}",
                              "org.apache.flink.runtime.util.bash.BashJavaUtils", parameters, "--configDir", f"{self.dir}/conf"],
                             capture_output=True, text=True).stdout
        jvm, *dynamic = re.findall(r"BASH_JAVA_UTILS_EXEC_RESULT:(.*)", out)
        log = open(os.path.join(self.dir, main.rsplit(".", 1)[1] + ".log"), "w")
        process = subprocess.Popen(["java", "-XX:+UseG1GC", *jvm.split(), *OPENS, "-cp", self.classpath, main,
                                    "--configDir", f"{self.dir}/conf", *" ".join(dynamic).split()], stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def cpu(self):
        fields = open(f"/proc/{self.taskmanager.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def peak_rss(self):
        return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{self.taskmanager.pid}/status").read()).group(1)) / 1024

    def run(self, sql, events, parallelism, interval):
        if not self.warm:                                  # the first job pays for class loading and JIT
            self.warm = True
            self.run(sql, events, parallelism, interval)
        file = os.path.join(self.dir, "job.sql")
        with open(file, "w") as f:
            f.write(sql)
        samples, done = [], threading.Event()

        def sample():
            while not done.wait(0.02):
                samples.append((time.time(), self.cpu()))
        thread = threading.Thread(target=sample)
        thread.start()
        try:
            client = subprocess.run(
                ["java", "-Xmx512m", *OPENS, "-cp", self.classpath, "org.apache.flink.client.cli.CliFrontend", "run",
                 f"-Dparallelism.default={parallelism}", f"-Dexecution.checkpointing.interval={interval}",
                 "-c", "RunSql", os.path.join(BASE, "runsql.jar"), file],
                capture_output=True, text=True, env={**os.environ, "FLINK_CONF_DIR": f"{self.dir}/conf"})
        finally:
            done.set()
            thread.join()
        found = re.search(r"job ([0-9a-f]{32})", client.stdout)
        if not found:
            raise SystemExit(f"Flink refused the job:\n{(client.stdout + client.stderr)[-3000:]}")
        job = rest(f"/jobs/{found.group(1)}")
        if job["state"] != "FINISHED":
            raise SystemExit(f"Flink's job ended as {job['state']}")
        begin, end = job["timestamps"]["RUNNING"] / 1000, job["timestamps"]["FINISHED"] / 1000
        used = [c for t, c in samples if begin - 0.02 <= t <= end + 0.02]
        cpu = used[-1] - used[0]
        return {"records_per_s": round(events / (end - begin)), "records_per_cpu_s": round(events / cpu),
                "wall_s": round(end - begin, 2), "cpu_s": round(cpu, 2), "peak_rss_mb": round(self.peak_rss())}

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
