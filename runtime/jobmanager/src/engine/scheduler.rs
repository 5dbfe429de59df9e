//! With which parallelism a run is deployed, and when a change is worth its pause (architecture.md decision 14).
//!
//! ```text
//!  slots ≥ target ───────────────────────────────► target
//!  slots ≥ least, first start: after a settling time ► slots       later, when slots come back: grow to the target
//!  slots ≥ least, after a failure: at once ──────────► slots
//!  slots < least ─► wait, and after the slot wait fail
//! ```

use std::{collections::VecDeque, time::Duration};

use streamkeeper_types::{Code, Error, Millis};

use super::options::millis;

/// Between which parallelisms a job may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Below it the job rather waits.
    pub least: u32,
    pub target: u32,
}

impl Bounds {
    /// This parallelism and no other.
    #[must_use]
    pub fn exactly(parallelism: u32) -> Self {
        Self { least: parallelism, target: parallelism }
    }
}

/// Options of runtime-rules.md §1.5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// `scheduler.slot-wait`: how long a start waits for the least number of slots.
    pub slot_wait: Duration,
    /// `rescale.stabilization`: how long the number of slots must stay the same before the job follows it.
    pub stabilization: Duration,
    /// `rescale.cooldown`: least time between two changes that nobody asked for.
    pub cooldown: Duration,
    /// `rescale.max-failed-checkpoints`: after as many a change goes ahead from an older checkpoint.
    pub max_failed_checkpoints: u64,
    /// `rescale.history`: changes that are remembered.
    pub history: usize,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            slot_wait: Duration::from_secs(300),
            stabilization: Duration::from_secs(60),
            cooldown: Duration::from_secs(30),
            max_failed_checkpoints: 2,
            history: 50,
        }
    }
}

/// Why the parallelism changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RescaleCause {
    /// Somebody asked for it.
    Requested,
    /// Slots came.
    SlotsGained,
    /// Slots went, and the job runs with what is left.
    SlotsLost,
    /// The change before did not come up.
    Reverted,
}

/// A change of the parallelism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescale {
    pub started: Millis,
    pub cause: RescaleCause,
    pub from: u32,
    pub to: u32,
    /// `None` while it is under way.
    pub outcome: Option<RescaleOutcome>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RescaleOutcome {
    /// All tasks run in the new shape after this time without any, in milliseconds.
    Done { pause: Millis },
    /// The new shape did not come up; the job goes back to the old one.
    Reverted(Error),
}

/// Answer to the wish to deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Deploy {
        parallelism: u32,
    },
    /// Ask again then, or when slots come.
    WaitUntil(Millis),
    /// Nothing can be started.
    NoSlots(Error),
}

/// What to do about the parallelism of a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// It is as it should be.
    Keep,
    /// Change it now.
    Now(u32),
    /// Look again then.
    LookAt(Millis),
}

/// Decides the parallelism; counts slots and remembers changes.
#[derive(Debug)]
pub struct Scheduler {
    options: SchedulerOptions,
    bounds: Bounds,
    slots: u32,
    /// When the number of slots last changed.
    changed: Millis,
    /// Why the next deployment differs, where that is not the number of slots.
    reason: Option<RescaleCause>,
    /// Since when a deployment waits.
    waiting_since: Option<Millis>,
    /// Of the newest deployment.
    current: Option<u32>,
    /// When tasks last stopped in order to change the shape.
    stopped: Option<Millis>,
    last_change: Option<Millis>,
    history: VecDeque<Rescale>,
}

impl Scheduler {
    #[must_use]
    pub fn new(options: SchedulerOptions, bounds: Bounds) -> Self {
        Self {
            options,
            bounds,
            slots: 0,
            changed: 0,
            reason: None,
            waiting_since: None,
            current: None,
            stopped: None,
            last_change: None,
            history: VecDeque::new(),
        }
    }

    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Parallelism of the newest deployment.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        self.current
    }

    #[must_use]
    pub fn max_failed_checkpoints(&self) -> u64 {
        self.options.max_failed_checkpoints.max(1)
    }

    /// Newest last.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Rescale> {
        self.history.iter()
    }

    /// TaskManagers came or went.
    pub fn on_slots(&mut self, slots: u32, now: Millis) {
        if slots != self.slots {
            self.slots = slots;
            self.changed = now;
        }
    }

    /// Somebody wants other bounds.
    pub fn on_bounds(&mut self, bounds: Bounds) {
        if bounds != self.bounds {
            self.reason = Some(RescaleCause::Requested);
        }
        self.bounds = bounds;
    }

    /// The job wants to be deployed.
    pub fn admit(&mut self, now: Millis) -> Admission {
        let since = *self.waiting_since.get_or_insert(now);
        let give_up = since.saturating_add(millis(self.options.slot_wait));
        let settled = self.changed.max(since).saturating_add(millis(self.options.stabilization)).min(give_up);
        let parallelism = match self.slots {
            slots if slots >= self.bounds.target => self.bounds.target,
            // After a failure every moment counts; the rest may come later.
            slots if slots >= self.bounds.least && (self.current.is_some() || now >= settled) => slots,
            slots if slots >= self.bounds.least => return Admission::WaitUntil(settled),
            _ if now < give_up => return Admission::WaitUntil(give_up),
            _ => {
                self.waiting_since = None;
                return Admission::NoSlots(self.no_slots());
            }
        };
        self.waiting_since = None;
        self.deploying(parallelism, now);
        Admission::Deploy { parallelism }
    }

    /// What the running job should do about its parallelism.
    #[must_use]
    pub fn wish(&self, now: Millis) -> Wish {
        let wanted = self.bounds.target.min(self.slots);
        if self.current == Some(wanted) || wanted < self.bounds.least {
            return Wish::Keep;
        }
        // Whoever asks does not want to wait.
        if self.reason.is_some() {
            return Wish::Now(wanted);
        }
        let cooled = self.last_change.map_or(Millis::MIN, |last| last.saturating_add(millis(self.options.cooldown)));
        let due = self.changed.saturating_add(millis(self.options.stabilization)).max(cooled);
        if now >= due { Wish::Now(wanted) } else { Wish::LookAt(due) }
    }

    /// Tasks are being stopped to change the shape.
    pub fn stopping(&mut self, now: Millis) {
        self.stopped = Some(now);
    }

    /// All tasks run.
    pub fn up(&mut self, now: Millis) {
        let began = self.stopped.take();
        if let Some(open) = self.under_way() {
            let pause = now.saturating_sub(began.unwrap_or(open.started));
            open.outcome = Some(RescaleOutcome::Done { pause });
        }
    }

    /// The newest deployment failed. If it was a change of shape that had not come up, the old shape is wanted again.
    pub fn failed(&mut self, error: &Error) {
        self.stopped = None;
        let Some(open) = self.under_way() else { return };
        open.outcome = Some(RescaleOutcome::Reverted(error.clone()));
        let (from, cause) = (open.from, open.cause);
        if cause == RescaleCause::Requested {
            self.bounds.target = from;
            self.bounds.least = self.bounds.least.min(from);
            self.reason = Some(RescaleCause::Reverted);
        }
    }

    fn under_way(&mut self) -> Option<&mut Rescale> {
        self.history.back_mut().filter(|rescale| rescale.outcome.is_none())
    }

    fn deploying(&mut self, parallelism: u32, now: Millis) {
        let cause = self.reason.take().unwrap_or(match self.current {
            Some(current) if parallelism < current => RescaleCause::SlotsLost,
            _ => RescaleCause::SlotsGained,
        });
        if let Some(from) = self.current.filter(|from| *from != parallelism) {
            self.last_change = Some(now);
            self.history.push_back(Rescale { started: now, cause, from, to: parallelism, outcome: None });
            while self.history.len() > self.options.history.max(1) {
                self.history.pop_front();
            }
        }
        self.current = Some(parallelism);
    }

    fn no_slots(&self) -> Error {
        let Bounds { least, target } = self.bounds;
        let waited = self.options.slot_wait.as_secs();
        let cause = format!("there are {} slots after {waited} s, and the job needs {least} to {target}", self.slots);
        Error::new(Code::SlotsMissing, cause).way_out("start more TaskManagers, or lower the parallelism")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Millis = 1_000;

    fn scheduler(least: u32, target: u32) -> Scheduler {
        Scheduler::new(SchedulerOptions::default(), Bounds { least, target })
    }

    fn deploy(parallelism: u32) -> Admission {
        Admission::Deploy { parallelism }
    }

    /// A job that runs at `parallelism` since time 0 with as many slots.
    fn running(least: u32, target: u32, parallelism: u32) -> Scheduler {
        let mut scheduler = scheduler(least, target);
        scheduler.on_slots(parallelism, 0);
        scheduler.current = Some(parallelism);
        scheduler
    }

    #[test]
    fn a_first_start_waits_for_the_target_and_then_takes_what_has_settled() {
        let mut scheduler = scheduler(1, 4);
        assert_eq!(scheduler.admit(0), Admission::WaitUntil(300 * SECOND));
        scheduler.on_slots(2, 10 * SECOND);
        assert_eq!(scheduler.admit(10 * SECOND), Admission::WaitUntil(70 * SECOND));
        assert_eq!(scheduler.admit(70 * SECOND), deploy(2));
    }

    #[test]
    fn enough_slots_are_used_at_once_and_never_more_than_the_target() {
        let mut scheduler = scheduler(2, 2);
        scheduler.on_slots(8, 0);
        assert_eq!(scheduler.admit(0), deploy(2));
    }

    #[test]
    fn too_few_slots_for_too_long_are_an_error_that_says_how_many_are_missing() {
        let mut scheduler = scheduler(2, 4);
        scheduler.on_slots(1, 0);
        assert_eq!(scheduler.admit(0), Admission::WaitUntil(300 * SECOND));
        let Admission::NoSlots(error) = scheduler.admit(300 * SECOND) else { panic!("it must give up") };
        assert!(error.cause.contains("1 slots") && error.cause.contains("2 to 4"), "{}", error.cause);
        assert!(matches!(scheduler.admit(301 * SECOND), Admission::WaitUntil(_)), "the next try waits anew");
    }

    #[test]
    fn after_a_failure_the_job_runs_at_once_with_what_is_left() {
        let mut scheduler = running(1, 4, 4);
        scheduler.on_slots(2, SECOND);
        assert_eq!(scheduler.admit(SECOND), deploy(2));
        assert_eq!(scheduler.history().next().map(|r| (r.cause, r.from, r.to)), Some((RescaleCause::SlotsLost, 4, 2)));
    }

    #[test]
    fn slots_that_come_back_are_followed_when_settled_and_cooled() {
        let mut scheduler = running(1, 4, 4);
        scheduler.on_slots(2, SECOND);
        assert_eq!(scheduler.admit(SECOND), deploy(2));
        scheduler.up(2 * SECOND);
        scheduler.on_slots(4, 10 * SECOND);
        assert_eq!(scheduler.wish(10 * SECOND), Wish::LookAt(70 * SECOND));
        scheduler.on_slots(3, 20 * SECOND);
        assert_eq!(scheduler.wish(70 * SECOND), Wish::LookAt(80 * SECOND), "the number changed once more");
        assert_eq!(scheduler.wish(80 * SECOND), Wish::Now(3));
    }

    #[test]
    fn what_somebody_asks_for_is_not_delayed() {
        let mut scheduler = running(1, 1, 1);
        scheduler.on_slots(4, 0);
        assert_eq!(scheduler.wish(SECOND), Wish::Keep);
        scheduler.on_bounds(Bounds::exactly(4));
        assert_eq!(scheduler.wish(SECOND), Wish::Now(4));
        scheduler.stopping(2 * SECOND);
        assert_eq!(scheduler.admit(3 * SECOND), deploy(4));
        scheduler.up(4 * SECOND);
        let done = Some(RescaleOutcome::Done { pause: 2 * SECOND });
        assert_eq!(scheduler.history().next().map(|r| r.outcome.clone()), Some(done));
        assert_eq!(scheduler.wish(5 * SECOND), Wish::Keep);
    }

    #[test]
    fn a_wish_for_more_than_there_is_room_waits_without_stopping_anything() {
        let mut scheduler = running(1, 2, 2);
        scheduler.on_bounds(Bounds::exactly(4));
        assert_eq!(scheduler.wish(SECOND), Wish::Keep);
        scheduler.on_slots(4, 2 * SECOND);
        assert_eq!(scheduler.wish(2 * SECOND), Wish::Now(4));
    }

    #[test]
    fn a_shape_that_does_not_come_up_is_given_up_for_the_old_one() {
        let mut scheduler = running(2, 2, 2);
        scheduler.on_slots(4, 0);
        scheduler.on_bounds(Bounds::exactly(4));
        scheduler.stopping(SECOND);
        assert_eq!(scheduler.admit(SECOND), deploy(4));
        let error = Error::internal("no memory");
        scheduler.failed(&error);
        assert_eq!(scheduler.bounds(), Bounds::exactly(2));
        assert_eq!(scheduler.admit(2 * SECOND), deploy(2));
        let changes: Vec<_> = scheduler.history().map(|r| (r.cause, r.from, r.to, r.outcome.clone())).collect();
        let given_up = Some(RescaleOutcome::Reverted(error));
        assert_eq!(changes, [(RescaleCause::Requested, 2, 4, given_up), (RescaleCause::Reverted, 4, 2, None)]);
    }

    #[test]
    fn a_failure_of_a_shape_that_was_up_changes_nothing_about_it() {
        let mut scheduler = running(2, 2, 2);
        scheduler.on_slots(4, 0);
        scheduler.on_bounds(Bounds::exactly(4));
        assert_eq!(scheduler.admit(SECOND), deploy(4));
        scheduler.up(2 * SECOND);
        scheduler.failed(&Error::internal("later"));
        assert_eq!((scheduler.bounds(), scheduler.admit(3 * SECOND)), (Bounds::exactly(4), deploy(4)));
    }
}
