//! Waits that fit a run of a few seconds.

use std::time::Duration;

use streamkeeper_jobmanager::engine::{CheckpointOptions, SchedulerOptions};

pub(super) fn checkpoints() -> CheckpointOptions {
    CheckpointOptions {
        interval: Some(Duration::from_millis(80)),
        min_pause: Duration::from_millis(20),
        timeout: Duration::from_millis(500),
        retained: 1,
        ..CheckpointOptions::default()
    }
}

pub(super) fn scheduler() -> SchedulerOptions {
    SchedulerOptions {
        slot_wait: Duration::from_millis(500),
        stabilization: Duration::from_millis(60),
        cooldown: Duration::from_millis(30),
        ..SchedulerOptions::default()
    }
}
