"""Throughput: each workload through us, Flink and the plain loop, in turn."""
import statistics

import flink, inputs, ours, workloads

COLUMNS = (("workload", 27), ("records/s", 10), ("per CPU s", 10), ("RSS MB", 6), ("Flink/CPU s", 11), ("RSS MB", 6),
           ("ratio", 7), ("bar", 4), ("limit", 6))


def measure(binary, args, say):
    """A row for each chosen workload: medians of ours, Flink's and the limit's, and their ratios."""
    chosen = workloads.chosen(args.workloads)
    data = inputs.prepare({w.input for w in chosen}, args.scale, say)
    plain_loop = ours.build_limit(args.profile, args.binary, say) if any(w.limit for w in chosen) else None
    wanted = any(w.flink for w in chosen) and not args.no_flink
    cluster = flink.start(say) if wanted else None
    try:
        return [row(w, data, binary, plain_loop, cluster if w.flink else None, args, say) for w in chosen]
    finally:
        if cluster:
            cluster.stop()


def row(w, data, binary, plain_loop, cluster, args, say):
    sql, events = w.sql(data), data.rows[w.input]
    runs = {"streamkeeper": [], "flink": [], "limit": []}
    for rep in range(args.reps):
        runs["streamkeeper"].append(ours.run(binary, sql, events, w.interval, args.parallelism))
        if cluster:
            runs["flink"].append(cluster.run(sql, events, args.parallelism, w.interval))
        if w.limit and plain_loop:
            runs["limit"].append(ours.limit(plain_loop, w.limit, data.path(w.input), events))
        say(f"{w.name}: run {rep + 1} of {args.reps}: " + " | ".join(f"{who} {r[-1]}" for who, r in runs.items() if r))
    result = {"workload": w.name, "records": events, "parallelism": args.parallelism, "interval": w.interval, "bar": w.bar}
    result |= {who: medians(r) for who, r in runs.items() if r}
    per_cpu = result["streamkeeper"]["records_per_cpu_s"]
    if "flink" in result:
        result["ratio"] = round(per_cpu / result["flink"]["records_per_cpu_s"], 2)
    elif w.anchor:
        result |= {"anchor": w.anchor, "ratio_to_anchor": round(per_cpu / w.anchor, 2)}
    if "limit" in result:
        result["share_of_limit"] = round(per_cpu / result["limit"]["records_per_cpu_s"], 3)
    return result


def medians(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def table(rows):
    """The rows as text of at most 100 columns."""
    lines = [" ".join(f"{title:<{width}}" if i == 0 else f"{title:>{width}}" for i, (title, width) in enumerate(COLUMNS))]
    lines.append("-" * len(lines[0]))
    lines += [" ".join(f"{text:<{width}}" if i == 0 else f"{text:>{width}}" for i, (text, (_, width)) in enumerate(zip(cells(r), COLUMNS)))
              for r in rows]
    if any("anchor" in r for r in rows):
        lines.append("* Flink 2.3 measured on another day on another 2-core machine: an anchor, not a comparison")
    if any("share_of_limit" in r for r in rows):
        lines.append("limit: our share of what a plain loop over the same batches does per CPU second")
    return "\n".join(lines)


def cells(r):
    s, f = r["streamkeeper"], r.get("flink")
    theirs, rss, ratio = "–", "–", "–"
    if f:
        theirs, rss, ratio = f"{f['records_per_cpu_s']:,.0f}", f"{f['peak_rss_mb']:,.0f}", f"{r['ratio']:.1f}×"
    elif "anchor" in r:
        theirs, ratio = f"{r['anchor']:,.0f}*", f"{r['ratio_to_anchor']:.1f}×*"
    return (r["workload"], f"{s['records_per_s']:,.0f}", f"{s['records_per_cpu_s']:,.0f}", f"{s['peak_rss_mb']:,.0f}", theirs, rss, ratio,
            f"{r['bar']}×" if r["bar"] else "", f"{r['share_of_limit']:.0%}" if "share_of_limit" in r else "")
