//! What the engine is not: the thread that runs it, storage, timers, split coordinators, and the caller's handle.
//!
//! ```text
//!  TaskManagers ──reports──▶ Inbox ──▶ driver ──▶ engine::Job
//!       ▲                               │ commands
//!       └──── tasks, triggers ──────────┤
//!        log, manifests ◀───────────────┤
//!             status, answers ◀─────────┘
//! ```

mod coordinators;
mod driver;
mod gateway;
mod handle;
mod inbox;
mod janitor;
mod open;
mod peek;
mod restore;
mod spec;
mod start;
mod status;
mod topology;

pub use gateway::TaskManagers;
pub use handle::{JobHandle, JobOutcome};
pub use inbox::{Inbox, Mail};
pub use peek::{leader, peek};
pub use restore::{Preview, StateChange, preview};
pub use spec::{JobSpec, RestoreChoice};
pub use start::start;
pub use status::{CheckpointSummary, JobStatus, LastCheckpoint, Phase, StatusBoard, VertexStatus};
