//! The file sink in two phases: crashes at every step, restores at other parallelisms, lost and doubled notifications.

use std::{fs, path::Path, sync::Arc};

use arrow::{
    array::{Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
};
use proptest::prelude::*;
use streamkeeper_connectors::{TableDefinition, connector};
use streamkeeper_engine::Changelog;
use streamkeeper_protocol::{Barrier, CheckpointKind};
use streamkeeper_types::Code;

use crate::harness::{Sinks, barrier, batch, everything, lines, schema, sink_input, table, visible};

fn numbers(from: i64, count: i64) -> RecordBatch {
    batch(vec![("n", Arc::new(Int64Array::from_iter_values(from..from + count)))])
}

fn definition(folder: &Path) -> TableDefinition {
    table(folder, schema(&[("n", DataType::Int64)]), &[("path", "out"), ("format", "csv")])
}

fn sorted_numbers(folder: &Path) -> Vec<i64> {
    let mut found: Vec<i64> = lines(&folder.join("out")).iter().map(|line| line.parse().unwrap()).collect();
    found.sort_unstable();
    found
}

#[test]
fn files_appear_only_when_their_checkpoint_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut sinks = Sinks::open(&definition(folder.path()), 1, &[]).unwrap();
    sinks.write(0, &numbers(0, 10)).unwrap();
    sinks.cut(&barrier(1)).unwrap();
    assert!(visible(&out).is_empty());
    sinks.write(0, &numbers(10, 10)).unwrap();
    sinks.complete(0, 1).unwrap();
    assert_eq!(sorted_numbers(folder.path()), (0..10).collect::<Vec<_>>());
    let name = visible(&out)[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("part-12345678-0-") && name.ends_with(".csv"), "{name}");
}

#[test]
fn r16_a_notification_commits_everything_at_or_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut sinks = Sinks::open(&definition(folder.path()), 1, &[]).unwrap();
    for id in 1..=3 {
        sinks.write(0, &numbers(id as i64 * 10, 10)).unwrap();
        sinks.cut(&barrier(id)).unwrap();
    }
    sinks.complete(0, 2).unwrap();
    assert_eq!(sorted_numbers(folder.path()), (10..30).collect::<Vec<_>>());
    // Late and doubled ones change nothing.
    sinks.complete(0, 1).unwrap();
    sinks.complete(0, 2).unwrap();
    assert_eq!(sorted_numbers(folder.path()).len(), 20);
    sinks.complete(0, 3).unwrap();
    assert_eq!(sorted_numbers(folder.path()), (10..40).collect::<Vec<_>>());
}

#[test]
fn an_aborted_checkpoints_files_go_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut sinks = Sinks::open(&definition(folder.path()), 1, &[]).unwrap();
    sinks.write(0, &numbers(0, 10)).unwrap();
    sinks.cut(&barrier(1)).unwrap();
    let second = sinks.cut(&barrier(2)).unwrap();
    assert_eq!(second.len(), 1);
    sinks.complete(0, 2).unwrap();
    assert_eq!(sorted_numbers(folder.path()).len(), 10);
}

#[test]
fn r17_restored_files_are_committed_once_however_often_and_wherever_they_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let table = definition(folder.path());
    let mut sinks = Sinks::open(&table, 3, &[]).unwrap();
    (0..3).for_each(|subtask| sinks.write(subtask, &numbers(subtask as i64 * 10, 10)).unwrap());
    let cut = sinks.cut(&barrier(1)).unwrap();
    // One subtask heard of it, then everything dies.
    sinks.complete(1, 1).unwrap();
    drop(sinks);
    for parallelism in [1, 2, 5] {
        drop(Sinks::open(&table, parallelism, &cut).unwrap());
        assert_eq!(sorted_numbers(folder.path()), (0..30).collect::<Vec<_>>());
    }
}

#[test]
fn b77_leftovers_stay_until_a_newer_checkpoint_completed() {
    let folder = tempfile::tempdir().unwrap();
    let (table, out) = (definition(folder.path()), folder.path().join("out"));
    let mut sinks = Sinks::open(&table, 4, &[]).unwrap();
    (0..4).for_each(|subtask| sinks.write(subtask, &numbers(0, 10)).unwrap());
    let first = sinks.cut(&barrier(1)).unwrap();
    (0..4).for_each(|subtask| sinks.write(subtask, &numbers(100, 10)).unwrap());
    sinks.cut(&barrier(2)).unwrap();
    drop(sinks);
    // Checkpoint 1 is restored with fewer subtasks: four files are committed, four belong to nobody.
    let mut sinks = Sinks::open(&table, 2, &first).unwrap();
    assert_eq!(sorted_numbers(folder.path()).len(), 40);
    assert_eq!(everything(&out).len(), 8);
    sinks.write(0, &numbers(200, 1)).unwrap();
    sinks.write(1, &numbers(201, 1)).unwrap();
    sinks.cut(&barrier(3)).unwrap();
    assert_eq!(everything(&out).len(), 10);
    sinks.complete(0, 3).unwrap();
    // Subtask 1 has not heard yet: its file and its leftovers are still there.
    assert_eq!(everything(&out).len(), 8);
    sinks.complete(1, 3).unwrap();
    assert_eq!(everything(&out), visible(&out));
    assert_eq!(sorted_numbers(folder.path()).len(), 42);
}

#[test]
fn r18_an_intermediate_savepoint_keeps_files_prepared_for_the_next_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut sinks = Sinks::open(&definition(folder.path()), 1, &[]).unwrap();
    sinks.write(0, &numbers(0, 10)).unwrap();
    let savepoint = Barrier { kind: CheckpointKind::Savepoint, ..barrier(1) };
    assert_eq!(sinks.cut(&savepoint).unwrap().len(), 1);
    assert_eq!(sinks.cut(&barrier(2)).unwrap().len(), 1);
    assert!(visible(&folder.path().join("out")).is_empty());
    sinks.complete(0, 2).unwrap();
    assert_eq!(sorted_numbers(folder.path()).len(), 10);
}

#[test]
fn b78_two_operators_and_two_jobs_keep_their_staged_files_apart() {
    let folder = tempfile::tempdir().unwrap();
    let first = definition(folder.path());
    let second = TableDefinition { job: "default/other".to_owned(), ..first.clone() };
    let mut one = Sinks::open(&first, 1, &[]).unwrap();
    one.write(0, &numbers(0, 10)).unwrap();
    one.cut(&barrier(1)).unwrap();
    let mut other = Sinks::open(&second, 1, &[]).unwrap();
    other.cut(&barrier(1)).unwrap();
    other.complete_all(1);
    one.complete_all(1);
    assert_eq!(sorted_numbers(folder.path()).len(), 10);
    assert_eq!(everything(&folder.path().join("out")).len(), 1);
}

#[test]
fn files_roll_by_size_and_partitions_have_folders() {
    let folder = tempfile::tempdir().unwrap();
    let columns = schema(&[("p", DataType::Utf8), ("n", DataType::Int64)]);
    let options = [("path", "out"), ("format", "json"), ("sink.rolling-policy.file-size", "100B")];
    let mut table = table(folder.path(), columns, &options);
    table.partitioned_by = vec!["p".to_owned()];
    let mut sinks = Sinks::open(&table, 1, &[]).unwrap();
    for round in 0..4 {
        let p = StringArray::from(vec![Some("a/b"), None, Some("a/b")]);
        let n = Int64Array::from_iter_values((0..3).map(|n| round * 1_000_000_000_000_000 + n));
        sinks.write(0, &batch(vec![("p", Arc::new(p)), ("n", Arc::new(n))])).unwrap();
    }
    sinks.cut(&barrier(1)).unwrap();
    sinks.complete_all(1);
    let out = folder.path().join("out");
    assert_eq!(visible(&out.join("p=a%2Fb")).len(), 2);
    assert_eq!(visible(&out.join("p=__HIVE_DEFAULT_PARTITION__")).len(), 1);
    assert_eq!(lines(&out).len(), 12);
    assert_eq!(lines(&out)[0], "{\"n\":0}");
}

#[test]
fn each_csv_file_has_a_header_if_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = definition(folder.path());
    table.options.insert("csv.header".to_owned(), "true".to_owned());
    let mut sinks = Sinks::open(&table, 2, &[]).unwrap();
    (0..2).for_each(|subtask| sinks.write(subtask, &numbers(7, 1)).unwrap());
    sinks.cut(&barrier(1)).unwrap();
    sinks.complete_all(1);
    assert_eq!(lines(&folder.path().join("out")), ["7", "7", "n", "n"]);
}

#[test]
fn updates_and_null_in_not_null_columns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = definition(folder.path());
    let sink = connector("filesystem").unwrap().sink(&table, &sink_input(&table, Changelog::Updating));
    let error = sink.err().unwrap();
    assert_eq!(error.code, Code::SqlInvalid);
    assert!(error.way_out.unwrap().contains("TUMBLE"));
    table.schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let mut sinks = Sinks::open(&table, 1, &[]).unwrap();
    let null = batch(vec![("n", Arc::new(Int64Array::from(vec![None::<i64>])))]);
    assert_eq!(sinks.write(0, &null).unwrap_err().code, Code::RecordInvalid);
}

#[test]
fn a_folder_that_cannot_be_written_shows_before_any_row() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out"), "a file where the folder should be").unwrap();
    let error = Sinks::open(&definition(folder.path()), 1, &[]).err().unwrap();
    assert!(matches!(error.code, Code::NotWritable | Code::SinkFailed), "{error}");
}

#[test]
fn staged_files_that_were_touched_are_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut sinks = Sinks::open(&definition(folder.path()), 1, &[]).unwrap();
    sinks.write(0, &numbers(0, 10)).unwrap();
    sinks.cut(&barrier(1)).unwrap();
    fs::write(&everything(&folder.path().join("out"))[0], "torn").unwrap();
    assert_eq!(sinks.complete(0, 1).unwrap_err().code, Code::SinkFailed);
}

/// One step of a job's life.
#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Checkpoint,
    /// A checkpoint that completes, of which only some subtasks hear.
    Complete(u8),
    /// Everything dies and is restored with this parallelism.
    Crash(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..4).prop_map(Step::Write),
        2 => Just(Step::Checkpoint),
        2 => any::<u8>().prop_map(Step::Complete),
        1 => (1_u32..4).prop_map(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_a_completed_checkpoint_covers_is_visible_once_and_nothing_else_stays(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let table = definition(folder.path());
        let mut parallelism = 1;
        let mut sinks = Sinks::open(&table, 1, &[]).unwrap();
        // Rows written, those covered by the newest checkpoint that may complete, and by the newest completed one.
        let mut next = 0_i64;
        let mut id = 0;
        let mut pending: Option<(u64, i64, Vec<Vec<u8>>)> = None;
        let mut completed: (i64, Vec<Vec<u8>>) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Write(subtask) => {
                    sinks.write(subtask % parallelism as usize, &numbers(next, 3)).unwrap();
                    next += 3;
                }
                Step::Checkpoint => {
                    id += 1;
                    let items = sinks.cut(&barrier(id)).unwrap();
                    pending = Some((id, next, items));
                }
                Step::Complete(heard) => {
                    let Some((id, rows, items)) = pending.take() else { continue };
                    completed = (rows, items);
                    for subtask in (0..parallelism as usize).filter(|s| heard >> s & 1 == 1) {
                        sinks.complete(subtask, id).unwrap();
                    }
                }
                Step::Crash(with) => {
                    drop(sinks);
                    parallelism = with;
                    pending = None;
                    next = completed.0;
                    sinks = Sinks::open(&table, parallelism, &completed.1).unwrap();
                    prop_assert_eq!(sorted_numbers(folder.path()), (0..next).collect::<Vec<_>>());
                }
            }
        }
        sinks.cut(&barrier(id + 1)).unwrap();
        sinks.complete_all(id + 1);
        prop_assert_eq!(sorted_numbers(folder.path()), (0..next).collect::<Vec<_>>());
        let out = folder.path().join("out");
        prop_assert_eq!(everything(&out), visible(&out));
    }
}
