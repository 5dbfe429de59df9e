"""Input files, generated once into the cache."""
import os, random

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "streamkeeper", "bench")
BASE = 1_767_225_600_000        # 2026-01-01T00:00:00Z
VERSION = 1
ROWS = {"kv": 3_000_000, "bids": 3_000_000, "nexmark": 3_000_000, "ids": 16_000_000}


class Data:
    """`rows`: how many rows each input has; smaller numbers than those above are for a first try."""

    def __init__(self, scale=1.0):
        self.rows = {name: max(1000, int(rows * scale)) for name, rows in ROWS.items()}

    def path(self, name):
        return os.path.join(CACHE, f"{name}-{self.rows[name]}-v{VERSION}.csv")


def write(path, lines):
    with open(path + ".tmp", "w", buffering=1 << 20) as f:
        f.writelines(lines)
    os.rename(path + ".tmp", path)


def once(path, lines, say):
    """Writes the file unless it is there."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        say(f"generating {path}")
        write(path, lines)
    return path


def kv(n):
    """key uniform in [0, 1e6), id uniform in [0, 1e7), ten minutes of event time, val in [0, 1000)."""
    rnd = random.Random(7)
    for i in range(n):
        yield f"{int(rnd.random() * 1e6)},{int(rnd.random() * 1e7)},{BASE + i * 600_000 // n},{int(rnd.random() * 1000)}\n"


def bids(n):
    """Shaped like Nexmark's bids, 178 bytes a row on average: auction, bidder, price, channel, url, ts, extra."""
    rnd = random.Random(11)
    letters = "abcdefghijklmnopqrstuvwxyz"
    pool = ["".join(rnd.choice(letters) for _ in range(90)) for _ in range(997)]
    channels = ["Google", "Facebook", "Baidu", "Apple"] + [f"channel-{i}" for i in range(9996)]
    for i in range(n):
        hot = rnd.random() < 0.5
        channel = channels[int(rnd.random() * 4)] if hot else channels[int(rnd.random() * 10000)]
        auction, bidder = 1000 + i // 50 + int(rnd.random() * 100), 1000 + i // 100 + int(rnd.random() * 1000)
        url = f"https://www.nexmark.com/{pool[i % 997][:5]}/{pool[i % 991][5:10]}/item.htm?query=1&channel_id={int(rnd.random() * 1e8)}"
        yield f"{auction},{bidder},{int(10 ** (rnd.random() * 6) * 100)},{channel},{url},{BASE + i // 100},{pool[i % 997][:int(40 + rnd.random() * 45)]}\n"


def ids(n):
    """id of 240 random hexadecimal digits, one of ten an id of an earlier row; val in [0, 1000). Of 16 M rows the ids
    take 1.9 times the 2 GiB that state has of the 4 GiB of a process."""
    rnd = random.Random(13)
    recent = []
    for i in range(n):
        if recent and rnd.random() < 0.1:
            text = recent[int(rnd.random() * len(recent))]
        else:
            text = f"{rnd.getrandbits(960):0240x}"
            # A sample of all earlier ids, so that repeats are as old as they are new.
            if len(recent) < 100_000:
                recent.append(text)
            elif rnd.random() * i < 100_000:
                recent[int(rnd.random() * 100_000)] = text
        yield f"{text},{i % 1000}\n"


GENERATORS = {"kv": kv, "bids": bids, "ids": ids}


def prepare(names, scale, say):
    """All files of these inputs; those that a connector generates need none."""
    data = Data(scale)
    for name in sorted(set(names) & set(GENERATORS)):
        once(data.path(name), GENERATORS[name](data.rows[name]), say)
    return data
