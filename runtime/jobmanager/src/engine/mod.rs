//! The pure part of the JobManager: `on(event, now) -> Vec<Command>`, no I/O, clock, thread or randomness.
//!
//! ```text
//!   reports, timers, answers of storage                 storage, tasks, timers, people
//!        │                                                          ▲
//!        ▼                                                          │
//!      Event ──► Job ──► CheckpointCoordinator ──► Command ──► whoever executes
//! ```
//! [`Job`] is the one entrance. It owns the [`CheckpointCoordinator`], asks [`failover`] what a failure means and the
//! [`Scheduler`] for the parallelism, and decides when tasks are deployed. Commands of one call are executed in order.

mod command;
pub mod coordinator;
mod event;
mod exceptions;
pub mod failover;
mod job;
mod options;
mod scheduler;
mod statistics;
mod topology;

pub use command::{Command, JobEnd, Timer};
pub use coordinator::{CheckpointCoordinator, Inherited};
pub use event::{CheckpointRequest, Event, Origin, RequestId, Stored};
pub use exceptions::{Exception, ExceptionHistory};
pub use job::{Job, JobPhase, Restored};
pub use options::{CheckpointOptions, Sharing};
pub use scheduler::{Bounds, Rescale, RescaleCause, RescaleOutcome, Scheduler, SchedulerOptions};
pub use statistics::{CheckpointHistory, CheckpointOutcome, CheckpointStatistics, TaskPart};
pub use topology::{JobTopology, TopologyInput, TopologyOperator, TopologyVertex, Wiring};
