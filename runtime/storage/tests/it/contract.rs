//! The contract of `Storage`, one test a promise, each on files and in memory.

use std::{fs, sync::Arc, thread};

use bytes::Bytes;
use streamkeeper_storage::{
    Faults, FaultyStorage, FileStorage, MemoryStorage, PutMode, PutOutcome, Storage, StorageError,
};
use tempfile::TempDir;

fn on_each(check: impl Fn(Arc<dyn Storage>, &TempDir)) {
    let scratch = TempDir::new().unwrap();
    check(Arc::new(FileStorage::new(scratch.path().join("storage")).unwrap()), &scratch);
    let scratch = TempDir::new().unwrap();
    check(Arc::new(MemoryStorage::new()), &scratch);
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn create_never_replaces_and_overwrite_does() {
    on_each(|storage, _| {
        assert_eq!(storage.put("log/1/0", bytes("a"), PutMode::Create), Ok(PutOutcome::Done));
        assert_eq!(storage.put("log/1/0", bytes("b"), PutMode::Create), Ok(PutOutcome::Exists));
        assert_eq!(storage.get("log/1/0"), Ok(bytes("a")));
        assert_eq!(storage.put("log/1/0", bytes("c"), PutMode::Overwrite), Ok(PutOutcome::Done));
        assert_eq!(storage.get("log/1/0"), Ok(bytes("c")));
    });
}

#[test]
fn of_many_concurrent_creators_exactly_one_wins() {
    on_each(|storage, _| {
        for round in 0..20 {
            let path = format!("log/{round}/0");
            let wins: usize = thread::scope(|scope| {
                let writers: Vec<_> = (0..4u8)
                    .map(|i| {
                        let (storage, path) = (&storage, &path);
                        scope.spawn(move || storage.put(path, Bytes::from(vec![i; 1000]), PutMode::Create).unwrap())
                    })
                    .collect();
                writers.into_iter().map(|w| usize::from(w.join().unwrap() == PutOutcome::Done)).sum()
            });
            assert_eq!(wins, 1);
            let content = storage.get(&path).unwrap();
            assert!(content.len() == 1000 && content.iter().all(|b| *b == content[0]));
        }
    });
}

#[test]
fn lists_a_folder_in_order_with_sizes_and_not_its_namesakes() {
    on_each(|storage, _| {
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
    });
}

#[test]
fn deleting_twice_is_no_error_and_what_is_gone_is_not_found() {
    on_each(|storage, _| {
        let _ = storage.put("chk-1/a", bytes("x"), PutMode::Create).unwrap();
        assert_eq!(storage.delete("chk-1/a"), Ok(()));
        assert_eq!(storage.delete("chk-1/a"), Ok(()));
        assert_eq!(storage.get("chk-1/a"), Err(StorageError::NotFound { path: "chk-1/a".into() }));
        assert_eq!(storage.head("chk-1/a"), Ok(None));
        assert_eq!(storage.put("chk-1/a", bytes("y"), PutMode::Create), Ok(PutOutcome::Done));
    });
}

#[test]
fn ranges_inside_are_read_and_ranges_beyond_are_errors() {
    on_each(|storage, _| {
        let _ = storage.put("shared/a", bytes("0123456789"), PutMode::Create).unwrap();
        assert_eq!(storage.get_range("shared/a", 2..5), Ok(bytes("234")));
        assert_eq!(storage.get_range("shared/a", 10..10), Ok(bytes("")));
        assert!(matches!(storage.get_range("shared/a", 8..11), Err(StorageError::Other(_))));
        #[expect(clippy::reversed_empty_ranges, reason = "it is the bad input")]
        let reversed = storage.get_range("shared/a", 5..2);
        assert!(matches!(reversed, Err(StorageError::Other(_))));
        assert!(matches!(storage.get_range("shared/b", 0..1), Err(StorageError::NotFound { .. })));
    });
}

#[test]
fn files_go_in_and_out() {
    on_each(|storage, scratch| {
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
    });
}

#[test]
fn no_path_leaves_the_folder() {
    on_each(|storage, _| {
        for path in ["../x", "/x", "a/../../x", ""] {
            assert!(matches!(storage.put(path, bytes("x"), PutMode::Create), Err(StorageError::Other(_))), "{path:?}");
            assert!(storage.delete(path).is_err(), "{path:?}");
        }
    });
}

#[test]
fn an_injected_fault_says_whether_the_write_may_have_happened() {
    let faults = |refused, lost, answer_lost| Faults { refused, lost, answer_lost };
    for (faults, unknown, written) in [
        (faults(1.0, 0.0, 0.0), false, false),
        (faults(0.0, 1.0, 0.0), true, false),
        (faults(0.0, 0.0, 1.0), true, true),
    ] {
        let inner = MemoryStorage::new();
        let storage = FaultyStorage::new(Arc::new(inner.clone()), faults, 1);
        let result = storage.put("a", bytes("x"), PutMode::Create);
        assert_eq!(matches!(result, Err(StorageError::Unknown(_))), unknown);
        assert!(result.is_err());
        assert_eq!(inner.get("a").is_ok(), written);
        storage.set_faults(Faults::NONE);
        assert!(storage.put("b", bytes("x"), PutMode::Create).is_ok());
    }
}
