//! Several claimants of one job log over a store with create-if-absent, each stopped between any two storage calls.
//!
//! Faults: answers get lost before or after the write, writes arrive long after their sender gave up, claimants pause
//! and die at any point, and old entries are collected behind everybody's back.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use streamkeeper_checkpoint::{
    CompletedCheckpoint,
    log::{
        Append, Appended, Completion, Created, Record, Reign, Reply, Request, Start, Step, numbers_to_collect,
        parse_entry,
    },
};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{CheckpointId, Generation};

use crate::{
    Omission,
    invariants::{IdsOnlyGrow, NothingPublishedIsLost, Verdict},
};

/// Steps after which a run ends, whatever is still going on.
const STEPS: usize = 3_000;

/// Runs one seed.
///
/// # Errors
/// The promise that was broken.
pub fn run(seed: u64, omission: Omission) -> Verdict {
    let mut world = World::new(seed, omission);
    for _ in 0..STEPS {
        if world.claimants.is_empty() {
            break;
        }
        world.step()?;
    }
    Ok(())
}

struct World {
    rng: SmallRng,
    omission: Omission,
    objects: BTreeMap<String, Bytes>,
    /// Writes whose senders gave up on them.
    late: Vec<(String, Bytes)>,
    claimants: Vec<Claimant>,
    lost: NothingPublishedIsLost,
    ids: IdsOnlyGrow,
}

/// A JobManager process, or what remains of one.
struct Claimant {
    activity: Activity,
    /// How likely it is to be next; a small one sleeps.
    speed: f64,
    /// Checkpoints that it still wants to publish.
    wishes: u32,
    view: View,
}

enum Activity {
    Starting { start: Box<Start>, request: Request },
    Leading(Box<Reign>),
    Appending { reign: Box<Reign>, append: Append, request: Request },
    Collecting { reign: Box<Reign>, paths: Vec<String> },
    Over,
}

/// What a claimant with a rule left out believes to be in the store.
#[derive(Default)]
struct View {
    pretended: BTreeMap<String, Bytes>,
    /// Above these numbers it does not look.
    blind_above: BTreeMap<Generation, u64>,
}

impl World {
    fn new(seed: u64, omission: Omission) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let claimants = (0..rng.random_range(2..=6))
            .map(|instance| {
                let start = Box::new(Start::new(1, format!("{seed}-{instance}")));
                let request = start.begin();
                Claimant {
                    activity: Activity::Starting { start, request },
                    speed: rng.random::<f64>().powi(3) + 0.01,
                    wishes: rng.random_range(1..=6),
                    view: View::default(),
                }
            })
            .collect();
        Self {
            rng,
            omission,
            objects: BTreeMap::new(),
            late: Vec::new(),
            claimants,
            lost: NothingPublishedIsLost::default(),
            ids: IdsOnlyGrow::default(),
        }
    }

    fn step(&mut self) -> Verdict {
        if !self.late.is_empty() && self.rng.random_bool(0.01) {
            let (path, bytes) = self.late.swap_remove(self.rng.random_range(0..self.late.len()));
            self.objects.entry(path).or_insert(bytes);
        }
        let index = self.choose();
        let mut claimant = self.claimants.swap_remove(index);
        if self.rng.random_bool(0.02) {
            claimant.speed = self.rng.random::<f64>().powi(4) + 0.001;
        }
        if self.rng.random_bool(0.003) {
            return Ok(());
        }
        let activity = std::mem::replace(&mut claimant.activity, Activity::Over);
        claimant.activity = self.act(activity, &mut claimant.view, &mut claimant.wishes)?;
        if !matches!(claimant.activity, Activity::Over) {
            self.claimants.push(claimant);
        }
        Ok(())
    }

    fn choose(&mut self) -> usize {
        let total: f64 = self.claimants.iter().map(|claimant| claimant.speed).sum();
        let mut dice = self.rng.random::<f64>() * total;
        let at = self.claimants.iter().position(|claimant| {
            dice -= claimant.speed;
            dice < 0.0
        });
        at.unwrap_or(self.claimants.len() - 1)
    }

    /// One storage call, or one decision.
    fn act(&mut self, activity: Activity, view: &mut View, wishes: &mut u32) -> Result<Activity, String> {
        match activity {
            Activity::Starting { mut start, request } => {
                let reply = self.execute(&request, view);
                match start.on(reply) {
                    Ok(Step::Ask(request)) => Ok(Activity::Starting { start, request }),
                    Ok(Step::Done(started)) => {
                        let reign = started.reign;
                        let known = reign.state().completed.iter().map(|completed| completed.id).collect();
                        self.lost.began(reign.generation(), known)?;
                        Ok(Activity::Collecting { paths: self.collectable(&reign), reign: Box::new(reign) })
                    }
                    Err(_) => Ok(Activity::Over),
                }
            }
            Activity::Leading(reign) => self.lead(reign, wishes),
            Activity::Appending { mut reign, append, request } => {
                let reply = self.execute(&request, view);
                match append.on(reply) {
                    Step::Ask(request) => Ok(Activity::Appending { reign, append, request }),
                    Step::Done(outcome) => {
                        if !self.appended(&mut reign, outcome)? {
                            return Ok(Activity::Over);
                        }
                        Ok(Activity::Collecting { paths: self.collectable(&reign), reign })
                    }
                }
            }
            Activity::Collecting { reign, mut paths } => {
                let Some(path) = paths.pop() else { return Ok(Activity::Leading(reign)) };
                self.objects.remove(&path);
                Ok(Activity::Collecting { reign, paths })
            }
            Activity::Over => Ok(Activity::Over),
        }
    }

    /// Decides what to append next.
    fn lead(&mut self, mut reign: Box<Reign>, wishes: &mut u32) -> Result<Activity, String> {
        if *wishes == 0 {
            return Ok(Activity::Over);
        }
        let record = if self.rng.random_bool(0.3) {
            Record::Base(reign.state().clone())
        } else {
            match reign.allocate_id() {
                None => reign.id_block(),
                Some(id) => {
                    self.ids.allocated(reign.generation(), id)?;
                    *wishes -= 1;
                    completed(id)
                }
            }
        };
        let append = reign.append(&record);
        let request = append.begin();
        Ok(Activity::Appending { reign, append, request })
    }

    /// Whether the reign goes on.
    fn appended(&mut self, reign: &mut Reign, outcome: Appended) -> Result<bool, String> {
        let before = reign.state().completed.len();
        match reign.appended(outcome) {
            Ok(None) => {
                if let Some(new) = reign.state().completed.get(before) {
                    self.lost.confirmed(reign.generation(), new.id)?;
                }
                Ok(true)
            }
            Ok(Some(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn collectable(&self, reign: &Reign) -> Vec<String> {
        let listed: Vec<String> = self.objects.keys().cloned().collect();
        let mut paths = numbers_to_collect(&listed, reign.generation(), reign.base_number());
        let lower = listed.iter().filter(|path| parse_entry(path).is_some_and(|(g, _)| g < reign.generation()));
        match self.omission {
            Omission::KeepingClaims => paths.extend(lower.filter(|path| path.ends_with("/0")).cloned()),
            Omission::KeepingSeals => paths.extend(lower.filter(|path| !path.ends_with("/0")).cloned()),
            _ => {}
        }
        paths
    }

    fn execute(&mut self, request: &Request, view: &mut View) -> Reply {
        match request {
            Request::List { folder } => Reply::Listed(self.list(folder, view)),
            Request::Get { path } => Reply::Got(self.objects.get(path).or_else(|| view.pretended.get(path)).cloned()),
            Request::Create { path, bytes } => Reply::Created(self.create(path, bytes, view)),
        }
    }

    fn list(&self, folder: &str, view: &View) -> Vec<String> {
        let below = format!("{folder}/");
        let is_visible = |path: &&String| {
            let blind = parse_entry(path).is_some_and(|(g, n)| view.blind_above.get(&g).is_some_and(|top| n > *top));
            !blind && (folder.is_empty() || path.starts_with(&below))
        };
        self.objects.keys().chain(view.pretended.keys()).filter(is_visible).cloned().collect()
    }

    fn create(&mut self, path: &str, bytes: &Bytes, view: &mut View) -> Created {
        let is_seal = matches!(Record::decode(path, bytes), Ok(Record::Sealed { .. }));
        if is_seal && self.omission == Omission::Seals {
            view.pretended.insert(path.to_owned(), bytes.clone());
            return Created::Done;
        }
        let created = self.create_with_faults(path, bytes);
        if is_seal && self.omission == Omission::SealCheck && created == Created::Done {
            view.blind_above.extend(parse_entry(path));
        }
        if self.omission == Omission::ReadingBack && created == Created::Unknown { Created::Done } else { created }
    }

    fn create_with_faults(&mut self, path: &str, bytes: &Bytes) -> Created {
        let dice: f64 = self.rng.random();
        if dice < 0.1 {
            return Created::Unknown;
        }
        if dice < 0.13 {
            self.late.push((path.to_owned(), bytes.clone()));
            return Created::Unknown;
        }
        let exists = self.objects.contains_key(path);
        self.objects.entry(path.to_owned()).or_insert_with(|| bytes.clone());
        match exists {
            _ if dice < 0.2 => Created::Unknown,
            true => Created::Exists,
            false => Created::Done,
        }
    }
}

fn completed(id: CheckpointId) -> Record {
    let checkpoint = CompletedCheckpoint {
        id,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        manifest: format!("chk-{id}/_metadata"),
        checksum: 0,
        size: 0,
        time: 0,
    };
    Record::Completed(Completion { checkpoint, subsumes: Vec::new(), collected: Vec::new() })
}
