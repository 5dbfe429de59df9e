//! How records leave a task and reach the next: elements, bounded channels, and splitting a batch by key group.
//!
//! Three to know: [`Element`] (what travels, in order), [`InputGate`] (a task's inputs with one ready list),
//! [`ChannelSender`] (an output: [`LocalSender`] within the process, [`tcp::RemoteSender`] to another TaskManager).
//! Between TaskManagers: [`tcp`] performs what [`link`] decides, in [`frame`]s that carry [`BatchEncoder`]'s bytes.
//!
//! Must not know: what an operator is, when a barrier blocks an input. What it does know: nothing is read before every
//! input has said where it stands in time (`opening`).

mod batch;
mod element;
pub mod frame;
mod gate;
pub mod link;
mod opening;
mod partition;
pub mod tcp;

pub use batch::{BatchDecoder, BatchEncoder, Body, Compression};
pub use element::Element;
pub use frame::{ChannelKey, PeerId};
pub use gate::{
    Arrival, ChannelClosed, ChannelSender, Feed, GateFeeder, GateWaker, InputGate, Interrupt, LocalSender, Sent,
};
pub use partition::{Partitioned, Partitioner};
