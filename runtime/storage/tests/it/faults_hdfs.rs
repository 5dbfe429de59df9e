//! A DataNode or the NameNode gone and back, and torn connections to it.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use streamkeeper_storage::{PutMode, PutOutcome, SmallObjects, Storage, StorageError, StorageOptions, open_with};

use crate::{kinds::folder, service::Service, toxiproxy::Proxy};

const OPTIONS: StorageOptions = StorageOptions { timeout: Duration::from_secs(12), retries: 3, part_size: 8 << 20 };

/// One cluster for these tests, one test at a time. A test that fails leaves it to the next as it is.
fn cluster() -> MutexGuard<'static, Service> {
    static CLUSTER: OnceLock<Mutex<Service>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Mutex::new(Service::start("hdfs", &[])));
    cluster.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn at(service: &Service, name_node: &str, folder: &str) -> Arc<dyn Storage> {
    open_with(&format!("{name_node}/{folder}"), Path::new("/"), &OPTIONS, &service.environment()).unwrap()
}

/// Runs `call` and checks that it ends by its deadline; several times that are allowed for a busy machine.
fn bounded<T>(call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = call();
    assert!(began.elapsed() < 4 * OPTIONS.timeout, "{:?}", began.elapsed());
    result
}

/// Calls until it succeeds, for five minutes at most.
fn healed<T>(call: impl Fn() -> Result<T, StorageError>) -> T {
    let began = Instant::now();
    loop {
        match call() {
            Ok(value) => return value,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(300), "does not heal: {error}"),
        }
    }
}

#[test]
fn small_objects_are_slow_and_say_so() {
    let cluster = cluster();
    assert_eq!(at(&cluster, cluster.variable("HDFS_URL"), "x").small_objects(), SmallObjects::Slow);
}

#[test]
fn without_a_data_node_a_write_fails_with_nothing_to_see_and_heals_with_it() {
    let cluster = cluster();
    let storage = at(&cluster, cluster.variable("HDFS_URL"), &folder());
    assert_eq!(storage.put("before", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    cluster.signal("datanode1", "KILL");
    let put = bounded(|| storage.put("a", "y".into(), PutMode::Create));
    assert!(matches!(put, Err(StorageError::Other(_))), "the temporary file failed, not the rename: {put:?}");
    assert!(bounded(|| storage.get("before")).is_err());
    assert_eq!(storage.head("a"), Ok(None));
    cluster.restart("datanode1");
    assert_eq!(healed(|| storage.put("a", "y".into(), PutMode::Overwrite)), PutOutcome::Done);
    assert_eq!(healed(|| storage.get("before")), "x");
    assert_eq!(storage.list("").unwrap().len(), 2);
}

#[test]
fn a_killed_name_node_forgets_nothing_and_no_call_hangs_without_it() {
    let cluster = cluster();
    let storage = at(&cluster, cluster.variable("HDFS_URL"), &folder());
    assert_eq!(storage.put("log/0", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    cluster.signal("namenode", "KILL");
    assert!(bounded(|| storage.put("log/1", "y".into(), PutMode::Create)).is_err());
    assert!(matches!(bounded(|| storage.list("")), Err(StorageError::Other(_))));
    cluster.restart("namenode");
    assert_eq!(healed(|| storage.put("log/0", "z".into(), PutMode::Create)), PutOutcome::Exists);
    assert_eq!(healed(|| storage.get("log/0")), "x");
    assert_eq!(healed(|| storage.put("log/1", "y".into(), PutMode::Create)), PutOutcome::Done);
}

#[test]
fn a_frozen_name_node_makes_calls_end_and_thaws() {
    let cluster = cluster();
    let storage = at(&cluster, cluster.variable("HDFS_URL"), &folder());
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    cluster.signal("namenode", "STOP");
    let (put, get) = thread::scope(|scope| {
        let put = scope.spawn(|| bounded(|| storage.put("b", "y".into(), PutMode::Create)));
        let get = bounded(|| storage.get("a"));
        (put.join().unwrap(), get)
    });
    cluster.signal("namenode", "CONT");
    assert!(put.is_err() && get.is_err(), "{put:?} {get:?}");
    assert_eq!(healed(|| storage.get("a")), "x");
    assert_eq!(healed(|| storage.put("b", "z".into(), PutMode::Overwrite)), PutOutcome::Done);
    assert_eq!(storage.get("b"), Ok("z".into()));
}

#[test]
fn torn_connections_to_the_name_node_never_make_two_winners() {
    let cluster = cluster();
    let (url, folder) = (cluster.variable("HDFS_URL"), folder());
    let proxy = Proxy::before(url.strip_prefix("hdfs://").unwrap());
    let proxied = format!("hdfs://{}", proxy.address());
    let storages: Vec<_> = (0..3).map(|_| at(&cluster, &proxied, &folder)).collect();
    let direct = at(&cluster, url, &folder);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Connections live long here: a reset must come while requests are on their way.
            while !over.load(Ordering::Relaxed) {
                proxy.add("reset_peer", "downstream", 0.5, r#"{"timeout":100}"#);
                proxy.heal();
                let _ = direct.list("");
            }
        });
        for round in 0..4 {
            let path = format!("log/{round}");
            let outcomes: Vec<_> = thread::scope(|scope| {
                let writers: Vec<_> = (0..6u8)
                    .map(|i| {
                        let (storage, path) = (&storages[usize::from(i) % storages.len()], &path);
                        scope.spawn(move || bounded(|| storage.put(path, vec![i; 500].into(), PutMode::Create)))
                    })
                    .collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            let winners: Vec<_> = (0..6u8).filter(|i| outcomes[usize::from(*i)] == Ok(PutOutcome::Done)).collect();
            assert!(winners.len() <= 1, "{winners:?}");
            let Ok(found) = direct.get(&path) else {
                assert!(winners.is_empty() && outcomes.iter().all(|o| *o != Ok(PutOutcome::Exists)), "{outcomes:?}");
                continue;
            };
            assert_eq!(found, vec![found[0]; 500]);
            let owner = &outcomes[usize::from(found[0])];
            assert!(matches!(owner, Ok(PutOutcome::Done) | Err(StorageError::Unknown(_))), "{owner:?}");
            assert!(winners.iter().all(|winner| *winner == found[0]));
        }
        over.store(true, Ordering::Relaxed);
    });
}
