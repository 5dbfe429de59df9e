//! Several processes on one folder, some of them killed: this test binary again, running one ignored test.

use std::{
    collections::BTreeMap,
    env, fs,
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use streamkeeper_storage::{FileStorage, PutMode, PutOutcome, Storage};
use tempfile::TempDir;

const ROOT: &str = "STREAMKEEPER_PROCESS_TEST_ROOT";
const WRITER: &str = "STREAMKEEPER_PROCESS_TEST_WRITER";

/// Paths that all writers want, and bytes of each object: enough that a write takes several system calls.
const PATHS: usize = 60;
const SIZE: usize = 300_000;

/// The child: wants every path, fills what it creates with its own number, and notes each path that it got.
#[test]
#[ignore = "run by the tests below"]
fn child() {
    let (Ok(root), Ok(writer)) = (env::var(ROOT), env::var(WRITER)) else { return };
    let storage = FileStorage::new(format!("{root}/storage")).unwrap();
    let content = Bytes::from(vec![writer.parse::<u8>().unwrap(); SIZE]);
    for path in (0..PATHS).map(path) {
        if storage.put(&path, content.clone(), PutMode::Create).unwrap() == PutOutcome::Done {
            fs::write(format!("{root}/won-{writer}-{}", path.replace('/', "-")), "").unwrap();
        }
    }
}

fn path(number: usize) -> String {
    format!("log/{number}/0")
}

fn spawn(root: &TempDir, writer: u8) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["processes::child", "--exact", "--ignored"]).stdout(Stdio::null());
    command.env(ROOT, root.path()).env(WRITER, writer.to_string()).spawn().unwrap()
}

/// Who wrote each object; panics if one is not whole or not of one writer.
fn owners(root: &TempDir) -> BTreeMap<String, u8> {
    let storage = FileStorage::new(root.path().join("storage")).unwrap();
    let owner = |path: String| {
        let bytes = storage.get(&path).unwrap();
        assert_eq!(bytes.len(), SIZE, "{path} is torn");
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{path} is of several writers");
        (path, bytes[0])
    };
    storage.list("").unwrap().into_iter().map(|object| owner(object.path)).collect()
}

#[test]
fn of_several_processes_exactly_one_creates_each_object_and_knows_it() {
    let root = TempDir::new().unwrap();
    let children: Vec<Child> = (1..=4).map(|writer| spawn(&root, writer)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let owners = owners(&root);
    assert_eq!(owners.len(), PATHS);
    for (path, owner) in owners {
        let won = |writer: &u8| root.path().join(format!("won-{writer}-{}", path.replace('/', "-"))).exists();
        assert_eq!((1..=4).filter(won).collect::<Vec<u8>>(), [owner], "{path}");
    }
}

#[test]
fn a_killed_writer_leaves_whole_objects_only_and_its_paths_to_others() {
    let root = TempDir::new().unwrap();
    for round in 0..8 {
        let mut child = spawn(&root, 1);
        // Killed after another number of objects each time, in the midst of the next one.
        while fs::read_dir(root.path()).unwrap().count() < 2 + round * 6 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(owners(&root).values().all(|owner| *owner == 1));
    }
    assert!(spawn(&root, 2).wait().unwrap().success());
    assert_eq!(owners(&root).len(), PATHS);
}
