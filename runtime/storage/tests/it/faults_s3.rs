//! Errors, slowness, torn and unknown outcomes between client and S3 server, and the server itself gone and back.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use streamkeeper_storage::{PutMode, PutOutcome, Storage, StorageError, StorageOptions, open_with};

use crate::{kinds::s3_url, service::Service, toxiproxy::Proxy};

const OPTIONS: StorageOptions = StorageOptions { timeout: Duration::from_secs(9), retries: 4, part_size: 5 << 20 };

/// Many tries in a long time, for calls that must succeed once the fault is over.
const PATIENT: StorageOptions = StorageOptions { timeout: Duration::from_secs(120), retries: 100, ..OPTIONS };

/// One server, reached directly and through a proxy.
struct World {
    server: Service,
    proxy: Proxy,
    url: String,
}

impl World {
    fn new() -> Self {
        let server = Service::start("s3", &[]);
        let proxy = Proxy::before(server.variable("AWS_ENDPOINT_URL").strip_prefix("http://").unwrap());
        let url = s3_url(&server);
        Self { server, proxy, url }
    }

    fn direct(&self) -> Arc<dyn Storage> {
        open_with(&self.url, Path::new("/"), &OPTIONS, &self.server.environment()).unwrap()
    }

    fn proxied(&self, options: &StorageOptions) -> Arc<dyn Storage> {
        let endpoint = format!("http://{}", self.proxy.address());
        let names = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"].map(|name| (name, endpoint.clone()));
        open_with(&self.url, Path::new("/"), options, &self.server.environment_with(&names)).unwrap()
    }
}

/// Runs `call` and checks that it ends by its deadline; several times that are allowed for a busy machine.
fn bounded<T>(call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = call();
    assert!(began.elapsed() < 4 * OPTIONS.timeout, "{:?}", began.elapsed());
    result
}

#[test]
fn a_slow_connection_only_takes_longer() {
    let world = World::new();
    world.proxy.add("latency", "downstream", 1.0, r#"{"latency":150,"jitter":100}"#);
    world.proxy.add("slicer", "upstream", 1.0, r#"{"average_size":100,"size_variation":50,"delay":10}"#);
    let storage = world.proxied(&OPTIONS);
    assert_eq!(storage.put("a", "1".into(), PutMode::Create), Ok(PutOutcome::Done));
    assert_eq!(storage.put("a", "2".into(), PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.get("a"), Ok("1".into()));
    assert_eq!(storage.list("").unwrap().len(), 1);
    assert_eq!(storage.delete("a"), Ok(()));
}

#[test]
fn without_an_answer_every_call_ends_and_a_write_is_unknown() {
    let world = World::new();
    let storage = world.proxied(&OPTIONS);
    assert_eq!(storage.put("before", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    world.proxy.add("timeout", "downstream", 1.0, r#"{"timeout":0}"#);
    thread::scope(|scope| {
        let storage = &storage;
        scope.spawn(move || {
            let put = bounded(|| storage.put("a", "mine".into(), PutMode::Create));
            assert!(matches!(put, Err(StorageError::Unknown(_))), "{put:?}");
        });
        scope.spawn(move || {
            let delete = bounded(|| storage.delete("before"));
            assert!(matches!(delete, Err(StorageError::Unknown(_))), "{delete:?}");
        });
        scope.spawn(move || assert!(matches!(bounded(|| storage.get("before")), Err(StorageError::Other(_)))));
        scope.spawn(move || assert!(matches!(bounded(|| storage.list("")), Err(StorageError::Other(_)))));
        scope.spawn(move || assert!(matches!(bounded(|| storage.head("before")), Err(StorageError::Other(_)))));
    });
    assert_eq!(world.direct().get("a"), Ok("mine".into()), "only the answer was lost");
    world.proxy.heal();
    assert_eq!(storage.put("a", "other".into(), PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.get("a"), Ok("mine".into()));
    assert_eq!(storage.head("before"), Ok(None));
}

#[test]
fn an_own_write_whose_answer_was_lost_is_recognised_and_not_taken_for_another() {
    let world = World::new();
    let (storage, direct) = (world.proxied(&PATIENT), world.direct());
    world.proxy.add("limit_data", "downstream", 1.0, r#"{"bytes":0}"#);
    thread::scope(|scope| {
        let put = scope.spawn(|| storage.put("a", "mine".into(), PutMode::Create));
        while direct.head("a").unwrap().is_none() {
            thread::yield_now();
        }
        world.proxy.heal();
        assert_eq!(put.join().unwrap(), Ok(PutOutcome::Done));
    });
    assert_eq!(storage.put("a", "mine".into(), PutMode::Create), Ok(PutOutcome::Exists));
}

#[test]
fn torn_connections_never_make_two_winners() {
    let world = World::new();
    world.proxy.add("reset_peer", "downstream", 0.3, r#"{"timeout":0}"#);
    world.proxy.add("limit_data", "upstream", 0.2, r#"{"bytes":700}"#);
    world.proxy.add("limit_data", "downstream", 0.2, r#"{"bytes":100}"#);
    let (storages, direct): (Vec<_>, _) = ((0..4).map(|_| world.proxied(&OPTIONS)).collect(), world.direct());
    for round in 0..10 {
        let path = format!("log/{round}");
        let outcomes: Vec<_> = thread::scope(|scope| {
            let writers: Vec<_> = (0..16u8)
                .map(|i| {
                    let (storage, path) = (&storages[usize::from(i) % storages.len()], &path);
                    scope.spawn(move || storage.put(path, vec![i; 500].into(), PutMode::Create))
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let winners: Vec<_> = (0..16u8).filter(|i| outcomes[usize::from(*i)] == Ok(PutOutcome::Done)).collect();
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
}

#[test]
fn nobody_listening_means_that_nothing_was_written() {
    let world = World::new();
    let storage = world.proxied(&OPTIONS);
    world.proxy.refuse();
    let put = bounded(|| storage.put("a", "x".into(), PutMode::Create));
    assert!(
        matches!(&put, Err(StorageError::Other(e)) if e.cause.contains("connect") && e.way_out.is_some()),
        "{put:?}"
    );
    world.proxy.heal();
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
}

#[test]
fn a_large_upload_survives_torn_connections_and_a_failed_one_leaves_nothing_to_see() {
    let world = World::new();
    let content = Bytes::from_iter((0..20_000_003u32).map(|i| u8::try_from(i % 253).unwrap()));
    world.proxy.add("limit_data", "upstream", 0.3, r#"{"bytes":3000000}"#);
    let storage = world.proxied(&PATIENT);
    assert_eq!(storage.put("large", content.clone(), PutMode::Overwrite), Ok(PutOutcome::Done));
    assert_eq!(world.direct().get("large").unwrap(), content);
    world.proxy.heal();
    world.proxy.add("limit_data", "upstream", 1.0, r#"{"bytes":3000000}"#);
    let failed = bounded(|| world.proxied(&OPTIONS).put("other", content, PutMode::Overwrite));
    assert!(matches!(failed, Err(StorageError::Other(_))), "{failed:?}");
    assert_eq!(world.direct().list("").unwrap().len(), 1);
}

#[test]
fn a_read_goes_on_behind_what_has_arrived() {
    let world = World::new();
    let content = Bytes::from_iter((0..20_000_003u32).map(|i| u8::try_from(i % 253).unwrap()));
    assert_eq!(world.direct().put("large", content.clone(), PutMode::Create), Ok(PutOutcome::Done));
    world.proxy.add("limit_data", "downstream", 1.0, r#"{"bytes":2500000}"#);
    let storage = world.proxied(&OPTIONS);
    assert_eq!(storage.get("large").unwrap(), content, "nine connections for five tries");
    assert_eq!(storage.get_range("large", 5..15_000_000).unwrap(), content.slice(5..15_000_000));
}

#[test]
fn a_killed_server_loses_no_confirmed_object_and_shows_no_half_one() {
    let world = World::new();
    let (over, storage) = (AtomicBool::new(false), world.direct());
    let content = |writer: u8, i: usize| Bytes::from(vec![writer; 100_000 + i]);
    let confirmed: Vec<Vec<usize>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..4u8)
            .map(|writer| {
                let (storage, over) = (&storage, &over);
                scope.spawn(move || {
                    let mut confirmed = Vec::new();
                    for i in 0.. {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        let put = storage.put(&format!("{writer}/{i}"), content(writer, i), PutMode::Create);
                        assert_ne!(put, Ok(PutOutcome::Exists), "nobody else writes this");
                        if put == Ok(PutOutcome::Done) {
                            confirmed.push(i);
                        }
                    }
                    confirmed
                })
            })
            .collect();
        for round in 0..3 {
            let some = |storage: &Arc<dyn Storage>| storage.list("").map_or(0, |objects| objects.len());
            while some(&storage) < 20 * (round + 1) {
                thread::yield_now();
            }
            world.server.signal("s3", "KILL");
            world.server.restart("s3");
        }
        let written = storage.list("").unwrap().len();
        while storage.list("").unwrap().len() < written + 20 {
            thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (writer, confirmed) in (0..4u8).zip(confirmed) {
        for i in confirmed {
            assert_eq!(storage.get(&format!("{writer}/{i}")).unwrap(), content(writer, i));
        }
    }
    for object in storage.list("").unwrap() {
        let (writer, i) = object.path.split_once('/').unwrap();
        assert_eq!(storage.get(&object.path).unwrap(), content(writer.parse().unwrap(), i.parse().unwrap()));
    }
}

#[test]
fn a_frozen_server_is_waited_for_and_a_call_in_its_time_succeeds_when_it_thaws() {
    let world = World::new();
    let (quick, patient) = (world.direct(), world.proxied(&PATIENT));
    world.server.signal("s3", "STOP");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| patient.put("a", "x".into(), PutMode::Create));
        assert!(matches!(bounded(|| quick.get("a")), Err(StorageError::Other(_))));
        world.server.signal("s3", "CONT");
        assert_eq!(waiting.join().unwrap(), Ok(PutOutcome::Done));
    });
    assert_eq!(quick.get("a"), Ok("x".into()));
}
