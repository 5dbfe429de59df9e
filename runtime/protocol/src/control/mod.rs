//! The control plane between processes: one bidirectional stream for each TaskManager.
//!
//! ```text
//!  TaskManager                                  JobManager
//!     Register{protocol, token, slots, address} ──►  right version, right token, is it the leader?
//!     ◄── Welcome{program}  or  Refused{error}
//!     ◄── Deployment, Command …         Report … ──►        Alive both ways when there is nothing to say
//! ```
//! The end of the stream, or silence, is the end of the other side.

mod bodies;
mod generated;
mod tls;

pub use bodies::{Deployment, Host, JobProgram, RestoreOfOperator, TaskDeployment, decode, encode};
pub use generated::{
    Alive, Command, FromTaskManager, Register, ToTaskManager, WatchRequest, Welcome, control_client, control_server,
    from_task_manager, to_task_manager,
};
pub use tls::{TlsIdentity, endpoint, innermost, unusable};

/// Version of everything that goes over the stream; both ends must have the same. Raised with every change that an
/// older end would misread.
pub const PROTOCOL: u32 = 1;

/// The most bytes that one message may have: a deployment names the state files of every subtask.
pub const MAX_MESSAGE: usize = 64 << 20;
