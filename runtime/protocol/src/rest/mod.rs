//! Bodies of the REST API: one type each, for the server, the command line, the operator and the web UI.
//!
//! Times are milliseconds since 1970 (UTC), durations milliseconds unless the name says otherwise, sizes bytes. Fields
//! may be added; none changes its meaning.

mod checkpoints;
mod failure;
mod job;
mod operations;
mod plan;
mod process;
mod task_managers;

pub use checkpoints::{
    CheckpointCounts, CheckpointList, CheckpointState, CheckpointTask, CheckpointView, SnapshotKind,
};
pub use failure::{ExceptionView, Exceptions, Failure};
pub use job::{
    BoundsView, JobList, JobPhaseView, JobSummary, JobView, Overview, RescaleList, RescaleReason, RescaleState,
    RescaleView, SplitProgress, StatusView, SubtaskPhase, SubtaskView, TimeShares, VertexDetail, VertexView,
};
pub use operations::{
    Accepted, DisposalRequest, OperationKind, OperationState, OperationView, RescaleRequest, SavepointFormat,
    SavepointRequest, SavepointResult, StopRequest,
};
pub use plan::{PlanEdge, PlanOperator, PlanVertex, PlanView};
pub use process::{ConfigView, Health, Role};
pub use task_managers::{TaskManagerList, TaskManagerView, task_name};
