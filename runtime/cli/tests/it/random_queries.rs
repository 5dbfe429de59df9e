//! Random aggregate queries over random rows, against DataFusion: each seed is a test file of one job with three sinks.

use std::{env, fmt::Write as _, fs};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use streamkeeper_cli::harness::{Suite, Variant, check_all};

const SEEDS: u64 = 24;
const QUERIES: usize = 3;
/// Runs this seed alone, in every variant.
const SEED_VARIABLE: &str = "STREAMKEEPER_QUERY_SEED";

#[test]
fn random_queries_give_the_rows_of_a_batch_query() {
    if let Ok(seed) = env::var(SEED_VARIABLE) {
        return check(seed.parse().unwrap(), &Variant::all());
    }
    let all = Variant::all();
    for seed in 0..SEEDS {
        // Two variants a seed, so that every pair of neighbours is met.
        let first = usize::try_from(seed).unwrap() % all.len();
        check(seed, &[all[first].clone(), all[(first + 3) % all.len()].clone()]);
    }
}

fn check(seed: u64, variants: &[Variant]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.test.yaml");
    let text = test_file(seed);
    fs::write(&path, &text).unwrap();
    let replay = format!(
        "replay: {SEED_VARIABLE}={seed} cargo test -p streamkeeper-cli --test it random_queries\n\
         or give `streamkeeper test` this file:\n{text}"
    );
    let suite = Suite::read(&path).unwrap_or_else(|error| panic!("{error}\n{replay}"));
    let cases: Vec<_> = suite.cases.iter().collect();
    let verdicts = check_all(&suite, &cases, variants).unwrap_or_else(|error| panic!("{error}\n{replay}"));
    for verdict in verdicts {
        if let Some(rows) = verdict.failure {
            panic!("seed {seed}, {}:\n{rows}\n{replay}", verdict.variant);
        }
    }
}

fn test_file(seed: u64) -> String {
    let mut random = StdRng::seed_from_u64(seed);
    let mut tables = String::new();
    let mut inserts = String::new();
    let mut oracles = String::new();
    for number in 0..QUERIES {
        let query = Query::random(&mut random);
        let sink = format!("o{number}");
        let columns: Vec<String> = (0..).zip(&query.types).map(|(i, data_type)| format!("c{i} {data_type}")).collect();
        writeln!(tables, "  CREATE TABLE {sink} ({}) WITH ('connector' = 'print');", columns.join(", ")).unwrap();
        writeln!(inserts, "  INSERT INTO {sink} {};", query.ours).unwrap();
        writeln!(oracles, "      {sink}: {:?}", query.oracle).unwrap();
    }
    let (keys, skew, nulls) =
        (*[1, 3, 20, 300].choose(&mut random).unwrap(), random.random_range(1..=4), random.random_range(0..=4));
    let (step, delay) = (random.random_range(20..=400), random.random_range(0..=5));
    format!(
        "sql: |
  CREATE TABLE t (k INT, s STRING, n INT, m BIGINT, d DECIMAL(8, 2), f DOUBLE, p BOOLEAN, ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND)
    WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'csv', 'csv.null-literal' = 'NULL');
{tables}  CREATE TEMPORARY VIEW counts AS SELECT k, s, COUNT(*) AS n, SUM(m) AS m, MAX(n) AS top FROM t GROUP BY k, s;
{inserts}cases:
  - name: seed {seed}
    generate:
      t:
        rows: 700
        seed: {seed}
        files: {files}
        columns:
          k: {{numbers: [1, {keys}], skew: {skew}, nulls: 0.0{nulls}}}
          s: {{one-of: [a, b, '', 'c d', null]}}
          n: {{numbers: [-9, 9], nulls: 0.{nulls}}}
          m: {{numbers: [-1000, 1000], nulls: 0.{nulls}}}
          d: {{numbers: [-20, 20], step: 0.01, nulls: 0.{nulls}}}
          f: {{numbers: [-4, 4], step: 0.25, nulls: 0.{nulls}}}
          p: {{one-of: [true, false, null]}}
          ts: {{times: {{start: '1969-12-31 23:59:30', step: {step}ms, disorder: {delay}s}}}}
    oracle:
{oracles}",
        files = random.random_range(1..=3),
    )
}

/// A query in Flink's dialect with the one in DataFusion's that means the same.
struct Query {
    ours: String,
    oracle: String,
    /// Types of the columns.
    types: Vec<String>,
}

/// Where a query's groups come from.
enum From {
    Tumble {
        seconds: u32,
    },
    Hop {
        slide: u32,
        slides: u32,
    },
    Updating,
    /// Over another aggregate, whose rows change.
    Counts,
}

impl Query {
    fn random(random: &mut StdRng) -> Self {
        let from = match random.random_range(0..4) {
            0 => From::Tumble { seconds: *[1, 5, 10, 60].choose(random).unwrap() },
            1 => From::Hop { slide: *[1, 2, 10].choose(random).unwrap(), slides: random.random_range(2..=5) },
            2 => From::Updating,
            _ => From::Counts,
        };
        let over_counts = matches!(from, From::Counts);
        let keys: Vec<(&str, &str)> =
            [("k", "INT"), ("s", "STRING")].into_iter().filter(|_| random.random_bool(0.5)).collect();
        let mut ours: Vec<String> = keys.iter().map(|(key, _)| (*key).to_owned()).collect();
        let mut oracle = ours.clone();
        let mut types: Vec<String> = keys.iter().map(|(_, data_type)| (*data_type).to_owned()).collect();
        for _ in 0..random.random_range(1..=4) {
            let [mine, theirs, data_type] = aggregate(random, over_counts);
            ours.push(mine);
            oracle.push(theirs);
            types.push(data_type);
        }
        let filters: &[&str] = if over_counts {
            &["n > 1", "m >= 0 OR top < 5", "k <> 2", "s IS NOT NULL"]
        } else {
            &["n > 0", "p", "NOT p OR f < 0", "k <> 2", "s = 'a' OR d > 1", "m IS NOT NULL", "s LIKE '%c%'"]
        };
        let filter =
            if random.random_bool(0.5) { format!(" WHERE {}", filters.choose(random).unwrap()) } else { String::new() };
        let having = if random.random_bool(0.3) {
            format!(" HAVING COUNT(*) {}", ["> 2", "< 6", "<> 4"].choose(random).unwrap())
        } else {
            String::new()
        };
        let keys: Vec<&str> = keys.into_iter().map(|(key, _)| key).collect();
        let group_by = |more: &[&str]| {
            let all: Vec<&str> = more.iter().chain(&keys).copied().collect();
            if all.is_empty() { String::new() } else { format!(" GROUP BY {}", all.join(", ")) }
        };
        let windowed = |window: String, of_batch: String, types: Vec<String>| Self {
            ours: format!(
                "SELECT window_start, {} FROM TABLE({window}){filter}{}{having}",
                ours.join(", "),
                group_by(&["window_start", "window_end"])
            ),
            oracle: format!("SELECT w, {} FROM {of_batch}{filter}{}{having}", oracle.join(", "), group_by(&["w"])),
            types: std::iter::once("TIMESTAMP(3)".to_owned()).chain(types).collect(),
        };
        match from {
            From::Tumble { seconds } => windowed(
                format!("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{seconds}' SECOND)"),
                format!("(SELECT *, date_bin(INTERVAL '{seconds} seconds', ts) AS w FROM t)"),
                types,
            ),
            From::Hop { slide, slides } => {
                let back: Vec<String> = (0..slides).map(|i| format!("(INTERVAL '{} seconds')", i * slide)).collect();
                let size = slide * slides;
                windowed(
                    format!("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND)"),
                    format!(
                        "(SELECT *, date_bin(INTERVAL '{slide} seconds', ts) - back AS w FROM t CROSS JOIN (VALUES {}) AS hops (back))",
                        back.join(", ")
                    ),
                    types,
                )
            }
            From::Updating | From::Counts => {
                let counts = "(SELECT k, s, COUNT(*) AS n, SUM(m) AS m, MAX(n) AS top FROM t GROUP BY k, s)";
                let (table, of_batch) = if over_counts { ("counts", counts) } else { ("t", "t") };
                // Without groups a batch query has a row for no input; a streaming one has none.
                let having_rows = if keys.is_empty() && having.is_empty() { " HAVING COUNT(*) > 0" } else { "" };
                Self {
                    ours: format!("SELECT {} FROM {table}{filter}{}{having}", ours.join(", "), group_by(&[])),
                    oracle: format!(
                        "SELECT {} FROM {of_batch}{filter}{}{having}{having_rows}",
                        oracle.join(", "),
                        group_by(&[])
                    ),
                    types,
                }
            }
        }
    }
}

/// An aggregate for us, for DataFusion, and its type.
fn aggregate(random: &mut StdRng, over_counts: bool) -> [String; 3] {
    let numbers: &[(&str, &str, &str)] = if over_counts {
        &[("n", "BIGINT", "BIGINT"), ("m", "BIGINT", "BIGINT"), ("top", "INT", "INT")]
    } else {
        &[
            ("n", "INT", "INT"),
            ("m", "BIGINT", "BIGINT"),
            ("d", "DECIMAL(8, 2)", "DECIMAL(38, 2)"),
            ("f", "DOUBLE", "DOUBLE"),
        ]
    };
    let (column, own, summed) = *numbers.choose(random).unwrap();
    let any = if random.random_bool(0.3) { "s" } else { column };
    let any_type = if any == "s" { "STRING" } else { own };
    let conditions: &[&str] =
        if over_counts { &["n > 2", "s <> 'b'"] } else { &["p", "f > 0", "s <> 'b'", "n IS NULL"] };
    let filter = if random.random_bool(0.4) {
        format!(" FILTER (WHERE {})", conditions.choose(random).unwrap())
    } else {
        String::new()
    };
    let same =
        |call: String, data_type: &str| [format!("{call}{filter}"), format!("{call}{filter}"), data_type.to_owned()];
    match random.random_range(0..7) {
        0 => same("COUNT(*)".to_owned(), "BIGINT"),
        1 => same(format!("COUNT({any})"), "BIGINT"),
        2 => same(format!("COUNT(DISTINCT {any})"), "BIGINT"),
        3 => same(format!("SUM({column})"), summed),
        4 => same(format!("MIN({any})"), any_type),
        5 => same(format!("MAX({any})"), any_type),
        // Averages of integers are cut, as their quotients are; of decimals the two differ in digits.
        _ if column == "d" => same(format!("SUM({column})"), summed),
        _ if column == "f" => same(format!("AVG({column})"), own),
        _ => {
            let quotient = format!("SUM({column}){filter} / COUNT({column}){filter}");
            [format!("AVG({column}){filter}"), quotient, own.to_owned()]
        }
    }
}
