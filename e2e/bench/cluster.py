"""Jobs over JobManager and TaskManagers as processes: start, failover, leadership, rescale, memory, throughput."""
import http.client, json, os, shutil, signal, socket, statistics, subprocess, tempfile, threading, time

import inputs, ours, workloads
from big_state import BigState

JOB = "default.bench"
TROUBLE_MB = 100                 # of state, where a TaskManager or JobManager is killed
PATIENCE = 120                   # seconds
# What has to be reached: seconds, MB, or a share; `most` says on which side of it.
BARS = {"start": (0.3, "s"), "taskmanager killed": (1.0, "s"), "jobmanager killed": (5.0, "s"), "rescale 1 → 2": (2.0, "s"),
        "idle JobManager": (40, "MB"), "idle TaskManager": (60, "MB"), "two TaskManagers, share of one process": (0.7, "least")}
TRICKLE = ("CREATE TABLE g (k INT, v INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.min' = '1',"
           " 'fields.k.max' = '100');\nCREATE TABLE o (k INT, c BIGINT) WITH ('connector' = 'blackhole');\n"
           "INSERT INTO o SELECT k, COUNT(*) FROM g GROUP BY k;\n")


def measure(binary, args, say):
    rows = [median("start", [start(binary) for _ in range(args.reps)]), *idle(binary)]
    say(f"start and memory: {rows}")
    rows.append(median("taskmanager killed", [task_manager_killed(binary, say) for _ in range(args.reps)]))
    rows.append(median("jobmanager killed", [job_manager_killed(binary, say) for _ in range(args.reps)]))
    rows.append(median("rescale 1 → 2", [rescaled(binary, args.state_mb, say) for _ in range(args.reps)]))
    rows.append(throughput(binary, args, say))
    return rows


def median(what, figures):
    return {"what": what, "figure": statistics.median(figures), "runs": figures}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """JobManagers and TaskManagers of one slot on loopback, with a log each. `end` kills them all."""

    def __init__(self, binary, path, storage, job_managers=1, task_managers=1, parallelism=1):
        self.binary, self.logs = binary, tempfile.mkdtemp(prefix="streamkeeper-bench-logs-")
        self.control = [free_port() for _ in range(job_managers)]
        self.rest = [free_port() for _ in range(job_managers)]
        self.begin = time.time()
        self.job_managers = [self.spawn(f"jobmanager-{i}", "jobmanager", "--job", path, "--storage", storage, "--parallelism",
                                        str(parallelism), "--listen", f"127.0.0.1:{c}", "--rest", f"127.0.0.1:{r}")
                             for i, (c, r) in enumerate(zip(self.control, self.rest))]
        leaders = ",".join(f"127.0.0.1:{port}" for port in self.control)
        self.data = [free_port() for _ in range(task_managers)]
        self.task_managers = [self.spawn(f"taskmanager-{i}", "taskmanager", "--jobmanager", leaders, "--memory", ours.MEMORY,
                                         "--data-listen", f"127.0.0.1:{port}") for i, port in enumerate(self.data)]

    def spawn(self, name, *arguments):
        with open(os.path.join(self.logs, name), "w") as log:
            return subprocess.Popen([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self):
        for process in self.job_managers + self.task_managers:
            process.kill()
            process.wait()
        shutil.rmtree(self.logs)

    def ask(self, path, leader=0, body=None):
        """What the JobManager answers; `None` if it does not, or not yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest[leader], timeout=5)
        try:
            content = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "PUT", path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text or b"{}") if answer.status < 300 else None
        except OSError:
            return None
        finally:
            connection.close()

    def job(self, leader=0):
        return self.ask(f"/jobs/{JOB}", leader)

    def wait(self, what, wanted, leader=0):
        """The first view of the job that is as wanted, and when that was."""
        deadline = time.time() + PATIENCE
        while time.time() < deadline:
            job = self.job(leader)
            if job and wanted(job):
                return job, time.time()
            time.sleep(0.002)
        raise SystemExit(f"the job did not come to this: {what}; logs in {self.logs}")

    def wait_running(self, leader=0):
        return self.wait("all tasks run", lambda job: job["phase"] == "running", leader)

    def busy(self):
        """The number of a TaskManager that runs tasks."""
        members = self.ask("/taskmanagers")["task_managers"]
        port = next(int(member["address"].rsplit(":", 1)[1]) for member in members if member["tasks"])
        return self.data.index(port)


def rss_mb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def start(binary):
    """From the start of both processes until all tasks run."""
    with tempfile.TemporaryDirectory(prefix="streamkeeper-bench-") as folder:
        cluster = Cluster(binary, ours.job_file(folder, TRICKLE, "1s"), os.path.join(folder, "storage"))
        try:
            return round(cluster.wait_running()[1] - cluster.begin, 3)
        finally:
            cluster.end()


def idle(binary):
    """Memory of both processes under a hundred rows a second."""
    with tempfile.TemporaryDirectory(prefix="streamkeeper-bench-") as folder:
        cluster = Cluster(binary, ours.job_file(folder, TRICKLE, "1s"), os.path.join(folder, "storage"))
        try:
            cluster.wait_running()
            cluster.wait("five checkpoints", lambda job: job["checkpoints"]["completed"] >= 5)
            return [{"what": "idle JobManager", "figure": round(rss_mb(cluster.job_managers[0]), 1)},
                    {"what": "idle TaskManager", "figure": round(rss_mb(cluster.task_managers[0]), 1)}]
        finally:
            cluster.end()


class Trouble:
    """A job with state that is fed without pause, and what befalls its cluster."""

    def __init__(self, binary, megabytes, job_managers, task_managers, say):
        self.state = BigState(binary, megabytes, say)
        self.stop = threading.Event()
        try:
            grown, _ = self.state.grow(1)
            self.state.settle(grown, 1, 5_000_000, 1)
            path = ours.job_file(self.state.folder, self.state.sql(), "1s")
            self.cluster = Cluster(binary, path, grown, job_managers, task_managers)
        except BaseException:
            self.state.remove()
            raise
        self.feeder = threading.Thread(target=self._feed, daemon=True)
        self.feeder.start()

    def _feed(self):
        while not self.stop.wait(0.05):
            self.state.add_fresh(50)

    def end(self):
        self.stop.set()
        self.feeder.join()
        self.cluster.end()
        self.state.remove()

    def steady(self):
        """Waits until the job takes rows in and completes checkpoints; how it is then."""
        self.cluster.wait_running()
        return self.cluster.wait("two checkpoints and rows", lambda job: job["checkpoints"]["completed"] >= 2 and taken_in(job))[0]


def taken_in(job):
    """Records that the operators behind the sources took in since the latest deployment."""
    return sum(vertex["records_in"] for vertex in job["vertices"] if not vertex.get("source"))


def task_manager_killed(binary, say):
    """With a spare slot: from the kill until the operators behind the source work on new rows."""
    trouble = Trouble(binary, TROUBLE_MB, 1, 2, say)
    try:
        before = trouble.steady()["restarts"]
        process = trouble.cluster.task_managers[trouble.cluster.busy()]
        begin = time.time()
        process.kill()
        _, end = trouble.cluster.wait("rows after the restart", lambda job: job["restarts"] > before and taken_in(job))
        say(f"TaskManager killed: rows again after {end - begin:.3f} s")
        return round(end - begin, 3)
    finally:
        trouble.end()


def job_manager_killed(binary, say):
    """With a standby: from the kill to the first checkpoint under the new leader."""
    trouble = Trouble(binary, TROUBLE_MB, 2, 1, say)
    try:
        cluster = trouble.cluster
        deadline = time.time() + PATIENCE
        while not (leading := [i for i in (0, 1) if cluster.job(i)]):
            if time.time() > deadline:
                raise SystemExit(f"nobody leads; logs in {cluster.logs}")
        leader, other = leading[0], 1 - leading[0]
        cluster.wait("two checkpoints", lambda job: job["checkpoints"]["completed"] >= 2, leader)
        begin = time.time()
        cluster.job_managers[leader].kill()
        _, end = cluster.wait("a checkpoint under the new leader", lambda job: job["checkpoints"]["completed"] >= 1, other)
        say(f"JobManager killed: checkpoint after {end - begin:.3f} s")
        return round(end - begin, 3)
    finally:
        trouble.end()


def rescaled(binary, megabytes, say):
    """Seconds without tasks, as the JobManager measured them."""
    trouble = Trouble(binary, megabytes, 1, 2, say)
    try:
        trouble.steady()
        trouble.cluster.ask(f"/jobs/{JOB}/resources", body={"parallelism": 2})
        trouble.cluster.wait("parallelism 2", lambda job: job["phase"] == "running" and job["parallelism"] == 2)
        done = [r for r in trouble.cluster.ask(f"/jobs/{JOB}/rescales")["rescales"] if r.get("pause_ms") is not None]
        say(f"rescale of {megabytes} MB: {done}")
        return done[0]["pause_ms"] / 1000
    finally:
        trouble.end()


def throughput(binary, args, say):
    """W4 at parallelism 2: one process against two TaskManagers, from process start to the job's end."""
    data = inputs.prepare({"kv"}, args.scale, say)
    sql, events = workloads.running_count(data), data.rows["kv"]
    runs = {"one process": [], "two TaskManagers": []}
    for _ in range(args.reps):
        runs["one process"].append(ours.run(binary, sql, events, parallelism=2)["records_per_s"])
        runs["two TaskManagers"].append(round(events / over_two(binary, sql)))
        say(f"W4 at parallelism 2: {runs}")
    one, two = (statistics.median(figures) for figures in runs.values())
    return {"what": "two TaskManagers, share of one process", "figure": round(two / one, 2), "runs": runs}


def over_two(binary, sql):
    with tempfile.TemporaryDirectory(prefix="streamkeeper-bench-") as folder:
        path = ours.job_file(folder, sql, "10s", 2)
        cluster = Cluster(binary, path, os.path.join(folder, "storage"), task_managers=2, parallelism=2)
        try:
            if cluster.job_managers[0].wait(PATIENCE) != 0:
                raise SystemExit(f"the job failed; logs in {cluster.logs}")
            return time.time() - cluster.begin
        finally:
            cluster.end()


def table(rows):
    lines = [f"{'':42} {'median':>9} {'bar':>9}", "-" * 62]
    for row in rows:
        bar, unit = BARS[row["what"]]
        side = "≥" if unit == "least" else "<"
        lines.append(f"{row['what']:42} {row['figure']:9.2f} {side + ' ' + str(bar):>9} {'' if unit == 'least' else unit}")
    return "\n".join(lines)
