//! What the engine is not: the thread that runs it, storage, timers, split coordinators, and the caller's handle.
//!
//! ```text
//!  TaskManagers ──reports──▶ Inbox ──▶ driver ──▶ engine::Job
//!       ▲                               │ commands
//!       └──── tasks, triggers ──────────┤
//!        log, manifests ◀───────────────┤
//!             status, answers ◀─────────┘
//! ```

mod board;
mod control;
mod coordinators;
mod disposal;
mod driver;
mod gateway;
mod handle;
mod inbox;
mod janitor;
mod open;
mod peek;
mod plan;
mod restore;
mod show;
mod spec;
mod start;
mod status;
mod topology;

pub use board::{JobDetails, StatusBoard};
pub use control::JobControl;
pub use gateway::TaskManagers;
pub use handle::{JobHandle, JobOutcome};
pub use inbox::{Inbox, Mail};
pub use peek::{ended, leader, peek};
pub use restore::{Preview, StateChange, preview, preview_of};
pub use spec::{JobSpec, RestoreChoice};
pub use start::start;
pub use status::{CheckpointSummary, Figures, JobStatus, LastCheckpoint, Phase, SubtaskFigures, VertexStatus};
