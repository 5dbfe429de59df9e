//! Requests that take time: begun by a POST, looked at under `/requests/{request}`.
//!
//! Bounded in number; one that ended is kept for five minutes. The same idempotency key gives the same request as long as
//! it is kept.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use streamkeeper_engine::Clock;
use streamkeeper_protocol::rest::{Failure, OperationKind, OperationState, OperationView, SavepointResult};
use streamkeeper_types::{Code, Error, Millis, Result};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// How long the outcome of a request is kept.
const KEPT: Millis = 5 * 60 * 1_000;

/// Requests at most, those that ended included.
const AT_MOST: usize = 1_000;

/// Requests under way at most.
const UNDER_WAY: usize = 100;

/// A wish as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    pub kind: OperationKind,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// What exactly was asked for: the same key with another wish is a mistake.
    pub text: String,
    /// Folder that no other request may write to meanwhile.
    pub folder: Option<String>,
}

/// All requests of this process.
#[derive(Debug)]
pub(super) struct Requests {
    clock: Arc<dyn Clock>,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Counts requests that ended.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct Entry {
    view: OperationView,
    wish: Wish,
    /// Whether somebody was told how it ended.
    told: bool,
}

impl Entry {
    fn is_open(&self) -> bool {
        self.view.state == OperationState::InProgress
    }
}

impl Requests {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, entries: Mutex::default(), ended: watch::Sender::new(0) }
    }

    /// The request that this wish began earlier.
    ///
    /// # Errors
    /// `CONFLICT` if its key was used for another wish.
    pub(super) fn repeated(&self, wish: &Wish) -> Result<Option<String>> {
        let mut entries = self.entries.lock();
        self.forget_old(&mut entries);
        repeated(&entries, wish)
    }

    /// Begins a request, or finds the one that this wish began earlier.
    ///
    /// # Errors
    /// `CONFLICT` if another request writes to the folder or has the key, `OVERLOADED` if there are too many.
    pub(super) fn begin(&self, wish: Wish) -> Result<Begun> {
        let mut entries = self.entries.lock();
        self.forget_old(&mut entries);
        if let Some(request) = repeated(&entries, &wish)? {
            return Ok(Begun::Earlier(request));
        }
        let open = || entries.values().filter(|entry| entry.is_open());
        if let Some(folder) = &wish.folder
            && open().any(|entry| entry.wish.folder.as_ref() == Some(folder))
        {
            return Err(Error::new(Code::Conflict, format!("another request is at work on `{folder}`"))
                .way_out("choose another name, or wait for it"));
        }
        if open().count() >= UNDER_WAY {
            return Err(Error::new(Code::Overloaded, format!("{UNDER_WAY} requests are under way already"))
                .way_out("wait for some of them to end"));
        }
        while entries.len() >= AT_MOST {
            let oldest = entries.values().filter(|entry| !entry.is_open()).min_by_key(|entry| entry.view.ended_at);
            let Some(oldest) = oldest.map(|entry| entry.view.request.clone()) else { break };
            entries.remove(&oldest);
        }
        // Random, so that an id of an earlier process of this job never names another request.
        let request = format!("{:016x}", rand::random::<u64>());
        let view = OperationView {
            request: request.clone(),
            kind: wish.kind,
            state: OperationState::InProgress,
            started_at: self.clock.now(),
            ended_at: None,
            savepoint: None,
            failure: None,
        };
        entries.insert(request.clone(), Entry { view, wish, told: false });
        Ok(Begun::Now(request))
    }

    /// Notes how a request ended.
    pub(super) fn end(&self, request: &str, outcome: Result<Option<SavepointResult>>) {
        if let Some(Entry { view, .. }) = self.entries.lock().get_mut(request) {
            view.ended_at = Some(self.clock.now());
            match outcome {
                Ok(savepoint) => {
                    view.state = OperationState::Completed;
                    view.savepoint = savepoint;
                }
                Err(error) => {
                    view.state = OperationState::Failed;
                    view.failure = Some(Failure::from(&error));
                }
            }
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Where a request stands.
    pub(super) fn look(&self, request: &str) -> Option<OperationView> {
        let mut entries = self.entries.lock();
        self.forget_old(&mut entries);
        let entry = entries.get_mut(request)?;
        entry.told |= !entry.is_open();
        Some(entry.view.clone())
    }

    /// As [`Requests::look`], once it has ended or after this time.
    pub(super) async fn wait(&self, request: &str, within: Duration) -> Option<OperationView> {
        let deadline = Instant::now() + within;
        let mut ended = self.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let view = self.look(request)?;
            if view.state != OperationState::InProgress || timeout_at(deadline, ended.changed()).await.is_err() {
                return self.look(request);
            }
        }
    }

    /// Whether somebody may still come for an outcome.
    pub(super) fn has_untold(&self) -> bool {
        self.entries.lock().values().any(|entry| !entry.told)
    }

    fn forget_old(&self, entries: &mut BTreeMap<String, Entry>) {
        let since = self.clock.now().saturating_sub(KEPT);
        entries.retain(|_, entry| entry.view.ended_at.is_none_or(|ended| ended > since));
    }
}

/// How a wish became a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begun {
    /// Whoever asked has to do it.
    Now(String),
    Earlier(String),
}

fn repeated(entries: &BTreeMap<String, Entry>, wish: &Wish) -> Result<Option<String>> {
    let Some(key) = &wish.key else { return Ok(None) };
    let Some(entry) = entries.values().find(|entry| entry.wish.key.as_ref() == Some(key)) else { return Ok(None) };
    if (entry.wish.kind, &entry.wish.text) != (wish.kind, &wish.text) {
        return Err(Error::new(Code::Conflict, format!("the idempotency key `{key}` belongs to another request"))
            .way_out("give each request a key of its own, and repeat it only with the same body"));
    }
    Ok(Some(entry.view.request.clone()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use streamkeeper_engine::ManualClock;

    use super::*;

    fn wish(key: Option<&str>, folder: Option<&str>) -> Wish {
        Wish {
            kind: OperationKind::Savepoint,
            key: key.map(str::to_owned),
            text: "x".into(),
            folder: folder.map(str::to_owned),
        }
    }

    fn requests() -> (ManualClock, Requests) {
        let clock = ManualClock::new(1_000);
        (clock.clone(), Requests::new(Arc::new(clock)))
    }

    fn begin(requests: &Requests, wish: Wish) -> String {
        match requests.begin(wish).unwrap() {
            Begun::Now(request) => request,
            Begun::Earlier(request) => panic!("{request} was there before"),
        }
    }

    #[test]
    fn the_same_key_gives_the_same_request_and_another_wish_under_it_is_refused() {
        let (_, requests) = requests();
        let request = begin(&requests, wish(Some("k"), None));
        assert_eq!(requests.begin(wish(Some("k"), None)), Ok(Begun::Earlier(request.clone())));
        requests.end(&request, Ok(None));
        assert_eq!(requests.repeated(&wish(Some("k"), None)), Ok(Some(request.clone())));
        let other = Wish { text: "y".into(), ..wish(Some("k"), None) };
        assert_eq!(requests.begin(other).unwrap_err().code, Code::Conflict);
        assert_ne!(begin(&requests, wish(None, None)), request);
    }

    #[test]
    fn outcomes_are_kept_for_five_minutes_and_open_requests_as_long_as_they_last() {
        let (clock, requests) = requests();
        let (open, ended) = (begin(&requests, wish(None, None)), begin(&requests, wish(Some("k"), None)));
        requests.end(&ended, Err(Error::new(Code::SavepointFailed, "no")));
        clock.set(1_000 + KEPT - 1);
        assert_eq!(requests.look(&ended).unwrap().failure.unwrap().code, "SAVEPOINT_FAILED");
        clock.set(1_000 + KEPT);
        assert_eq!(requests.look(&ended), None);
        assert_eq!(requests.look(&open).unwrap().state, OperationState::InProgress);
        assert_eq!(requests.repeated(&wish(Some("k"), None)), Ok(None), "the key is free again");
    }

    #[test]
    fn one_folder_has_one_writer() {
        let (_, requests) = requests();
        let first = begin(&requests, wish(None, Some("savepoints/a")));
        assert_eq!(requests.begin(wish(None, Some("savepoints/a"))).unwrap_err().code, Code::Conflict);
        requests.end(&first, Ok(None));
        begin(&requests, wish(None, Some("savepoints/a")));
    }

    #[test]
    fn their_number_is_bounded_and_ended_ones_give_way() {
        let (_, requests) = requests();
        for _ in 0..2 * AT_MOST {
            let request = begin(&requests, wish(None, None));
            requests.end(&request, Ok(None));
        }
        assert!(requests.entries.lock().len() <= AT_MOST);
        for _ in 0..UNDER_WAY {
            begin(&requests, wish(None, None));
        }
        assert_eq!(requests.begin(wish(None, None)).unwrap_err().code, Code::Overloaded);
    }

    #[test]
    fn an_outcome_is_untold_until_somebody_looked() {
        let (_, requests) = requests();
        let request = begin(&requests, wish(None, None));
        requests.end(&request, Ok(None));
        assert!(requests.has_untold());
        requests.look(&request);
        assert!(!requests.has_untold());
    }
}
