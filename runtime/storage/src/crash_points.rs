//! Points at which a test may end the process at once, as a power cut would: before and after every write.
//!
//! | Variable | Effect |
//! |---|---|
//! | `STREAMKEEPER_CRASH_POINTS=<file>` | every name that is reached is appended to the file, one a line |
//! | `STREAMKEEPER_CRASH_AT=<name>:<k>` | the `k`-th reach of that name (from 1) aborts the process |
//!
//! With neither set, reaching a point costs one relaxed atomic load.

use std::{
    env,
    fs::{File, OpenOptions},
    io::Write,
    process,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Cleared for good by the first reach that finds no variable set.
static POSSIBLY_ARMED: AtomicBool = AtomicBool::new(true);
static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

struct Plan {
    journal: Option<File>,
    target: Option<Target>,
}

struct Target {
    name: String,
    /// Reaches left until the crash.
    left: AtomicU64,
}

/// Says that execution is at the point `name`. Returns, unless the environment asks for a crash here.
#[inline]
pub fn reach(name: &str) {
    if POSSIBLY_ARMED.load(Ordering::Relaxed) {
        reach_armed(name);
    }
}

/// Runs one write between its two points, `put-log-before` and `put-log-after`, say.
pub(crate) fn around<T>(action: &str, path: &str, write: impl FnOnce() -> T) -> T {
    if !POSSIBLY_ARMED.load(Ordering::Relaxed) {
        return write();
    }
    let kind = kind_of(path);
    reach_armed(&format!("{action}-{kind}-before"));
    let result = write();
    reach_armed(&format!("{action}-{kind}-after"));
    result
}

/// What a path of a job's folder holds: `log`, `metadata`, `delta`, `shared`, `chk`, `savepoints`, `owner`, …
fn kind_of(path: &str) -> &str {
    let (folder, name) = (path.split('/').next().unwrap_or(path), path.rsplit('/').next().unwrap_or(path));
    if name == "_metadata" {
        return "metadata";
    }
    if name.ends_with(".delta") {
        return "delta";
    }
    folder.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-')
}

#[cold]
fn reach_armed(name: &str) {
    let Some(plan) = PLAN.get_or_init(Plan::from_env) else {
        POSSIBLY_ARMED.store(false, Ordering::Relaxed);
        return;
    };
    if let Some(mut journal) = plan.journal.as_ref() {
        // One call, so that lines of several threads do not mix. A test that cannot write its journal sees no points.
        let _ = journal.write_all(format!("{name}\n").as_bytes());
    }
    let Some(target) = plan.target.as_ref().filter(|target| target.name == name) else { return };
    if target.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        process::abort();
    }
}

impl Plan {
    fn from_env() -> Option<Self> {
        let journal = env::var_os("STREAMKEEPER_CRASH_POINTS")
            .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
        let target = env::var("STREAMKEEPER_CRASH_AT").ok().and_then(|text| Target::parse(&text));
        (journal.is_some() || target.is_some()).then_some(Self { journal, target })
    }
}

impl Target {
    fn parse(text: &str) -> Option<Self> {
        let (name, k) = text.rsplit_once(':')?;
        let left = k.parse().ok().filter(|k| *k > 0)?;
        Some(Self { name: name.to_owned(), left: AtomicU64::new(left) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_written() {
        for (path, kind) in [
            ("log/3/7", "log"),
            ("chk-12/_metadata", "metadata"),
            ("savepoints/a/_metadata", "metadata"),
            ("shared/0f.delta", "delta"),
            ("shared/0f.sst", "shared"),
            ("chk-12/state", "chk"),
            ("task-owned/x", "task-owned"),
            ("owner", "owner"),
        ] {
            assert_eq!(kind_of(path), kind, "{path}");
        }
    }

    #[test]
    fn a_target_is_a_name_and_a_count_from_one() {
        assert!(Target::parse("put-log-before:3").is_some_and(|t| t.name == "put-log-before"));
        for bad in ["put-log-before", "put-log-before:0", "put-log-before:x"] {
            assert!(Target::parse(bad).is_none(), "{bad}");
        }
    }
}
