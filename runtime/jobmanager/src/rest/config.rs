//! The options in force, under the names that they have in a StreamJob.

use std::{collections::BTreeMap, time::Duration};

use streamkeeper_types::duration;

use crate::{
    engine::{
        Sharing,
        failover::{ExponentialDelay, RestartStrategy},
    },
    shell::JobSpec,
};

/// Options of a job as it runs. Only such as are known not to be secret, so that none can slip through (B97).
#[must_use]
pub fn options_of(spec: &JobSpec) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        options.insert(name.to_owned(), value);
    };
    let time = |time: Duration| duration::format(time);
    let checkpoints = &spec.checkpoints;
    set("checkpoint.interval", checkpoints.interval.map_or("off".to_owned(), time));
    set("checkpoint.min-pause", time(checkpoints.min_pause));
    set("checkpoint.timeout", time(checkpoints.timeout));
    set("checkpoint.max-concurrent", checkpoints.max_concurrent.to_string());
    set("checkpoint.tolerable-failures", checkpoints.tolerable_failures.to_string());
    set("checkpoint.retained", checkpoints.retained.to_string());
    set("checkpoint.max-queued", checkpoints.max_queued.to_string());
    set("checkpoint.history", checkpoints.history.to_string());
    set("checkpoint.incremental", (checkpoints.sharing == Sharing::Incremental).to_string());
    let scheduler = &spec.scheduler;
    set("scheduler.slot-wait", time(scheduler.slot_wait));
    set("rescale.stabilization", time(scheduler.stabilization));
    set("rescale.cooldown", time(scheduler.cooldown));
    set("rescale.max-failed-checkpoints", scheduler.max_failed_checkpoints.to_string());
    set("rescale.history", scheduler.history.to_string());
    match &spec.restart {
        RestartStrategy::None => set("restart.strategy", "none".to_owned()),
        RestartStrategy::FixedDelay { attempts, delay } => {
            set("restart.strategy", "fixed-delay".to_owned());
            set("restart.attempts", attempts.to_string());
            set("restart.delay", time(*delay));
        }
        RestartStrategy::FailureRate { failures, window, delay } => {
            set("restart.strategy", "failure-rate".to_owned());
            set("restart.failures", failures.to_string());
            set("restart.window", time(*window));
            set("restart.delay", time(*delay));
        }
        RestartStrategy::ExponentialDelay(ExponentialDelay { initial, max, multiplier, jitter, reset_after }) => {
            set("restart.strategy", "exponential-delay".to_owned());
            set("restart.initial-delay", time(*initial));
            set("restart.max-delay", time(*max));
            set("restart.multiplier", multiplier.to_string());
            set("restart.jitter", jitter.to_string());
            set("restart.reset-after", time(*reset_after));
        }
    }
    options
}
