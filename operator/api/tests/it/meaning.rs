//! What a person is told about the meaning of a job that has the right form.

use std::time::Duration;

use serde_json::{Value, json};
use streamkeeper_api::{
    ConfigMaps, Fault, ProgramSource, RestartStrategy, RestoreRequest, StreamJob, StreamJobSpec, ValidatedJob,
    unsupported, validate,
};
use streamkeeper_types::CheckpointId;

fn job(spec: Value) -> StreamJob {
    let spec: StreamJobSpec = serde_json::from_value(spec).unwrap();
    StreamJob::new("j", spec)
}

fn with_sql(mut spec: Value) -> Value {
    spec["sql"] = json!("SELECT 1");
    spec
}

fn valid(spec: Value) -> ValidatedJob {
    validate(&job(with_sql(spec)), &ConfigMaps::new()).unwrap()
}

#[track_caller]
fn check(spec: Value, expected: &[&str]) {
    let faults = validate(&job(spec), &ConfigMaps::new()).err().unwrap_or_default();
    let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert_eq!(faults, expected);
}

#[test]
fn c1_exactly_one_program() {
    check(json!({}), &["spec: there is nothing to run (give one of sql, sqlFrom and program)"]);
    let both = json!({ "program": { "image": "i" } });
    check(with_sql(both), &["spec: sql, sqlFrom and program exclude each other: give exactly one"]);
    check(
        json!({ "program": { "image": "i" }, "image": "r" }),
        &["spec.image: a program brings its own image (leave it out and set spec.program.image)"],
    );
}

#[test]
fn c2_parallelism_within_the_number_of_key_groups() {
    check(
        with_sql(json!({ "parallelism": 5, "maxParallelism": 4 })),
        &["spec.parallelism: 5 exceeds maxParallelism, which is 4"],
    );
}

#[test]
fn c4_checkpoint_times() {
    check(
        with_sql(json!({ "checkpoint": { "interval": "999ms", "timeout": "0s" } })),
        &[
            "spec.checkpoint.interval: `999ms` is too short; it must be 0s (off) or at least 1s",
            "spec.checkpoint.timeout: `0s` is too short; it must be at least 1s",
        ],
    );
    check(
        with_sql(json!({ "checkpoint": { "unaligned": true, "mode": "atLeastOnce" } })),
        &["spec.checkpoint.mode: unaligned and alignedTimeout need mode exactlyOnce"],
    );
}

#[test]
fn c6_one_source_of_state() {
    check(
        with_sql(json!({ "restore": { "fromSavepoint": "s", "discardUpTo": 3 } })),
        &["spec.restore: fromSavepoint and discardUpTo exclude each other"],
    );
}

#[test]
fn c7_and_the_other_least_times() {
    check(
        with_sql(json!({
            "deletionPolicy": { "timeout": "29s" },
            "savepoint": { "timeout": "9s" },
            "upgrade": { "rollback": { "soak": "9s" } },
        })),
        &[
            "spec.savepoint.timeout: `9s` is too short; it must be at least 10s",
            "spec.deletionPolicy.timeout: `29s` is too short; it must be at least 30s",
            "spec.upgrade.rollback.soak: `9s` is too short; it must be at least 10s",
        ],
    );
}

#[test]
fn c8_autoscaler() {
    check(
        with_sql(json!({
            "maxParallelism": 8,
            "autoscaler": {
                "minParallelism": 10, "maxParallelism": 9, "targetUtilization": 90, "utilizationBand": 20, "window": "1s",
            },
        })),
        &[
            "spec.autoscaler.minParallelism: it exceeds maxParallelism, which is 9",
            "spec.autoscaler.maxParallelism: it exceeds the job's maxParallelism",
            "spec.autoscaler.utilizationBand: the band around targetUtilization must lie between 0 and 100",
            "spec.autoscaler.window: `1s` is too short; it must be at least 30s",
        ],
    );
}

#[test]
fn time_tables_and_zones_parse() {
    check(
        with_sql(json!({
            "savepoint": { "schedule": { "cron": "0 25 * * *", "timeZone": "Mars/Base" } },
            "autoscaler": { "excludedPeriods": [{ "cron": "x", "duration": "1h" }] },
        })),
        &[
            "spec.savepoint.schedule.cron: `25` is no hour: values lie between 0 and 23",
            "spec.savepoint.schedule.timeZone: `Mars/Base` is no time zone; write an IANA name such as Europe/Berlin",
            "spec.autoscaler.excludedPeriods[0].cron: `x` has 1 fields; five are expected: minute, hour, day of month, month, day of week",
        ],
    );
}

#[test]
fn config_takes_known_free_options_only() {
    check(
        with_sql(json!({ "config": {
            "checkpoint.interval": "1s",
            "liveness.timeout": "2 s",
            "state.rocksdb.blom": "true",
            "state.rocksdb.compression": "gzip",
            "timers.cache-per-group": "0",
        } })),
        &[
            "spec.config.checkpoint.interval: a field of the spec holds this option (set spec.checkpoint.interval)",
            "spec.config.liveness.timeout: `2 s` is no duration: units are ms, s, m and h; write for example 500ms, 10s, 5m or 1h30m",
            "spec.config.state.rocksdb.blom: the runtime has no such option (did you mean `state.rocksdb.bloom`?)",
            "spec.config.state.rocksdb.compression: `gzip` is none of none, lz4, zstd",
            "spec.config.timers.cache-per-group: `0` is no whole number between 1 and 1000000",
        ],
    );
}

#[test]
fn quantities_and_templates_are_read() {
    check(
        with_sql(json!({
            "jobManager": { "resources": { "requests": { "cpu": "2", "memory": "1Gi" }, "limits": { "cpu": "500m", "memory": "2Gi" } } },
            "taskManager": {
                "resources": { "requests": { "cpu": "lots" }, "limits": {} },
                "podTemplate": { "spec": { "nodeSelector": "ssd" } },
            },
        })),
        &[
            "spec.jobManager.resources.requests.cpu: it exceeds the limit",
            "spec.jobManager.resources.requests.memory: it differs from limits.memory (write the same amount in both: state is sized by it)",
            "spec.taskManager.resources.requests.cpu: `lots` is no quantity: a number is missing; write for example 500m, 2, 256Mi or 1Gi",
            "spec.taskManager.podTemplate: it is no pod template: invalid type: string \"ssd\", expected a map",
        ],
    );
}

#[test]
fn a_spec_that_came_from_no_file_is_bounded_too() {
    let mut job = job(with_sql(json!({})));
    job.spec.parallelism = 40_000;
    let faults = validate(&job, &ConfigMaps::new()).unwrap_err();
    assert_eq!(faults[0].to_string(), "spec.parallelism: 40000 is out of bounds; it must lie between 1 and 32768");
}

#[test]
fn a_valid_job_has_everything_parsed() {
    let job = valid(json!({ "checkpoint": { "interval": "1s" }, "restore": { "discardUpTo": 7 } }));
    assert_eq!((job.name.as_str(), job.namespace.as_str()), ("j", "default"));
    assert_eq!(job.program, ProgramSource::Sql("SELECT 1".to_owned()));
    assert_eq!(job.checkpoint.interval, Some(Duration::from_secs(1)));
    assert_eq!(job.checkpoint.min_pause, Duration::from_millis(500));
    assert_eq!(job.checkpoint.storage, None);
    assert_eq!(job.restore, Some(RestoreRequest::DiscardUpTo(CheckpointId(7))));
    assert_eq!(job.max_parallelism, None);
}

#[test]
fn the_restart_strategy_follows_checkpoints_unless_it_is_set() {
    let exponential = RestartStrategy::ExponentialDelay {
        initial: Duration::from_millis(100),
        max: Duration::from_mins(1),
        reset_after: Duration::from_hours(1),
        multiplier: 1.5,
        jitter: 0.1,
    };
    assert_eq!(valid(json!({})).restart, exponential);
    assert_eq!(valid(json!({ "checkpoint": { "interval": "0s" } })).restart, RestartStrategy::None);
    assert_eq!(
        valid(json!({ "restart": { "strategy": "fixedDelay", "attempts": 4 } })).restart,
        RestartStrategy::FixedDelay { attempts: 4, delay: Duration::from_secs(1) }
    );
    check(
        with_sql(json!({ "restart": { "initialDelay": "2m" } })),
        &["spec.restart.initialDelay: it must be more than 0s and at most maxDelay"],
    );
}

#[test]
fn what_the_runtime_cannot_do_is_refused_not_ignored() {
    assert_eq!(unsupported(&job(with_sql(json!({}))).spec), []);
    let spec = json!({
        "program": { "image": "i" },
        "checkpoint": { "unaligned": true, "alignedTimeout": "1s", "mode": "atLeastOnce" },
        "config": { "network.debloat": "true", "checkpoint.history": "7" },
    });
    let paths: Vec<String> = unsupported(&job(spec).spec).into_iter().map(|fault| fault.path).collect();
    assert_eq!(
        paths,
        [
            "spec.program",
            "spec.checkpoint.unaligned",
            "spec.checkpoint.alignedTimeout",
            "spec.checkpoint.mode",
            "spec.config.network.debloat"
        ]
    );
}
