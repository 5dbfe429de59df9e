"""What every service shares: cache folder, run folder, free ports, processes with pid files, readiness.

An instance is one folder `<run root>/<service>-<name>/` holding `state.json`, `data/`, and one log per process.
`state.json` keeps each process's argv and environment, so that a killed process can be started again
on the same port and data: that is what fault tests need.
"""
import ctypes, fcntl, json, os, random, shutil, signal, socket, ssl, subprocess, sys, tempfile, time
import urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "streamkeeper", "services")
RUN = os.environ.get("STREAMKEEPER_SERVICES_RUN") or os.path.join(
    tempfile.gettempdir(), f"streamkeeper-services-{os.getuid()}")


class Failed(Exception):
    """The message is for the person: what failed and where to look."""


def note(text):
    print(f"services: {text}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- built once

def built(name, version, build):
    """The cache folder of `name` at `version`; `build(folder)` fills it the first time.

    Built in a temporary folder and renamed, under a lock: a stopped build leaves nothing half-made,
    and two test runs at once build once.
    """
    done = os.path.join(CACHE, f"{name}-{version}")
    if os.path.isdir(done):
        return done
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, f".{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(done):
            return done
        note(f"{name} {version}: fetching and building, once")
        began = time.time()
        work = tempfile.mkdtemp(prefix=f".{name}-", dir=CACHE)
        try:
            build(work)
            os.rename(work, done)
            os.chmod(done, 0o755)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        note(f"{name} {version}: built in {time.time() - began:.0f} s")
    return done


def command(argv, **more):
    """Runs a build or admin command; its output is shown only when it fails."""
    got = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace", **more)
    if got.returncode:
        raise Failed(f"`{' '.join(map(str, argv))[:200]}` exited {got.returncode}:\n{got.stdout[-3000:]}")
    return got.stdout


def go_install(module, version, *binaries):
    """A Go program's folder. `go install` checks the module's own go.sum; nothing outside the module proxy is asked."""
    def build(folder):
        for path in binaries:
            command(["nice", "go", "install", f"{path}@{version}"], env={**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"})
    return built(module, version.lstrip("v"), build)


def maven_libs(folder, pom):
    """Copies the runtime jars of `pom` to folder/lib."""
    shutil.copy(pom, os.path.join(folder, "pom.xml"))
    command(["mvn", "-q", "-B", "-ntp", "dependency:copy-dependencies", "-DoutputDirectory=lib",
             "-DincludeScope=runtime"], cwd=folder)


# ---------------------------------------------------------------- ports and readiness

def free_port():
    """A free port below the ephemeral range, so that no outgoing connection takes it between pick and bind."""
    for _ in range(200):
        port = random.randint(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failed("no free port between 20000 and 32000")


def tcp_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
        return True
    except OSError:
        return False


def http_answers(url, status=None, ca=None):
    """True when `url` answers at all, or with `status` when one is given."""
    try:
        trust = ssl.create_default_context(cafile=ca) if ca else None
        got = urllib.request.urlopen(url, timeout=2, context=trust).status
    except urllib.error.HTTPError as e:
        got = e.code
    except OSError:
        return False
    return status is None or got == status


def certificates(inst, name):
    """A throw-away CA (ca.pem) and a certificate for localhost and 127.0.0.1 (<name>.pem, <name>.key)."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run = lambda *a: command(["openssl", *a], cwd=inst.dir)
    run("req", "-x509", *key, "-days", "30", "-subj", "/CN=streamkeeper test CA", "-keyout", "ca.key", "-out", "ca.pem")
    run("req", *key, "-subj", "/CN=localhost", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    inst.write(f"{name}.san", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
        "-extfile", f"{name}.san", "-out", f"{name}.pem")


# ---------------------------------------------------------------- instances

class Instance:
    def __init__(self, service, name):
        self.service, self.name = service, name
        self.dir = os.path.join(RUN, f"{service}-{name}")
        self.file = os.path.join(self.dir, "state.json")
        self.state = {"env": {}, "procs": {}}
        self.tied = False  # children die with this process
        if os.path.exists(self.file):
            with open(self.file) as f:
                self.state = json.load(f)

    @property
    def up(self):
        return any(alive(p) for p in self.state["procs"].values())

    def fresh(self):
        """An empty folder for a new instance."""
        if self.up:
            raise Failed(f"{self.service} '{self.name}' is up already: {self.dir}")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.path("data"))
        os.chmod(RUN, 0o755)
        self.state = {"env": {}, "procs": {}}

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as f:
            f.write(text)
        return path

    def save(self):
        with open(self.file + ".new", "w") as f:
            json.dump(self.state, f, indent=1)
        os.replace(self.file + ".new", self.file)

    def spawn(self, role, argv, env=None, stop="TERM", ready_port=None):
        """Starts a process in a session of its own, logging to <role>.log."""
        self.state["procs"][role] = {"argv": list(map(str, argv)), "env": env or {}, "stop": stop,
                                     "ready_port": ready_port}
        self.start(role)

    def start(self, role):
        p = self.state["procs"][role]
        if alive(p):
            raise Failed(f"{role} runs already, pid {p['pid']}")
        tied = self.tied

        def in_child():
            if tied:  # PR_SET_PDEATHSIG: no orphan even when this process is killed by SIGKILL
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)

        log = os.open(self.path(f"{role}.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        child = subprocess.Popen(p["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir,
                                 env={**os.environ, **p["env"]}, start_new_session=True, preexec_fn=in_child)
        os.close(log)
        p["pid"], p["started"] = child.pid, started(child.pid)
        self.save()

    def restart(self, role):
        """Starts a killed process again and waits for its port."""
        port = self.state["procs"][role]["ready_port"]
        self.start(role)
        if port:
            self.wait(lambda: tcp_open(port), "listening again", roles=[role])

    def wait(self, check, what, seconds=60, roles=None):
        """Waits until `check()` is true; a process (of `roles`) that ends meanwhile is an error with the end of its log."""
        until = time.time() + seconds
        while not check():
            for role, p in self.state["procs"].items():
                if (roles is None or role in roles) and not alive(p):
                    raise Failed(f"{self.service}: {role} ended before {what}\n{self.tail(role)}")
            if time.time() > until:
                raise Failed(f"{self.service}: not {what} after {seconds} s\n" +
                             "\n".join(self.tail(r) for r in self.state["procs"]))
            time.sleep(0.02)

    def tail(self, role, size=2500):
        path = self.path(f"{role}.log")
        text = open(path, errors="replace").read() if os.path.exists(path) else ""
        return f"--- end of {path}\n{text[-size:]}"

    def ready(self, **env):
        self.state["env"] = {k: str(v) for k, v in env.items()}
        self.save()

    def kill(self, role, sig="KILL"):
        p = self.state["procs"][role]
        if alive(p):
            os.killpg(p["pid"], getattr(signal, f"SIG{sig}"))
        if sig == "KILL":
            until = time.time() + 10  # gone, not only dead: its port is free then
            while (alive(p) or os.path.exists(f"/proc/{p['pid']}")) and time.time() < until:
                time.sleep(0.01)

    def down(self, keep=False):
        """Stops what this instance started, by the pids and start times in its state, and removes its folder."""
        procs = self.state["procs"]
        for role, p in procs.items():
            if alive(p):
                os.killpg(p["pid"], getattr(signal, f"SIG{p['stop']}"))
                os.killpg(p["pid"], signal.SIGCONT)  # one that a test stopped could not end
        until = time.time() + 10
        while any(map(alive, procs.values())) and time.time() < until:
            time.sleep(0.02)
        for role in procs:
            self.kill(role)
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def started(pid):
    """Start time of a process in clock ticks since boot: with the pid it names one process, so a reused pid is never hit."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return None


def alive(p):
    if not p.get("pid"):
        return False
    try:  # reap it if it is our own child, else it stays a zombie and looks alive
        os.waitpid(p["pid"], os.WNOHANG)
    except ChildProcessError:
        pass
    return started(p["pid"]) is not None and started(p["pid"]) == p["started"]


def rss_mb(p):
    """Resident memory of a process and its children, in MB."""
    total, want = 0, {p["pid"]}
    for pid in sorted(int(d) for d in os.listdir("/proc") if d.isdigit()):
        try:
            with open(f"/proc/{pid}/status") as f:
                status = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        if pid in want or int(status["PPid"]) in want:
            want.add(pid)
            total += int(status.get("VmRSS", "0 kB").split()[0])
    return total / 1024
