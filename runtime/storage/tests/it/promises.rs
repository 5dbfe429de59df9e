//! The contract of `Storage`, one function a promise.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use bytes::Bytes;
use streamkeeper_storage::{Faults, FaultyStorage, PutMode, PutOutcome, Storage, StorageError};

use crate::kinds::Fixture;

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Bytes that no shift or swap of parts leaves the same.
fn pattern(length: usize, salt: u64) -> Bytes {
    let mut state = salt;
    (0..length.div_ceil(8))
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()
        })
        .take(length)
        .collect::<Vec<_>>()
        .into()
}

pub fn create_never_replaces_and_overwrite_does(Fixture { storage, .. }: &Fixture) {
    assert_eq!(storage.put("log/1/0", bytes("a"), PutMode::Create), Ok(PutOutcome::Done));
    assert_eq!(storage.put("log/1/0", bytes("b"), PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.put("log/1/0", bytes("a"), PutMode::Create), Ok(PutOutcome::Exists), "not even the same bytes");
    assert_eq!(storage.get("log/1/0"), Ok(bytes("a")));
    assert_eq!(storage.put("log/1/0", bytes("c"), PutMode::Overwrite), Ok(PutOutcome::Done));
    assert_eq!(storage.get("log/1/0"), Ok(bytes("c")));
    assert_eq!(storage.put("log/1/1", bytes(""), PutMode::Create), Ok(PutOutcome::Done));
    assert_eq!(storage.get("log/1/1"), Ok(bytes("")));
}

pub fn of_sixteen_concurrent_creators_exactly_one_wins(Fixture { storage, rounds, .. }: &Fixture) {
    for round in 0..*rounds {
        let path = format!("log/{round}/0");
        let winners: Vec<u8> = thread::scope(|scope| {
            let writers: Vec<_> = (0..16u8)
                .map(|i| {
                    let path = &path;
                    scope.spawn(move || (i, storage.put(path, Bytes::from(vec![i; 1000]), PutMode::Create).unwrap()))
                })
                .collect();
            let outcomes = writers.into_iter().map(|writer| writer.join().unwrap());
            outcomes.filter(|(_, outcome)| *outcome == PutOutcome::Done).map(|(i, _)| i).collect()
        });
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(storage.get(&path).unwrap(), vec![winners[0]; 1000]);
    }
}

pub fn lists_a_folder_in_order_with_sizes_and_not_its_namesakes(Fixture { storage, .. }: &Fixture) {
    for path in ["log/2/1", "log/1/0", "log/1/10", "log/1/2", "log/11/0", "owner"] {
        let _ = storage.put(path, bytes("xyz"), PutMode::Create).unwrap();
    }
    let paths = |folder: &str| -> Vec<String> {
        storage.list(folder).unwrap().into_iter().map(|o| format!("{}:{}", o.path, o.size)).collect()
    };
    assert_eq!(paths("log/1"), ["log/1/0:3", "log/1/10:3", "log/1/2:3"]);
    assert_eq!(paths("log").len(), 5);
    assert_eq!(paths("").len(), 6);
    assert_eq!(paths("nothing"), Vec::<String>::new());
    assert_eq!(paths("owner"), Vec::<String>::new(), "an object is no folder");
    assert_eq!(storage.head("log"), Ok(None), "a folder is no object");
    assert!(matches!(storage.get("log"), Err(StorageError::NotFound { .. }) | Err(StorageError::Other(_))));
}

pub fn a_listing_of_several_pages_is_whole_and_deleting_all_leaves_none(fixture: &Fixture) {
    let Fixture { storage, more_than_a_page, .. } = fixture;
    let mut paths: Vec<_> = (0..*more_than_a_page).map(|i| format!("shared/{i:05}")).collect();
    thread::scope(|scope| {
        for chunk in paths.chunks(more_than_a_page.div_ceil(16)) {
            scope.spawn(move || {
                for path in chunk {
                    assert_eq!(storage.put(path, bytes("x"), PutMode::Create), Ok(PutOutcome::Done));
                }
            });
        }
    });
    let _ = storage.put("owner", bytes("x"), PutMode::Create).unwrap();
    let listed: Vec<_> = storage.list("shared").unwrap().into_iter().map(|o| o.path).collect();
    assert_eq!(listed, paths);
    paths.push("shared/never-written".to_owned());
    assert_eq!(storage.delete_all(&paths), Ok(()));
    assert_eq!(storage.list("").unwrap().into_iter().map(|o| o.path).collect::<Vec<_>>(), ["owner"]);
    assert_eq!(storage.delete_all(&[]), Ok(()));
}

pub fn deleting_twice_is_no_error_and_what_is_gone_is_not_found(Fixture { storage, .. }: &Fixture) {
    let _ = storage.put("chk-1/a", bytes("x"), PutMode::Create).unwrap();
    assert_eq!(storage.delete("chk-1/a"), Ok(()));
    assert_eq!(storage.delete("chk-1/a"), Ok(()));
    assert_eq!(storage.get("chk-1/a"), Err(StorageError::NotFound { path: "chk-1/a".into() }));
    assert_eq!(storage.head("chk-1/a"), Ok(None));
    assert_eq!(storage.put("chk-1/a", bytes("y"), PutMode::Create), Ok(PutOutcome::Done));
}

pub fn ranges_inside_are_read_and_ranges_beyond_are_errors(Fixture { storage, .. }: &Fixture) {
    let _ = storage.put("shared/a", bytes("0123456789"), PutMode::Create).unwrap();
    assert_eq!(storage.get_range("shared/a", 2..5), Ok(bytes("234")));
    assert_eq!(storage.get_range("shared/a", 0..10), Ok(bytes("0123456789")));
    assert_eq!(storage.get_range("shared/a", 10..10), Ok(bytes("")));
    for beyond in [8..11, 10..11, 20..30, 11..11] {
        let error = storage.get_range("shared/a", beyond.clone());
        assert!(matches!(&error, Err(StorageError::Other(e)) if e.cause.contains("10 bytes")), "{beyond:?}: {error:?}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "it is the bad input")]
    let reversed = storage.get_range("shared/a", 5..2);
    assert!(matches!(reversed, Err(StorageError::Other(_))));
    assert!(matches!(storage.get_range("shared/b", 0..1), Err(StorageError::NotFound { .. })));
}

pub fn files_go_in_and_out(Fixture { storage, scratch, .. }: &Fixture) {
    let (local, back) = (scratch.path().join("in.sst"), scratch.path().join("out.sst"));
    fs::write(&local, "content").unwrap();
    fs::write(&back, "older, longer content").unwrap();
    assert_eq!(storage.put_file("shared/x", &local, PutMode::Create), Ok(PutOutcome::Done));
    assert_eq!(storage.put_file("shared/x", &local, PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.put_file("shared/x", &local, PutMode::Overwrite), Ok(PutOutcome::Done));
    fs::remove_file(&local).unwrap();
    storage.get_to_file("shared/x", &back).unwrap();
    assert_eq!(fs::read_to_string(&back).unwrap(), "content");
    assert_eq!(storage.head("shared/x").unwrap().unwrap().size, 7);
    assert!(matches!(storage.get_to_file("shared/y", &back), Err(StorageError::NotFound { .. })));
    assert!(matches!(storage.put_file("shared/z", &local, PutMode::Create), Err(StorageError::Other(_))));
    let parts = fs::read_dir(scratch.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().extension() == Some("part".as_ref()));
    assert_eq!(parts.count(), 0, "half files stay nowhere");
}

pub fn large_objects_go_in_and_out_whole(Fixture { storage, scratch, large, .. }: &Fixture) {
    let local = scratch.path().join("large");
    for (mode, salt) in [(PutMode::Create, 1), (PutMode::Overwrite, 2)] {
        let content = pattern(*large, salt);
        assert_eq!(storage.put("shared/bytes", content.clone(), mode), Ok(PutOutcome::Done));
        assert_eq!(storage.get("shared/bytes").unwrap(), content);
        fs::write(&local, &content).unwrap();
        assert_eq!(storage.put_file("shared/file", &local, mode), Ok(PutOutcome::Done));
        fs::remove_file(&local).unwrap();
        storage.get_to_file("shared/file", &local).unwrap();
        assert_eq!(fs::read(&local).unwrap(), content);
        fs::remove_file(&local).unwrap();
        let (start, end) = (large / 3, large / 2);
        assert_eq!(storage.get_range("shared/file", start as u64..end as u64).unwrap(), content.slice(start..end));
        assert_eq!(storage.head("shared/file").unwrap().unwrap().size, *large as u64);
    }
    assert_eq!(storage.list("").unwrap().len(), 2, "no temporary object is seen");
}

pub fn an_object_beyond_one_request_is_created_once(Fixture { storage, .. }: &Fixture) {
    let content = pattern((128 << 20) + 1, 3);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| storage.put("shared/a", content.clone(), PutMode::Create).unwrap()))
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == PutOutcome::Done).count(), 1);
    assert_eq!(storage.get("shared/a").unwrap(), content);
    assert_eq!(storage.put("shared/a", content, PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.list("").unwrap().len(), 1);
}

pub fn odd_names_come_back_as_they_were(Fixture { storage, .. }: &Fixture) {
    let mut paths: Vec<String> =
        ["a b", "50%", "%41", "x#y", "z?q=1", "ü/日本", "10:00", "~[1]{2}^`|<>*", "+&=;,@$!'()", "\"q\"", "a.b.", "A"]
            .map(|name| format!("savepoints/{name}"))
            .to_vec();
    paths.push(format!("savepoints/{}", "n".repeat(200)));
    for path in &paths {
        assert_eq!(storage.put(path, path.clone().into(), PutMode::Create), Ok(PutOutcome::Done), "{path}");
    }
    for path in &paths {
        assert_eq!(storage.get(path).unwrap(), path.as_bytes(), "{path}");
        assert_eq!(storage.head(path).unwrap().unwrap().path, *path);
    }
    paths.sort();
    let listed: Vec<_> = storage.list("savepoints").unwrap().into_iter().map(|o| o.path).collect();
    assert_eq!(listed, paths);
    assert_eq!(storage.delete_all(&paths), Ok(()));
    assert_eq!(storage.list(""), Ok(Vec::new()));
}

pub fn readers_see_the_old_or_the_new_content_and_no_mixture(fixture: &Fixture) {
    let Fixture { storage, scratch, rounds, large, .. } = fixture;
    let content = |i: usize| Bytes::from(vec![u8::try_from(i % 251).unwrap(); large / 4 + i]);
    let _ = storage.put("a", content(0), PutMode::Overwrite).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|reader| {
                let (content, over) = (&content, &over);
                scope.spawn(move || {
                    let local = scratch.path().join(format!("r{reader}"));
                    while !over.load(Ordering::Relaxed) {
                        let found = if reader == 0 {
                            storage.get_to_file("a", &local).map(|()| Bytes::from(fs::read(&local).unwrap()))
                        } else {
                            storage.get("a")
                        };
                        // HDFS deletes the blocks of a replaced file: an error then, but never other bytes.
                        let Ok(found) = found else { continue };
                        assert_eq!(found, content(found.len() - large / 4));
                    }
                })
            })
            .collect();
        for i in 1..=*rounds {
            assert_eq!(storage.put("a", content(i), PutMode::Overwrite), Ok(PutOutcome::Done));
        }
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert_eq!(storage.get("a").unwrap(), content(*rounds));
}

pub fn no_path_leaves_the_folder(Fixture { storage, .. }: &Fixture) {
    for path in ["../x", "/x", "a/../../x", "", ".tmp/x"] {
        assert!(matches!(storage.put(path, bytes("x"), PutMode::Create), Err(StorageError::Other(_))), "{path:?}");
        assert!(storage.delete(path).is_err(), "{path:?}");
        assert!(storage.delete_all(&[path.to_owned()]).is_err(), "{path:?}");
    }
}

pub fn an_injected_fault_says_whether_the_write_may_have_happened(Fixture { storage: inner, .. }: &Fixture) {
    let faults = |refused, lost, answer_lost| Faults { refused, lost, answer_lost };
    for (i, (faults, unknown, written)) in [
        (faults(1.0, 0.0, 0.0), false, false),
        (faults(0.0, 1.0, 0.0), true, false),
        (faults(0.0, 0.0, 1.0), true, true),
    ]
    .into_iter()
    .enumerate()
    {
        let storage = FaultyStorage::new(Arc::clone(inner), faults, 1);
        let path = format!("a/{i}");
        let result = storage.put(&path, bytes("x"), PutMode::Create);
        assert_eq!(matches!(result, Err(StorageError::Unknown(_))), unknown);
        assert!(result.is_err());
        assert_eq!(inner.get(&path).is_ok(), written);
        storage.set_faults(Faults::NONE);
        assert!(storage.put(&format!("b/{i}"), bytes("x"), PutMode::Create).is_ok());
        assert_eq!(storage.small_objects(), inner.small_objects());
    }
}
