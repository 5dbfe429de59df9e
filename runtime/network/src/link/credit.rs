//! How much may be under way on one channel: bytes of records, and events, on separate accounts.
//!
//! ```text
//!   sender                                receiver
//!   SendWindow  ── records, events ──▶  ReceiveWindow ──▶ gate ──▶ task
//!       ▲                                     │ what the task took out
//!       └───────────── grant ─────────────────┘
//! ```
//! A sender may send while its account is above zero, so that an element of any size gets through; it then owes. Before
//! the first grant it has nothing. Events have an account of their own: no barrier waits for room that records took.

use serde::{Deserialize, Serialize};

use crate::frame::Fault;

/// Events that one channel takes before its task must have read some.
pub const EVENT_WINDOW: u32 = 1_024;

/// Above this a grant can only be a mistake: no channel has that much memory.
const MOST: i64 = 1 << 40;

/// What one element takes up. Both ends compute the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Bytes of an encoded batch before compression.
    Records(u32),
    Event,
}

/// Room that a receiver gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Credit {
    /// Bytes of records.
    pub bytes: u32,
    pub events: u32,
}

/// The sender's account.
#[derive(Debug, Default)]
pub struct SendWindow {
    bytes: i64,
    events: i64,
    /// The first grant: the receiver's whole window.
    window: Option<u32>,
}

/// Whether the next element may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Yes; records in pieces of at most this many bytes, where rows allow.
    Open {
        piece: u32,
    },
    Full,
    /// The receiver reads no more.
    Closed,
}

impl SendWindow {
    /// # Errors
    /// More credit than any receiver can have.
    pub fn granted(&mut self, credit: Credit) -> Result<(), Fault> {
        self.window.get_or_insert(credit.bytes);
        self.bytes += i64::from(credit.bytes);
        self.events += i64::from(credit.events);
        if self.bytes > MOST || self.events > MOST {
            return Err(Fault::Malformed("credit beyond all bounds".into()));
        }
        Ok(())
    }

    #[must_use]
    pub fn room_for_records(&self) -> Room {
        if self.bytes > 0 { self.open() } else { Room::Full }
    }

    #[must_use]
    pub fn room_for_event(&self) -> Room {
        if self.events > 0 { self.open() } else { Room::Full }
    }

    fn open(&self) -> Room {
        Room::Open { piece: self.window.unwrap_or(1).max(1) }
    }

    pub fn spend(&mut self, cost: Cost) {
        match cost {
            Cost::Records(bytes) => self.bytes -= i64::from(bytes),
            Cost::Event => self.events -= 1,
        }
    }
}

/// The receiver's account of one sender.
#[derive(Debug)]
pub struct ReceiveWindow {
    bytes: Account,
    events: Account,
}

#[derive(Debug)]
struct Account {
    window: i64,
    /// What the sender may still send, as the receiver knows it.
    left: i64,
    /// Read by the task and not granted again yet.
    read: i64,
}

impl ReceiveWindow {
    #[must_use]
    pub fn new(window: Credit) -> Self {
        Self { bytes: Account::new(window.bytes), events: Account::new(window.events) }
    }

    /// Whether records may come at all: asked before memory is taken for them.
    #[must_use]
    pub fn takes_records(&self) -> bool {
        self.bytes.left > 0
    }

    /// Notes what came.
    ///
    /// # Errors
    /// Without credit; `channel` names it.
    pub fn arrived(&mut self, cost: Cost, channel: u32) -> Result<(), Fault> {
        let (account, amount) = self.account(cost);
        if account.left <= 0 {
            return Err(Fault::CreditExceeded(channel));
        }
        account.left -= amount;
        Ok(())
    }

    /// Notes what the task took out; gives back a grant once it is worth a frame.
    pub fn consumed(&mut self, cost: Cost) -> Option<Credit> {
        let (account, amount) = self.account(cost);
        account.read += amount;
        let due = self.bytes.is_due() || self.events.is_due();
        due.then(|| Credit { bytes: self.bytes.grant(), events: self.events.grant() })
    }

    fn account(&mut self, cost: Cost) -> (&mut Account, i64) {
        match cost {
            Cost::Records(bytes) => (&mut self.bytes, i64::from(bytes)),
            Cost::Event => (&mut self.events, 1),
        }
    }
}

impl Account {
    fn new(window: u32) -> Self {
        Self { window: i64::from(window), left: i64::from(window), read: 0 }
    }

    /// A quarter of the window: the sender never runs dry while the task reads, and grants stay few. A sender that owes
    /// waits at most until everything is read, and by then the whole window is due.
    fn is_due(&self) -> bool {
        self.read > 0 && self.read >= self.window / 4
    }

    fn grant(&mut self) -> u32 {
        let read = u32::try_from(self.read).unwrap_or(u32::MAX);
        self.read -= i64::from(read);
        self.left += i64::from(read);
        read
    }
}
