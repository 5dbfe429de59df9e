"""Input files, generated once into the cache: key-value CSV (uniform keys) and Nexmark bids as CSV."""
import os, random

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "streamkeeper", "bench")
BASE = 1_767_225_600_000        # 2026-01-01T00:00:00Z
VERSION = 1
ROWS = {"kv": 3_000_000, "bids": 3_000_000}


class Data:
    def __init__(self):
        self.rows = dict(ROWS)

    def path(self, name):
        return os.path.join(CACHE, f"{name}-{ROWS[name]}-v{VERSION}.csv")


def write(path, lines):
    with open(path + ".tmp", "w", buffering=1 << 20) as f:
        f.writelines(lines)
    os.rename(path + ".tmp", path)


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


def prepare(_binary, names, say):
    os.makedirs(CACHE, exist_ok=True)
    data = Data()
    for name in sorted(names):
        if not os.path.exists(data.path(name)):
            say(f"generating {data.path(name)}")
            write(data.path(name), {"kv": kv, "bids": bids}[name](ROWS[name]))
    return data
