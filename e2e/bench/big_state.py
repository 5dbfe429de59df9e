"""A job with about 1 GB of state, and copies of it at a known point.

One running aggregate, `MAX(payload), COUNT(*)` per key over a monitored folder of CSV files: 4,500 keys of 16 characters and
payloads of 200 random hexadecimal digits for each MB. What is not yet to be read is not yet in the folder.
"""
import os, random, shutil

import inputs, ours
from watched import Job

PAYLOAD = 200
KEYS_PER_MB = 4_500
STEP = 7919                      # prime: key i stands at i * STEP modulo the number of keys, so keys come out of order
HOT_ROWS = 15_000_000            # of a file, which is read twice
# Hot keys are a range of 0.4 % of all keys that moves by 0.2 % for each million rows. So at r million rows a second no more
# than 0.4 + 0.2 r per cent of the groups change in a second.
HOT_SHARE, HOT_DRIFT = 0.004, 0.002


def fill(keys):
    source = random.Random(17)
    for i in range(keys):
        yield f"k{i * STEP % keys:015d},{source.randbytes(PAYLOAD // 2).hex()}\n"


def hot(keys, rows):
    source = random.Random(19)
    width = max(1, int(keys * HOT_SHARE))
    for j in range(rows):
        at = int(j * keys * HOT_DRIFT / 1e6 + source.random() * width) % keys
        yield f"k{at:015d},\n"


def fresh(number, rows):
    """Rows of keys that no other file has."""
    source = random.Random(number)
    for i in range(rows):
        yield f"n{number:03d}{i:012d},{source.randbytes(PAYLOAD // 2).hex()}\n"


class BigState:
    """The job's files in a folder of its own below the cache, so that inputs and snapshots can be linked."""

    def __init__(self, binary, megabytes, say):
        self.binary, self.say, self.megabytes = binary, say, megabytes
        self.keys = megabytes * KEYS_PER_MB
        self.fill = inputs.once(os.path.join(inputs.CACHE, f"fill-{self.keys}-v1.csv"), fill(self.keys), say)
        self.folder = os.path.join(inputs.CACHE, f"run-{os.getpid()}")
        self.input = os.path.join(self.folder, "in")
        os.makedirs(self.input)
        self.add(self.fill)
        self.files = self.copies = 0

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, path, name=None):
        """Moves a file into the folder that the job reads."""
        os.link(path, os.path.join(self.input, name or os.path.basename(path)))

    def add_fresh(self, rows):
        self.files += 1
        path = os.path.join(self.folder, f"fresh-{self.files}.csv")
        inputs.write(path, fresh(self.files, rows))
        self.add(path)

    def sql(self):
        return ("CREATE TABLE events (key VARCHAR, payload VARCHAR) WITH ('connector' = 'filesystem',"
                f" 'path' = 'file://{self.input}', 'format' = 'csv', 'source.monitor-interval' = '200ms');\n"
                "CREATE TABLE o (key VARCHAR, p VARCHAR, c BIGINT) WITH ('connector' = 'blackhole');\n"
                "INSERT INTO o SELECT key, MAX(payload), COUNT(*) FROM events GROUP BY key;\n")

    def start(self, storage, interval, parallelism=1, min_pause="500ms"):
        path = ours.job_file(self.folder, self.sql(), interval, min_pause=min_pause)
        return Job(self.binary, path, storage, parallelism)

    def copy(self, storage):
        """A job's folder once more, by hard links: files of snapshots and logs never change."""
        self.copies += 1
        target = os.path.join(self.folder, f"storage-{self.copies}")
        shutil.copytree(storage, target, copy_function=os.link, ignore=shutil.ignore_patterns(".work"))
        return target

    def grow(self, parallelism):
        """Runs the job until all keys are there and a first checkpoint holds them; its folder and that checkpoint.

        No checkpoint may come earlier, so the interval is as long as the filling may take, and is doubled if that was short.
        """
        seconds = max(3, round(self.megabytes * 0.015))
        while True:
            storage = os.path.join(self.folder, f"grown-{parallelism}-{seconds}")
            self.say(f"building up {self.megabytes} MB of state at parallelism {parallelism}; first checkpoint after {seconds} s")
            job = self.start(storage, f"{seconds}s", parallelism, min_pause=f"{seconds}s")
            try:
                begun = job.wait_running().time
                full = job.wait("all keys are there", lambda s: s.taken_in() >= self.keys or s.checkpoint())
                if not full.checkpoint():
                    done = job.wait("the first checkpoint", lambda s: s.checkpoint())
                    return storage, dict(done.checkpoint(), state_bytes=ours.state_bytes(done.status), fill_s=round(full.time - begun, 1))
            finally:
                job.kill()
            shutil.rmtree(storage)
            seconds *= 2

    def settle(self, storage, parallelism, fresh_bytes, samples):
        """Goes on with a checkpoint each second until the whole state was written as a base, then adds `samples` times
        `fresh_bytes` of new keys: a job that has run for a while. Figures of the base and of those increments.
        """
        job = self.start(storage, "1s", parallelism)
        try:
            job.wait_running()
            base, written = None, 0
            for _ in range(50):
                base = self.next_checkpoint(job, 1_000)
                # Subtasks may write their bases in different checkpoints.
                written += base["uploaded_bytes"] if base["uploaded_bytes"] > 1_000_000 else 0
                if written >= self.megabytes * 0.8e6:
                    break
            else:
                raise SystemExit("no checkpoint wrote a base")
            return base, [self.next_checkpoint(job, fresh_bytes) for _ in range(samples)]
        finally:
            job.kill()

    def next_checkpoint(self, job, fresh_bytes):
        """Adds so many bytes of new keys; the first checkpoint that holds them."""
        before = job.samples[-1].checkpoint()
        self.add_fresh(max(1, fresh_bytes // (PAYLOAD + 18)))
        holds_them = lambda c: c and c != before and c["uploaded_bytes"] >= fresh_bytes * 0.3
        return job.wait("a checkpoint of new rows", lambda s: holds_them(s.checkpoint())).checkpoint()
