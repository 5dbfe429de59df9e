//! TaskManagers in other processes, over gRPC.
//!
//! ```text
//!  Driver ── deploy, send ──► RemoteTaskManagers ── one bounded queue each ──► stream ──► TaskManager
//!    ▲                              │ registry: who is there, what runs where
//!    └── Inbox ◄── reports, slots ──┴──────────────────────────────── stream ◄── TaskManager
//! ```
//! A stream that ends or falls silent is a lost TaskManager: its attempts are told to the engine as lost, at once.

mod placement;
mod registry;
mod server;
mod standby;

pub use server::{ControlOptions, RemoteTaskManagers, Token};
pub use standby::{Watched, watch};
