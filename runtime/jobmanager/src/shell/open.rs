//! Taking a job over: ownership, the reign, the restore choice. Nothing is changed before it is known to work.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
};

use streamkeeper_checkpoint::{
    Inventory, JobResult, JobState, RestoreSource, StartFrom,
    log::{JobLog, Record, RetryPolicy},
    owner::{self, Owner},
    recovery,
    restore::RestorePlan,
};
use streamkeeper_types::{CheckpointId, Code, Error, Result};

use super::{JobSpec, RestoreChoice, peek::peek, restore};
use crate::engine::Inherited;

/// A job whose head this process now is.
pub(super) struct Reigning {
    pub log: JobLog,
    pub plan: RestorePlan,
    pub inherited: Inherited,
    /// Files that no snapshot names: uploads of checkpoints that never completed.
    pub orphans: Vec<String>,
    pub restored_from: Option<CheckpointId>,
    /// Held as long as the job runs.
    pub lock: Option<File>,
}

pub(super) enum Opened {
    Reigning(Box<Reigning>),
    /// The job finished earlier. Nothing was changed.
    AlreadyFinished,
}

/// Takes the job over.
///
/// # Errors
/// `FENCED` if another process runs it, `EMPTY_START` if it would begin empty though snapshots exist, those of the
/// restore, and storage errors.
pub(super) fn open(spec: &JobSpec) -> Result<Opened> {
    let lock = spec.lock.as_deref().map(lock).transpose()?;
    if spec.restore == RestoreChoice::Auto && peek(spec.storage.as_ref())?.is_some_and(|state| is_finished(&state)) {
        return Ok(Opened::AlreadyFinished);
    }
    let random = format!("{:016x}", rand::random::<u64>());
    owner::ensure(spec.storage.as_ref(), &Owner::Local { random: random.clone() })?;
    let instance = spec.address.as_ref().map_or_else(|| random.clone(), |address| format!("{random}@{address}"));
    let (mut log, listed) = JobLog::open(spec.storage.clone(), 0, instance, RetryPolicy::default())?;
    // Another run may have finished it in between.
    if spec.restore == RestoreChoice::Auto && is_finished(log.state()) {
        return Ok(Opened::AlreadyFinished);
    }
    let plan = apply_choice(spec, &mut log, &listed)?;
    let Inventory { files, orphans } = Inventory::take(spec.storage.as_ref(), log.state(), &listed)?;
    let restored_from = restore::start_point(spec.storage.as_ref(), log.state())?.manifest.map(|m| m.checkpoint);
    let inherited = Inherited { state: log.state().clone(), files };
    Ok(Opened::Reigning(Box::new(Reigning { log, plan, inherited, orphans, restored_from, lock })))
}

fn is_finished(state: &JobState) -> bool {
    matches!(recovery::choose(state), StartFrom::Ended(JobResult::Finished { .. }))
}

/// Checks that the chosen start works, and only then writes the choice down.
fn apply_choice(spec: &JobSpec, log: &mut JobLog, listed: &[String]) -> Result<RestorePlan> {
    let source = match &spec.restore {
        RestoreChoice::Auto => {
            refuse_empty_start(log.state(), listed)?;
            let manifest = restore::start_point(spec.storage.as_ref(), log.state())?.manifest;
            return restore::plan(spec, spec.bounds.target, manifest.as_ref());
        }
        RestoreChoice::From(path) => RestoreSource::Savepoint { path: path.clone() },
        RestoreChoice::Discard => RestoreSource::Discard,
    };
    skip_known_ids(log, listed)?;
    let floor = log.state().next_id;
    let record = Record::Source { source, floor };
    let mut state = log.state().clone();
    state.apply(&record);
    let manifest = restore::start_point(spec.storage.as_ref(), &state)?.manifest;
    let plan = restore::plan(spec, spec.bounds.target, manifest.as_ref())?;
    log.append(&record)?;
    Ok(plan)
}

/// Beginning empty must never be an accident: snapshots that recovery does not choose, or whose log is gone.
fn refuse_empty_start(state: &JobState, listed: &[String]) -> Result<()> {
    if recovery::choose(state) != StartFrom::Empty {
        return Ok(());
    }
    let in_log = state.completed.first().map(|savepoint| &savepoint.manifest);
    let Some(found) = unknown_manifests(state, listed).next().or(in_log) else { return Ok(()) };
    let cause = format!("the job would begin empty, though the snapshot `{found}` exists");
    Err(Error::new(Code::EmptyStart, cause)
        .way_out("begin with a snapshot by --restore <its folder>, or give existing state up by --discard-state"))
}

/// Manifests that no reign of this log can have written: a log hands an id out before anything is written under it.
fn unknown_manifests<'a>(state: &'a JobState, listed: &'a [String]) -> impl Iterator<Item = &'a String> {
    let is_unknown = |path: &str| match checkpoint_of(path) {
        Some(id) => id >= state.next_id,
        None => state.next_id == CheckpointId::FIRST,
    };
    listed.iter().filter(move |path| path.ends_with("/_metadata") && is_unknown(path))
}

/// The checkpoint in whose folder a file lies.
fn checkpoint_of(path: &str) -> Option<CheckpointId> {
    path.strip_prefix("chk-")?.split('/').next()?.parse().ok().map(CheckpointId)
}

/// Ids under which files of a lost log lie are spent.
fn skip_known_ids(log: &mut JobLog, listed: &[String]) -> Result<()> {
    let from = log.state().next_id;
    let highest = listed.iter().filter_map(|path| checkpoint_of(path)).max();
    match highest.filter(|highest| *highest >= from) {
        Some(highest) => Ok(log.append(&Record::Ids { from, to: highest.next() })?),
        None => Ok(()),
    }
}

/// Two runs on one machine notice each other before one fences the other.
fn lock(path: &Path) -> Result<File> {
    let io = |error: std::io::Error| Error::io(Code::NotWritable, path.display(), &error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new(Code::Fenced, "another process on this machine runs this job")
            .way_out("wait for it to end, or stop it; then run the command again")),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}
