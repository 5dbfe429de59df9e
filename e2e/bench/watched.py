"""A job of ours that is watched while it runs."""
import json, os, signal, subprocess, threading, time
from dataclasses import dataclass

from ours import MEMORY

TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Sample:
    """The job at one moment, as the process printed it."""
    time: float
    cpu_s: float
    status: dict

    def taken_in(self):
        """Records that the operators behind the sources took in."""
        return sum(v["records_in"] for v in self.status["vertices"] if v["source"] is None)

    def checkpoint(self):
        return self.status["checkpoints"]["last"]


class Job:
    """A job in a process of its own, watched through its JSON lines (ten a second). End it by `kill` or `stop`."""

    def __init__(self, binary, path, storage, parallelism):
        self.samples, self.summary, self.changed = [], None, threading.Condition()
        self.begin = time.time()
        self.process = subprocess.Popen(
            [binary, "run", path, "--storage", storage, "--parallelism", str(parallelism), "--memory", MEMORY, "--output", "json"],
            stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _cpu(self):
        try:
            fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICK

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                if "outcome" in message:
                    self.summary = message
                else:
                    self.samples.append(Sample(time.time(), self._cpu(), message["status"]))
                self.changed.notify_all()

    def wait(self, what, wanted, timeout=600):
        """The first sample from now on that is as wanted."""
        deadline, seen = time.time() + timeout, max(len(self.samples) - 1, 0)
        with self.changed:
            while True:
                for sample in self.samples[seen:]:
                    if wanted(sample):
                        return sample
                seen = len(self.samples)
                if time.time() > deadline or not self.thread.is_alive():
                    raise SystemExit(f"the job did not come to this: {what}")
                self.changed.wait(1)

    def wait_running(self):
        return self.wait("all tasks run", lambda s: s.status["phase"] == "running" and s.status["deployment_ms"] is not None)

    def kill(self):
        self.process.kill()
        self._join()

    def stop(self):
        """Stops with a savepoint; the summary that the command ends with."""
        self.process.send_signal(signal.SIGINT)
        self._join()
        if not self.summary or self.summary["outcome"] != "stopped":
            raise SystemExit(f"the job did not stop with a savepoint: {self.summary}")
        return self.summary

    def _join(self):
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()
