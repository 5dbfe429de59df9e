"""SQL of the workloads W1 to W7 (docs/performance.md): text that both systems read unchanged."""
from dataclasses import dataclass
from typing import Callable, Optional


@dataclass
class Workload:
    name: str
    input: str                      # which input of inputs.py
    sql: Callable                   # data -> SQL text
    bar: Optional[int] = None       # times Flink, records per CPU second
    limit: Optional[list] = None    # arguments of the example `limit` that computes the same, before and after the file
    anchor: Optional[int] = None    # Flink's records per CPU second, measured on another day on another 2-core machine
    interval: str = "10s"           # of checkpoints
    flink: bool = True              # whether e2e/bench's Flink can run it
    asked: bool = False             # runs only when its name is given: minutes for each run


def kv(data):
    return ("CREATE TABLE kv (key BIGINT, id BIGINT, ts BIGINT, val BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3),"
            " WATERMARK FOR et AS et - INTERVAL '4' SECOND)"
            f" WITH ('connector' = 'filesystem', 'path' = 'file://{data.path('kv')}', 'format' = 'csv');\n"
            "CREATE TEMPORARY VIEW kvm AS SELECT MOD(key, 10000) AS k, val, et FROM kv;\n"
            "CREATE TEMPORARY VIEW kvf AS SELECT key AS k, val, et FROM kv;\n"
            "CREATE TEMPORARY VIEW kvp AS SELECT id, val, PROCTIME() AS pt FROM kv;\n")


def bids(data):
    return ("CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, ts BIGINT, extra VARCHAR,"
            " `dateTime` AS TO_TIMESTAMP_LTZ(ts, 3))"
            f" WITH ('connector' = 'filesystem', 'path' = 'file://{data.path('bids')}', 'format' = 'csv');\n")


def ids(data):
    return ("CREATE TABLE ids (id VARCHAR, val BIGINT)"
            f" WITH ('connector' = 'filesystem', 'path' = 'file://{data.path('ids')}', 'format' = 'csv');\n"
            "CREATE TEMPORARY VIEW idp AS SELECT id, val, PROCTIME() AS pt FROM ids;\n")


def nexmark(data):
    """The generator as a table, and its bids as a view."""
    time = "`dateTime` TIMESTAMP(3)"
    return ("CREATE TABLE src (event_type INT,"
            f" person ROW<id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, {time},"
            " extra VARCHAR>,"
            f" auction ROW<id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, {time},"
            " expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR>,"
            f" bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, {time}, extra VARCHAR>,"
            " `dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime`"
            " ELSE bid.`dateTime` END, WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND) WITH ('connector' = 'nexmark',"
            f" 'first-event.rate' = '100000', 'next-event.rate' = '100000', 'events.num' = '{data.rows['nexmark']}');\n"
            "CREATE TEMPORARY VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra"
            " FROM src WHERE event_type = 2;\n")


def sink(columns):
    return f"CREATE TABLE o ({columns}) WITH ('connector' = 'blackhole');\n"


def running_count(data):
    return kv(data) + sink("key BIGINT, c BIGINT") + "INSERT INTO o SELECT key, COUNT(*) FROM kv GROUP BY key;\n"


def keep_first(view, id_type):
    return (sink(f"id {id_type}, val BIGINT") + "INSERT INTO o SELECT id, val FROM (SELECT id, val, ROW_NUMBER() OVER"
            f" (PARTITION BY id ORDER BY pt ASC) AS rn FROM {view}) WHERE rn = 1;\n")


TUMBLE = (sink("k BIGINT, ws TIMESTAMP(3), c BIGINT") + "INSERT INTO o SELECT k, window_start, COUNT(*) FROM TABLE("
          "TUMBLE(TABLE {view}, DESCRIPTOR(et), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;\n")

ALL = [
    Workload("W1 pass-through, CSV bids", "bids", lambda d: bids(d)
             + sink("auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP_LTZ(3), extra VARCHAR")
             + "INSERT INTO o SELECT auction, bidder, price, `dateTime`, extra FROM bid;\n",
             bar=3, limit=["project"], anchor=552_000),
    Workload("W2 q1, Nexmark generator", "nexmark", lambda d: nexmark(d)
             + sink("auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra VARCHAR")
             + "INSERT INTO o SELECT auction, bidder, 0.908 * price, `dateTime`, extra FROM bid;\n",
             anchor=313_000, flink=False),
    Workload("W3 q2, Nexmark generator", "nexmark", lambda d: nexmark(d) + sink("auction BIGINT, price BIGINT")
             + "INSERT INTO o SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;\n", anchor=341_000, flink=False),
    Workload("W4 count, 1 M keys", "kv", running_count, bar=10, limit=["count"], anchor=115_000),
    Workload("W4 count, checkpoints 1 s", "kv", running_count, limit=["count"], interval="1s"),
    Workload("W5 tumble, 10 k keys", "kv", lambda d: kv(d) + TUMBLE.format(view="kvm"),
             bar=5, limit=["tumble", "10000"], anchor=396_000),
    Workload("W5 tumble, 1 M keys", "kv", lambda d: kv(d) + TUMBLE.format(view="kvf"),
             bar=10, limit=["tumble", "1000000"], anchor=51_000),
    Workload("W7 dedup, 10 M ids", "kv", lambda d: kv(d) + keep_first("kvp", "BIGINT"),
             bar=10, limit=["dedup"], anchor=128_000),
    Workload("W7x dedup beyond the cache", "ids", lambda d: ids(d) + keep_first("idp", "VARCHAR"),
             bar=6, limit=["dedup-text"], asked=True),
]


def chosen(names):
    """Workloads whose name begins with one of `names`; without names all but those that must be asked for."""
    if not names:
        return [w for w in ALL if not w.asked]
    return [w for w in ALL if any(w.name.startswith(n) for n in names) and (not w.asked or w.name.split()[0] in names)]
