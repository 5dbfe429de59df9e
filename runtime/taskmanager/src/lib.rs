//! Runs tasks: slots, memory, channels between tasks, and for one machine JobManager and TaskManager in one process.
//!
//! Four to know: [`TaskManager`] (deploys and steers tasks), [`MemoryPlan`] (how a process's memory is divided),
//! [`local::run_local`] (a whole job in this process), [`remote::serve`] (tasks for a JobManager elsewhere).
//!
//! Must not know: SQL, any connector, when checkpoints are triggered.

pub mod local;
mod memory;
pub mod remote;
mod task_manager;
mod watchdog;
mod wiring;

pub use memory::MemoryPlan;
pub use task_manager::{TaskManager, TaskManagerOptions};
pub use watchdog::OnStuck;
