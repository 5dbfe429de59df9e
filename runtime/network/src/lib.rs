//! How records leave a task and reach the next: elements, bounded channels, and splitting a batch by key group.
//!
//! Three to know: [`Element`] (what travels, in order), [`InputGate`] (a task's inputs with one ready list),
//! [`ChannelSender`] (an output; in-process here, TCP implements the same trait).
//!
//! Must not know: what an operator is, when a barrier blocks an input. What it does know: nothing is read before every
//! input has said where it stands in time (`opening`).

mod element;
mod gate;
mod opening;
mod partition;

pub use element::Element;
pub use gate::{Arrival, ChannelClosed, ChannelSender, GateWaker, InputGate, Interrupt, LocalSender, Sent};
pub use partition::{Partitioned, Partitioner};
