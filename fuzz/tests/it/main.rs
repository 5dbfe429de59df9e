//! A short run of every target, the same inputs each time.

use streamkeeper_fuzz::{TARGETS, target};

/// Seconds would not be repeatable; so many inputs take a few seconds for the slowest target.
const INPUTS: u64 = 20_000;

fn no_panic_on_mutated_seeds(name: &str) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target {name}"));
    if let Err(failure) = target.explore(1, |inputs| inputs < INPUTS) {
        panic!("{failure}");
    }
}

macro_rules! targets {
    ($($test:ident = $name:literal),+ $(,)?) => {
        $(#[test]
        fn $test() {
            no_panic_on_mutated_seeds($name);
        })+

        #[test]
        fn every_target_has_its_test() {
            let tested = [$($name),+];
            let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, tested);
        }
    };
}

targets! {
    stream_job = "stream-job",
    sql = "sql",
    manifest = "manifest",
    log_record = "log-record",
    csv = "csv",
    json = "json",
    raw = "raw",
    parquet = "parquet",
    gzip = "gzip",
}

#[test]
fn each_seed_is_one_that_its_reader_takes() {
    use streamkeeper_checkpoint::{Manifest, log::Record};

    let seeds = |name: &str| target(name).map(|target| (target.seeds)()).unwrap_or_default();
    assert!(seeds("manifest").iter().all(|seed| Manifest::decode("m", seed).is_ok()));
    assert!(seeds("log-record").iter().all(|seed| Record::decode("r", seed).is_ok()));
    let text = |seed: &Vec<u8>| String::from_utf8_lossy(seed).into_owned();
    for seed in seeds("stream-job") {
        assert!(streamkeeper_api::load(&text(&seed)).is_ok(), "{}", text(&seed));
    }
    for seed in seeds("sql") {
        let parsed = streamkeeper_sql::parse::parse_script(&text(&seed));
        assert!(parsed.is_ok(), "{}: {:?}", text(&seed), parsed.err());
    }
}
