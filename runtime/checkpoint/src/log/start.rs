//! Begins a reign: claim, seal every lower generation, read the newest state, write it as our base.

use streamkeeper_types::{Error, Generation};

use super::{
    Append, Appended, JobState, Record, Reign, Reply, Request, Step, entry_path,
    reign::FIRST_BASE,
    step::{FOLDER, entries, numbers},
};

/// The begin of a reign as steps; see the module's head for the order and its reasons.
#[derive(Debug)]
pub struct Start {
    launch: u64,
    instance: String,
    own: Generation,
    phase: Phase,
}

/// A begun reign.
#[derive(Debug, Clone)]
pub struct Started {
    pub reign: Reign,
    /// Everything in the job's folder, listed before our base was accepted: no higher reign had begun by then, so what
    /// of this no published checkpoint names will never be named.
    pub listed: Vec<String>,
}

/// Why no reign began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailure {
    /// A newer launch of the job claimed it already.
    LaunchTooOld {
        highest: u64,
    },
    /// A higher reign is at work.
    Fenced,
    Broken(Error),
}

#[derive(Debug)]
enum Phase {
    /// The whole log is being listed.
    Overview,
    /// The claim of the highest generation is being read, for its launch.
    HighestClaim {
        highest: Generation,
    },
    Claim {
        append: Append,
    },
    /// Looking for a generation that began: its reign sealed all before it, and a seal is for ever.
    FindBegun {
        scan: Scan,
    },
    Seal {
        old: Generation,
        step: Seal,
    },
    /// Reading the newest state, now that nobody below us can append.
    Read {
        scan: Scan,
    },
    ListAll {
        state: JobState,
    },
    Base {
        append: Append,
        state: JobState,
        listed: Vec<String>,
    },
}

#[derive(Debug)]
enum Seal {
    List,
    Read {
        top: u64,
    },
    /// A seal was read at `top`. It holds only if a listing made after that shows it as the highest number.
    Verify {
        top: u64,
    },
    Append {
        append: Append,
    },
}

impl Start {
    /// `instance` must be unique for each claimant of the job.
    #[must_use]
    pub fn new(launch: u64, instance: impl Into<String>) -> Self {
        Self { launch, instance: instance.into(), own: Generation(0), phase: Phase::Overview }
    }

    /// The first step.
    #[must_use]
    pub fn begin(&self) -> Request {
        list_log()
    }

    /// Takes the outcome of the last step.
    ///
    /// # Errors
    /// The reign does not begin; nothing but a claim and seals was written.
    pub fn on(&mut self, reply: Reply) -> Result<Step<Started>, StartFailure> {
        let phase = std::mem::replace(&mut self.phase, Phase::Overview);
        match (phase, reply) {
            (Phase::Overview, Reply::Listed(paths)) => match entries(&paths).last() {
                None => Ok(self.claim(Generation(1))),
                Some((highest, _)) => {
                    let path = entry_path(*highest, 0);
                    Ok(self.ask(Phase::HighestClaim { highest: *highest }, Request::Get { path }))
                }
            },
            (Phase::HighestClaim { highest }, Reply::Got(found)) => self.on_highest_claim(highest, found),
            (Phase::Claim { append }, reply) => Ok(match append.on(reply) {
                Step::Ask(request) => self.ask(Phase::Claim { append }, request),
                Step::Done(Appended::Taken(_)) => Step::Ask(list_log()),
                Step::Done(Appended::Ours) => self.find_begun(),
            }),
            (Phase::FindBegun { mut scan }, reply) => Ok(match scan.on(reply).map_err(StartFailure::Broken)? {
                Scanned::Ask(request) => self.ask(Phase::FindBegun { scan }, request),
                // The leader that is still at work collects its own old records.
                Scanned::Gone => self.find_begun(),
                Scanned::Found { generation, .. } => self.seal(generation),
                Scanned::Nothing => self.seal(Generation(1)),
            }),
            (Phase::Seal { old, step }, reply) => self.on_seal(old, step, reply),
            (Phase::Read { mut scan }, reply) => match scan.on(reply).map_err(StartFailure::Broken)? {
                Scanned::Ask(request) => Ok(self.ask(Phase::Read { scan }, request)),
                // All below us are sealed: only a higher reign deletes here.
                Scanned::Gone => Err(StartFailure::Fenced),
                Scanned::Found { state, .. } => Ok(self.list_all(state)),
                Scanned::Nothing => Ok(self.list_all(JobState::default())),
            },
            (Phase::ListAll { state }, Reply::Listed(listed)) => {
                let state = state.in_new_reign();
                let record = Record::Base(state.clone());
                let append = Append::new(entry_path(self.own, FIRST_BASE), record.encode());
                let request = append.begin();
                Ok(self.ask(Phase::Base { append, state, listed }, request))
            }
            (Phase::Base { append, state, listed }, reply) => match append.on(reply) {
                Step::Ask(request) => Ok(self.ask(Phase::Base { append, state, listed }, request)),
                Step::Done(Appended::Ours) => {
                    Ok(Step::Done(Started { reign: Reign::started(self.own, state), listed }))
                }
                Step::Done(Appended::Taken(_)) => Err(StartFailure::Fenced),
            },
            (phase, reply) => {
                Err(StartFailure::Broken(Error::internal(format!("the log's start took {reply:?} in {phase:?}"))))
            }
        }
    }

    fn ask(&mut self, phase: Phase, request: Request) -> Step<Started> {
        self.phase = phase;
        Step::Ask(request)
    }

    fn on_highest_claim(
        &mut self,
        highest: Generation,
        found: Option<bytes::Bytes>,
    ) -> Result<Step<Started>, StartFailure> {
        let path = entry_path(highest, 0);
        let Some(bytes) = found else {
            let error = Error::new(
                streamkeeper_types::Code::SnapshotCorrupt,
                format!("`{path}` is missing, although a job log never loses its claims"),
            );
            return Err(StartFailure::Broken(error.way_out("restore the file from a copy of the checkpoint storage")));
        };
        match Record::decode(&path, &bytes).map_err(StartFailure::Broken)? {
            Record::Claim { launch, .. } if launch > self.launch => Err(StartFailure::LaunchTooOld { highest: launch }),
            _ => Ok(self.claim(Generation(highest.0 + 1))),
        }
    }

    fn claim(&mut self, own: Generation) -> Step<Started> {
        self.own = own;
        let record = Record::Claim { launch: self.launch, instance: self.instance.clone() };
        let append = Append::new(entry_path(own, 0), record.encode());
        let request = append.begin();
        self.ask(Phase::Claim { append }, request)
    }

    fn find_begun(&mut self) -> Step<Started> {
        match Scan::below(self.own) {
            None => self.list_all(JobState::default()),
            Some((scan, request)) => self.ask(Phase::FindBegun { scan }, request),
        }
    }

    fn seal(&mut self, old: Generation) -> Step<Started> {
        self.ask(Phase::Seal { old, step: Seal::List }, list_generation(old))
    }

    fn on_seal(&mut self, old: Generation, step: Seal, reply: Reply) -> Result<Step<Started>, StartFailure> {
        match (step, reply) {
            (Seal::List, Reply::Listed(paths)) => Ok(self.seal_listed(old, &paths)),
            (Seal::Verify { top }, Reply::Listed(paths)) => {
                let holds = numbers(&paths, old).last() == Some(&top);
                Ok(if holds { self.sealed(old) } else { self.seal_listed(old, &paths) })
            }
            (Seal::Read { .. }, Reply::Got(None)) => Ok(self.seal(old)),
            (Seal::Read { top }, Reply::Got(Some(bytes))) => {
                let record = Record::decode(&entry_path(old, top), &bytes).map_err(StartFailure::Broken)?;
                if matches!(record, Record::Sealed { .. }) {
                    return Ok(self.ask(Phase::Seal { old, step: Seal::Verify { top } }, list_generation(old)));
                }
                let seal = Record::Sealed { by: self.own };
                let append = Append::new(entry_path(old, top + 1), seal.encode());
                let request = append.begin();
                Ok(self.ask(Phase::Seal { old, step: Seal::Append { append } }, request))
            }
            (Seal::Append { append }, reply) => Ok(match append.on(reply) {
                Step::Ask(request) => self.ask(Phase::Seal { old, step: Seal::Append { append } }, request),
                // Ours or not: only a new listing tells whether it holds.
                Step::Done(_) => self.seal(old),
            }),
            (step, reply) => Err(StartFailure::Broken(Error::internal(format!("sealing took {reply:?} in {step:?}")))),
        }
    }

    fn seal_listed(&mut self, old: Generation, paths: &[String]) -> Step<Started> {
        match numbers(paths, old).last() {
            // A number that nobody claimed: nobody can append there either.
            None => self.sealed(old),
            Some(top) => {
                let request = Request::Get { path: entry_path(old, *top) };
                self.ask(Phase::Seal { old, step: Seal::Read { top: *top } }, request)
            }
        }
    }

    fn sealed(&mut self, old: Generation) -> Step<Started> {
        let next = Generation(old.0 + 1);
        if next < self.own {
            return self.seal(next);
        }
        match Scan::below(self.own) {
            None => self.list_all(JobState::default()),
            Some((scan, request)) => self.ask(Phase::Read { scan }, request),
        }
    }

    fn list_all(&mut self, state: JobState) -> Step<Started> {
        self.ask(Phase::ListAll { state }, Request::List { folder: String::new() })
    }
}

fn list_log() -> Request {
    Request::List { folder: FOLDER.to_owned() }
}

fn list_generation(generation: Generation) -> Request {
    Request::List { folder: format!("{FOLDER}/{generation}") }
}

/// Looks for the newest generation with a base, from the top down; within it from the newest record down to the base,
/// because what lies below the newest base may vanish at any time.
#[derive(Debug)]
struct Scan {
    generation: Generation,
    /// Numbers not read yet, ascending; the last one is being read.
    numbers: Vec<u64>,
    /// Read ones, newest first.
    newer: Vec<Record>,
}

enum Scanned {
    Ask(Request),
    Found {
        generation: Generation,
        state: JobState,
    },
    Nothing,
    /// A listed record does not exist any more.
    Gone,
}

impl Scan {
    fn below(own: Generation) -> Option<(Self, Request)> {
        let generation = Generation(own.0.checked_sub(1).filter(|g| *g > 0)?);
        Some((Self { generation, numbers: Vec::new(), newer: Vec::new() }, list_generation(generation)))
    }

    fn on(&mut self, reply: Reply) -> streamkeeper_types::Result<Scanned> {
        match reply {
            Reply::Listed(paths) => self.numbers = numbers(&paths, self.generation),
            Reply::Got(None) => return Ok(Scanned::Gone),
            Reply::Got(Some(bytes)) => {
                let path = entry_path(self.generation, self.numbers.pop().unwrap_or_default());
                match Record::decode(&path, &bytes)? {
                    Record::Base(mut state) => {
                        for record in self.newer.iter().rev() {
                            state.apply(record);
                        }
                        return Ok(Scanned::Found { generation: self.generation, state });
                    }
                    record => self.newer.push(record),
                }
            }
            Reply::Created(_) => return Err(Error::internal("a scan of the log creates nothing")),
        }
        if let Some(number) = self.numbers.last() {
            return Ok(Scanned::Ask(Request::Get { path: entry_path(self.generation, *number) }));
        }
        // No base: this reign never began, and nothing of it counts.
        self.newer.clear();
        self.generation = Generation(self.generation.0 - 1);
        if self.generation.0 == 0 {
            return Ok(Scanned::Nothing);
        }
        Ok(Scanned::Ask(list_generation(self.generation)))
    }
}
