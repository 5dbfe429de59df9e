//! Channels between TaskManagers: one TCP connection per pair and generation, many channels on it.
//!
//! [`DataPlane`] listens, dials and keeps the connections. A task sees none of it: a [`RemoteSender`] is a
//! [`crate::ChannelSender`] like any other, and what comes in goes to the task's [`crate::InputGate`].
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use streamkeeper_network::{ChannelKey, Compression, InputGate, Interrupt, tcp::*};
//! # fn deploy(options: DataPlaneOptions, peer: &Peer, from: ChannelKey, to: ChannelKey) -> streamkeeper_types::Result<()> {
//! let report = Arc::new(|failure: ChannelFailure| eprintln!("{}: {}", failure.channel, failure.error));
//! let plane = DataPlane::start(options, report)?;
//! // For each task, as its gate and its outputs are made:
//! let gate = InputGate::new(1, 1 << 20);
//! plane.receiver(peer, from, &gate, 1 << 20)?;
//! let output = plane.sender(peer, to, Compression::None, Interrupt::default())?;
//! # Ok(()) }
//! ```
//!
//! Threads: one accepts, one keeps time, and each connection has one that reads and one that writes. Tasks encode on
//! their own thread; the reading thread decodes. All of them block: two threads a peer cost less than a second
//! scheduler beside the tasks', and the protocol itself is in [`crate::link`] anyway.
//!
//! Of two TaskManagers the one with the lower id dials, so that a pair never ends up with two connections. A connection
//! that breaks fails its channels; nothing is sent again, and new attempts get a new one.

mod accept;
mod connection;
mod dial;
mod handshake;
mod options;
mod plane;
mod reader;
mod remote_input;
mod sender;
mod socket;
mod tls;
mod writer;

pub use options::{DataPlaneOptions, Identity};
pub use plane::{ChannelEnd, ChannelFailure, DataPlane, FailureSink, Peer};
pub use sender::RemoteSender;
pub use tls::TlsOptions;
