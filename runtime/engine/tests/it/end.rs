//! The end of data, and tasks that had finished before a restore.

use std::collections::BTreeMap;

use streamkeeper_engine::{OperatorRestore, RestoredLists};
use streamkeeper_network::Element;
use streamkeeper_protocol::{CheckpointKind, TaskState, ToTask};
use streamkeeper_types::{CheckpointId, OperatorId};

use crate::bench::{Bench, barrier, row};

#[test]
fn f1_r38_finish_then_end_watermark_then_one_more_completed_checkpoint_then_the_end() {
    let mut bench = Bench::new(2);
    bench.end_data(0);
    bench.send(1, row(1));
    bench.end_data(1);
    bench.state(&TaskState::AwaitingFinalCheckpoint);
    assert_eq!(
        bench.journal.take(),
        [
            "out: lowest watermark",
            "out: 1 rows",
            "a: end watermark",
            "a: finish",
            "out: 1 rows",
            "b: end watermark",
            "b: finish",
            "out: 1 rows",
            "out: end watermark",
            "out: EndOfData",
        ],
        "R38: the end watermark comes after the last record"
    );
    bench.complete(1);
    bench.barrier(0, 2);
    bench.barrier(1, 2);
    assert!(bench.ack(2).finished);
    bench.complete(2);
    bench.send(0, Element::EndOfPartition);
    bench.send(1, Element::EndOfPartition);
    bench.state(&TaskState::Finished);
    assert_eq!(bench.journal.take().last().unwrap(), "out: EndOfPartition");
}

#[test]
fn f1_a_checkpoint_cut_before_the_end_of_data_is_not_the_final_one() {
    let mut bench = Bench::new(1);
    bench.barrier(0, 1);
    bench.ack(1);
    bench.end_data(0);
    bench.send(0, Element::EndOfPartition);
    bench.state(&TaskState::AwaitingFinalCheckpoint);
    bench.complete(1);
    bench.task.send(ToTask::TriggerCheckpoint(barrier(2)));
    assert!(bench.ack(2).finished, "it still takes part");
    bench.complete(2);
    bench.state(&TaskState::Finished);
}

#[test]
fn r5_an_ended_channel_counts_as_its_barrier() {
    let mut bench = Bench::new(2);
    bench.barrier(0, 1);
    bench.end_data(1);
    bench.send(1, Element::EndOfPartition);
    bench.ack(1);
}

fn finished(items: &[&[u8]]) -> OperatorRestore {
    let lists = BTreeMap::from([("name".to_owned(), items.iter().map(|item| item.to_vec()).collect())]);
    let lists = RestoredLists { from: Some(CheckpointId(1)), lists };
    OperatorRestore { lists, finished: true, ..OperatorRestore::default() }
}

#[test]
fn f3_a_task_that_had_finished_passes_on_the_end_and_barriers_and_calls_no_operator() {
    let restore = BTreeMap::from([(OperatorId(1), finished(&[])), (OperatorId(2), finished(&[]))]);
    let mut bench = Bench::restored(1, restore);
    bench.end_data(0);
    bench.barrier(0, 5);
    assert!(bench.ack(5).finished);
    bench.complete(5);
    bench.send(0, Element::EndOfPartition);
    bench.state(&TaskState::Finished);
    let expected =
        ["out: lowest watermark", "out: end watermark", "out: EndOfData", "out: barrier 5", "out: EndOfPartition"];
    assert_eq!(bench.journal.take(), expected);
}

#[test]
fn r17_a_finished_operator_that_still_holds_something_to_commit_is_opened_and_told() {
    let restore = BTreeMap::from([(OperatorId(1), finished(&[])), (OperatorId(2), finished(&[b"x"]))]);
    let mut bench = Bench::restored(1, restore);
    bench.end_data(0);
    bench.barrier(0, 5);
    bench.ack(5);
    bench.complete(5);
    bench.send(0, Element::EndOfPartition);
    bench.state(&TaskState::Finished);
    let of_operators: Vec<String> = bench.journal.take().into_iter().filter(|line| !line.starts_with("out")).collect();
    assert_eq!(of_operators, ["b: snapshot", "b: completed 5"]);
}

#[test]
fn a_stopped_task_waits_for_its_own_notification_even_if_all_channels_ended() {
    let mut bench = Bench::new(1);
    let mut stop = barrier(3);
    stop.kind = CheckpointKind::StopSavepoint { drain: false };
    bench.send(0, Element::Barrier(stop));
    bench.send(0, Element::EndOfPartition);
    bench.ack(3);
    bench.complete(3);
    bench.state(&TaskState::Finished);
    let journal = bench.journal.take();
    let end: Vec<&str> = journal.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(end, ["a: completed 3", "b: completed 3", "out: EndOfPartition"]);
}
