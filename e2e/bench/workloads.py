"""SQL of the workloads W1, W4, W5, W7 (docs/performance.md): text that both systems read unchanged."""
from dataclasses import dataclass
from typing import Callable


@dataclass
class Workload:
    name: str
    input: str                      # which generated file
    sql: Callable                   # data -> SQL text
    bar: int                        # times Flink, records per CPU second
    interval: str = "10s"           # of checkpoints


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


def sink(columns):
    return f"CREATE TABLE o ({columns}) WITH ('connector' = 'blackhole');\n"


TUMBLE = (sink("k BIGINT, ws TIMESTAMP(3), c BIGINT") + "INSERT INTO o SELECT k, window_start, COUNT(*) FROM TABLE("
          "TUMBLE(TABLE {view}, DESCRIPTOR(et), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;\n")

ALL = [
    Workload("W1 pass-through CSV bids", "bids", lambda d: bids(d)
             + sink("auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP_LTZ(3), extra VARCHAR")
             + "INSERT INTO o SELECT auction, bidder, price, `dateTime`, extra FROM bid;\n", 3),
    Workload("W4 running count, 1 M keys", "kv", lambda d: kv(d) + sink("key BIGINT, c BIGINT")
             + "INSERT INTO o SELECT key, COUNT(*) FROM kv GROUP BY key;\n", 10),
    Workload("W5 tumbling count, 10 k keys", "kv", lambda d: kv(d) + TUMBLE.format(view="kvm"), 5),
    Workload("W5 tumbling count, 1 M keys", "kv", lambda d: kv(d) + TUMBLE.format(view="kvf"), 10),
    Workload("W7 dedup keep-first, 10 M ids", "kv", lambda d: kv(d) + sink("id BIGINT, val BIGINT")
             + "INSERT INTO o SELECT id, val FROM (SELECT id, val, ROW_NUMBER() OVER (PARTITION BY id ORDER BY pt ASC) AS rn FROM kvp)"
               " WHERE rn = 1;\n", 10),
    Workload("W4 running count, ckpt 1 s", "kv", lambda d: kv(d) + sink("key BIGINT, c BIGINT")
             + "INSERT INTO o SELECT key, COUNT(*) FROM kv GROUP BY key;\n", 10, "1s"),
]
