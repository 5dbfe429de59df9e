//! The meaning of a StreamJob, judged without I/O and without a clock: every fault at once, or a [`ValidatedJob`].
//!
//! Repeats the schema and the CEL rules, since the command line has no API server, and adds what neither can say:
//! time tables, zones, quantities, option keys.

use std::time::Duration;

use serde_json::json;
use streamkeeper_types::CheckpointId;

use crate::autoscaler::Autoscaler;
use crate::checkpoint::{Checkpoint, CheckpointMode};
use crate::fault::Fault;
use crate::load::{self, ConfigMaps};
use crate::restart::{Restart, RestartStrategyName};
use crate::restore::Restore;
use crate::settings::{
    CheckpointSettings, ProgramSource, RestartStrategy, RestoreRequest, SavepointSettings, StateSettings, ValidatedJob,
};
use crate::text::DurationText;
use crate::{StreamJob, StreamJobSpec, config, cron, strict};

mod pods;

/// The schema's bound on `sql`; a ConfigMap's text must keep to it too.
const MAX_SQL: usize = 131_072;

/// Judges a job. `config_maps` holds the ConfigMaps at hand, for `sqlFrom`.
///
/// # Errors
/// Every fault that was found, never an empty list.
pub fn validate(job: &StreamJob, config_maps: &ConfigMaps) -> Result<ValidatedJob, Vec<Fault>> {
    let spec = &job.spec;
    let mut checker = Checker::default();
    strict::check(&json!(spec), load::spec_schema(), "spec", &mut checker.faults);
    if !checker.faults.is_empty() {
        // The rules below read values that the schema vouches for.
        return Err(checker.faults);
    }
    let name = job.metadata.name.clone().unwrap_or_default();
    if name.is_empty() || name.len() > 45 {
        checker.fault("metadata.name", "it must have 1 to 45 characters");
    }
    let program = checker.program(spec, config_maps);
    checker.parallelism(spec);
    let checkpoint = checker.checkpoint(&spec.checkpoint);
    let savepoint = checker.savepoint(spec);
    let config = config::check(&spec.config, &mut checker.faults);
    let restart = checker.restart(&spec.restart, checkpoint.interval.is_some(), &config);
    let restore = checker.restore(&spec.restore);
    checker.cluster(spec);
    checker.autoscaler(&spec.autoscaler, spec.max_parallelism);
    pods::check(spec, &mut checker);

    match program {
        Some(program) if checker.faults.is_empty() => Ok(ValidatedJob {
            name,
            namespace: job.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            program,
            parallelism: spec.parallelism,
            max_parallelism: spec.max_parallelism,
            checkpoint,
            savepoint,
            state: StateSettings { backend: spec.state.backend, memory_percent: spec.state.memory_percent },
            restart,
            restore,
            allow_dropped_state: spec.upgrade.allow_non_restored_state,
            config,
            logging: spec.logging.clone(),
        }),
        _ => Err(checker.faults),
    }
}

/// What the schema allows and this version of the runtime does not do. Refused rather than ignored.
#[must_use]
pub fn unsupported(spec: &StreamJobSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut refuse = |path: &str, way_out: &str| {
        faults.push(Fault::new(path, "this version of the runtime does not do that yet").way_out(way_out));
    };
    if spec.program.is_some() {
        refuse("spec.program", "write the job in SQL, under spec.sql");
    }
    if spec.checkpoint.unaligned {
        refuse("spec.checkpoint.unaligned", "leave it out: barriers are aligned");
    }
    if spec.checkpoint.aligned_timeout.is_some() {
        refuse("spec.checkpoint.alignedTimeout", "leave it out: barriers are aligned");
    }
    if spec.checkpoint.mode == CheckpointMode::AtLeastOnce {
        refuse("spec.checkpoint.mode", "leave it out: the job runs exactly once");
    }
    for key in config::planned(&spec.config) {
        refuse(&format!("spec.config.{key}"), "leave it out");
    }
    faults
}

/// Collects faults while values are parsed. A value that cannot be parsed is replaced, since its fault ends the whole.
#[derive(Default)]
struct Checker {
    faults: Vec<Fault>,
}

impl Checker {
    fn fault(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Fault::new(path, message));
    }

    fn fault_with(&mut self, path: &str, message: impl Into<String>, way_out: impl Into<String>) {
        self.faults.push(Fault::new(path, message).way_out(way_out));
    }

    fn require(&mut self, result: Result<(), String>, path: impl Into<String>) {
        if let Err(cause) = result {
            self.fault(path, cause);
        }
    }

    fn duration(&mut self, text: &DurationText, path: &str) -> Duration {
        text.parse().unwrap_or_else(|cause| {
            self.fault(path, cause);
            Duration::ZERO
        })
    }

    fn at_least(&mut self, text: &DurationText, minimum: &str, path: &str) -> Duration {
        let value = self.duration(text, path);
        if DurationText::new(minimum).parse().is_ok_and(|minimum| value < minimum) {
            self.fault(path, format!("`{text}` is too short; it must be at least {minimum}"));
        }
        value
    }

    /// C1, and `image` beside `program`.
    fn program(&mut self, spec: &StreamJobSpec, config_maps: &ConfigMaps) -> Option<ProgramSource> {
        if spec.image.is_some() && spec.program.is_some() {
            self.fault_with("spec.image", "a program brings its own image", "leave it out and set spec.program.image");
        }
        match (&spec.sql, &spec.sql_from, &spec.program) {
            (Some(sql), None, None) => Some(ProgramSource::Sql(sql.clone())),
            (None, None, Some(program)) => Some(ProgramSource::Image(program.image.clone())),
            (None, Some(from), None) => {
                let path = "spec.sqlFrom";
                let Some(texts) = config_maps.get(&from.config_map) else {
                    let message = format!("there is no ConfigMap `{}` at hand", from.config_map);
                    self.fault_with(path, message, "put it into the same file, or write the text under spec.sql");
                    return None;
                };
                let Some(sql) = texts.get(&from.key) else {
                    self.fault(path, format!("ConfigMap `{}` has no key `{}`", from.config_map, from.key));
                    return None;
                };
                if sql.is_empty() || sql.chars().count() > MAX_SQL {
                    self.fault(path, format!("the text must have 1 to {MAX_SQL} characters"));
                    return None;
                }
                Some(ProgramSource::Sql(sql.clone()))
            }
            (None, None, None) => {
                self.fault_with("spec", "there is nothing to run", "give one of sql, sqlFrom and program");
                None
            }
            _ => {
                self.fault("spec", "sql, sqlFrom and program exclude each other: give exactly one");
                None
            }
        }
    }

    /// C2.
    fn parallelism(&mut self, spec: &StreamJobSpec) {
        if let Some(most) = spec.max_parallelism.filter(|most| spec.parallelism > *most) {
            self.fault("spec.parallelism", format!("{} exceeds maxParallelism, which is {most}", spec.parallelism));
        }
    }

    /// C4.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> CheckpointSettings {
        let interval = self.duration(&checkpoint.interval, "spec.checkpoint.interval");
        if !interval.is_zero() && interval < Duration::from_secs(1) {
            let message = format!("`{}` is too short; it must be 0s (off) or at least 1s", checkpoint.interval);
            self.fault("spec.checkpoint.interval", message);
        }
        if let Some(text) = &checkpoint.aligned_timeout {
            self.duration(text, "spec.checkpoint.alignedTimeout");
        }
        let unaligned = checkpoint.unaligned || checkpoint.aligned_timeout.is_some();
        if unaligned && checkpoint.mode != CheckpointMode::ExactlyOnce {
            self.fault("spec.checkpoint.mode", "unaligned and alignedTimeout need mode exactlyOnce");
        }
        CheckpointSettings {
            storage: checkpoint.storage.as_ref().map(ToString::to_string),
            interval: (!interval.is_zero()).then_some(interval),
            timeout: self.at_least(&checkpoint.timeout, "1s", "spec.checkpoint.timeout"),
            min_pause: self.duration(&checkpoint.min_pause, "spec.checkpoint.minPause"),
            retained: checkpoint.retained,
            tolerable_failures: checkpoint.tolerable_failures,
            incremental: checkpoint.incremental,
        }
    }

    fn savepoint(&mut self, spec: &StreamJobSpec) -> SavepointSettings {
        let savepoint = &spec.savepoint;
        if let Some(schedule) = &savepoint.schedule {
            self.require(cron::check(&schedule.cron), "spec.savepoint.schedule.cron");
            self.require(config::time_zone(&schedule.time_zone), "spec.savepoint.schedule.timeZone");
        }
        self.duration(&savepoint.retention.age, "spec.savepoint.retention.age");
        SavepointSettings {
            storage: savepoint.storage.as_ref().map(ToString::to_string),
            format: savepoint.format,
            timeout: self.at_least(&savepoint.timeout, "10s", "spec.savepoint.timeout"),
        }
    }

    fn restart(&mut self, restart: &Restart, checkpoints: bool, config: &config::Config) -> RestartStrategy {
        let initial = self.duration(&restart.initial_delay, "spec.restart.initialDelay");
        let max = self.duration(&restart.max_delay, "spec.restart.maxDelay");
        let reset_after = self.duration(&restart.reset_after, "spec.restart.resetAfter");
        let delay = self.duration(&restart.delay, "spec.restart.delay");
        let window = self.duration(&restart.window, "spec.restart.window");
        let derived = if checkpoints { RestartStrategyName::ExponentialDelay } else { RestartStrategyName::None };
        match restart.strategy.unwrap_or(derived) {
            RestartStrategyName::None => RestartStrategy::None,
            RestartStrategyName::FixedDelay => RestartStrategy::FixedDelay { attempts: restart.attempts, delay },
            RestartStrategyName::FailureRate => {
                if window.is_zero() {
                    self.fault("spec.restart.window", "failureRate counts failures within it: it cannot be 0s");
                }
                RestartStrategy::FailureRate { failures: restart.failures, window, delay }
            }
            RestartStrategyName::ExponentialDelay => {
                if initial.is_zero() || initial > max {
                    self.fault("spec.restart.initialDelay", "it must be more than 0s and at most maxDelay");
                }
                let multiplier = config.decimal("restart.multiplier").unwrap_or(1.5);
                let jitter = config.decimal("restart.jitter").unwrap_or(0.1);
                RestartStrategy::ExponentialDelay { initial, max, reset_after, multiplier, jitter }
            }
        }
    }

    /// C6.
    fn restore(&mut self, restore: &Restore) -> Option<RestoreRequest> {
        match (&restore.from_savepoint, restore.discard_up_to) {
            (None, None) => None,
            (Some(savepoint), None) => Some(RestoreRequest::FromSavepoint(savepoint.clone())),
            (None, Some(id)) => Some(RestoreRequest::DiscardUpTo(CheckpointId(u64::try_from(id).unwrap_or_default()))),
            (Some(_), Some(_)) => {
                self.fault("spec.restore", "fromSavepoint and discardUpTo exclude each other");
                None
            }
        }
    }

    /// C7 and the other durations that only a cluster reads.
    fn cluster(&mut self, spec: &StreamJobSpec) {
        self.at_least(&spec.deletion_policy.timeout, "30s", "spec.deletionPolicy.timeout");
        self.at_least(&spec.upgrade.rollback.soak, "10s", "spec.upgrade.rollback.soak");
        self.duration(&spec.upgrade.rollback.deadline, "spec.upgrade.rollback.deadline");
        self.duration(&spec.upgrade.preflight.timeout, "spec.upgrade.preflight.timeout");
        self.duration(&spec.upgrade.savepoint_timeout, "spec.upgrade.savepointTimeout");
        if let Some(age) = &spec.upgrade.max_checkpoint_age {
            self.duration(age, "spec.upgrade.maxCheckpointAge");
        }
        self.duration(&spec.health.window, "spec.health.window");
        self.duration(&spec.ttl_after_finished, "spec.ttlAfterFinished");
    }

    /// C8.
    fn autoscaler(&mut self, autoscaler: &Autoscaler, max_parallelism: Option<u32>) {
        let most = autoscaler.max_parallelism;
        if let Some(most) = most.filter(|most| autoscaler.min_parallelism > *most) {
            self.fault("spec.autoscaler.minParallelism", format!("it exceeds maxParallelism, which is {most}"));
        }
        if most.zip(max_parallelism).is_some_and(|(own, job)| own > job) {
            self.fault("spec.autoscaler.maxParallelism", "it exceeds the job's maxParallelism");
        }
        let (target, band) = (autoscaler.target_utilization, autoscaler.utilization_band);
        if target + band > 100 || target <= band {
            self.fault(
                "spec.autoscaler.utilizationBand",
                "the band around targetUtilization must lie between 0 and 100",
            );
        }
        self.at_least(&autoscaler.window, "30s", "spec.autoscaler.window");
        self.duration(&autoscaler.stabilization, "spec.autoscaler.stabilization");
        self.duration(&autoscaler.catch_up, "spec.autoscaler.catchUp");
        self.duration(&autoscaler.scale_down_delay, "spec.autoscaler.scaleDownDelay");
        if let Some(lag) = &autoscaler.max_lag {
            self.duration(lag, "spec.autoscaler.maxLag");
        }
        for (index, period) in autoscaler.excluded_periods.iter().enumerate() {
            let path = format!("spec.autoscaler.excludedPeriods[{index}]");
            self.require(cron::check(&period.cron), format!("{path}.cron"));
            self.require(config::time_zone(&period.time_zone), format!("{path}.timeZone"));
            self.duration(&period.duration, &format!("{path}.duration"));
        }
    }
}
