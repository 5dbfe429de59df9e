//! Where a task cuts, and in which order.

use streamkeeper_network::Element;
use streamkeeper_protocol::{DeclineReason, TaskState, ToTask};
use streamkeeper_types::{CheckpointId, Code, Watermark};

use crate::bench::{Bench, barrier, row};

#[test]
fn s4_r3_flush_then_barrier_then_the_synchronous_parts_then_the_acknowledgement() {
    let mut bench = Bench::new(1);
    bench.send(0, row(1));
    bench.barrier(0, 1);
    let snapshot = bench.ack(1);
    assert_eq!(
        bench.journal.take(),
        [
            "out: lowest watermark",
            "out: 1 rows",
            "a: before barrier",
            "out: 1 rows",
            "b: before barrier",
            "out: 1 rows",
            "out: barrier 1",
            "a: snapshot",
            "b: snapshot",
        ]
    );
    let names: Vec<&[u8]> = snapshot.operators.iter().map(|o| o.lists["name"].items[0].as_slice()).collect();
    assert_eq!(names, [b"a", b"b"]);
    assert!(!snapshot.finished);
}

#[test]
fn r2_nothing_comes_between_the_synchronous_parts_of_two_chained_operators() {
    let cut = |id| [row(1), Element::Barrier(barrier(id)), row(2), Element::Watermark(Watermark(100))];
    let elements = (1..=3).flat_map(cut).map(|element| (0, element)).collect();
    let bench = Bench::filled(1, elements);
    bench.complete(1);
    bench.ack(3);
    let journal = bench.journal.take();
    let cuts: Vec<&[String]> = journal.windows(2).filter(|pair| pair[0] == "a: snapshot").collect();
    assert_eq!(cuts, [["a: snapshot", "b: snapshot"]; 3], "{journal:?}");
}

#[test]
fn r9_no_record_behind_a_barrier_is_processed_before_the_snapshot() {
    let mut bench = Bench::new(2);
    bench.barrier(0, 1);
    bench.send(0, row(5));
    bench.send(1, row(6));
    bench.barrier(1, 1);
    bench.ack(1);
    bench.barrier(0, 2);
    bench.barrier(1, 2);
    bench.ack(2);
    let journal = bench.journal.take();
    let rows_between: Vec<usize> = journal
        .split(|line| line.starts_with("out: barrier"))
        .map(|part| part.iter().filter(|line| *line == "out: 1 rows").count())
        .collect();
    assert_eq!(rows_between, [3, 3, 0], "before each barrier one row and two flushes: {journal:?}");
}

#[test]
fn r4_a_task_declines_what_a_newer_barrier_overtakes_and_runs_on() {
    let mut bench = Bench::new(2);
    bench.barrier(0, 1);
    bench.barrier(1, 2);
    assert_eq!(bench.decline(), (1, DeclineReason::Subsumed { by: CheckpointId(2) }));
    bench.barrier(0, 2);
    bench.ack(2);
}

#[test]
fn r6_an_abort_frees_the_channels_and_goes_on_as_a_cancel_marker() {
    let mut bench = Bench::new(2);
    bench.barrier(0, 1);
    bench.send(0, row(1));
    bench.task.send(ToTask::NotifyAborted { id: CheckpointId(1), latest_completed: None });
    bench.barrier(0, 2);
    bench.barrier(1, 2);
    bench.ack(2);
    let journal = bench.journal.take();
    assert!(!journal.contains(&"out: barrier 1".to_owned()), "{journal:?}");
    assert!(journal.contains(&"out: barrier 2".to_owned()));
}

#[test]
fn r7_a_trigger_that_meets_a_task_without_open_channels_still_completes() {
    let mut bench = Bench::new(1);
    bench.end_data(0);
    bench.send(0, Element::EndOfPartition);
    bench.state(&TaskState::AwaitingFinalCheckpoint);
    bench.task.send(ToTask::TriggerCheckpoint(barrier(4)));
    assert!(bench.ack(4).finished);
}

#[test]
fn r19_a_notification_reaches_all_operators_even_if_one_fails() {
    let bench = Bench::new(1);
    bench.complete(99);
    assert_eq!(bench.failure().code, Code::SinkFailed);
    assert_eq!(bench.journal.take(), ["a: completed 99", "b: completed 99"]);
}

#[test]
fn r16_a_notification_that_comes_twice_or_late_changes_nothing() {
    let mut bench = Bench::new(1);
    for id in [2, 2, 1, 3] {
        bench.complete(id);
    }
    bench.barrier(0, 4);
    bench.ack(4);
    let completed: Vec<String> =
        bench.journal.take().into_iter().filter(|line| line.starts_with("a: completed")).collect();
    assert_eq!(completed, ["a: completed 2", "a: completed 3"]);
}

#[test]
fn rows_leave_before_the_watermark_that_came_behind_them() {
    let mut bench = Bench::new(2);
    bench.send(0, row(1));
    bench.send(0, Element::Watermark(Watermark(5)));
    bench.send(1, Element::Watermark(Watermark(3)));
    bench.barrier(0, 1);
    bench.barrier(1, 1);
    bench.ack(1);
    let expected = ["out: lowest watermark", "out: 1 rows", "a: watermark", "b: watermark", "out: watermark 3"];
    assert_eq!(bench.journal.take()[..5], expected);
}

#[test]
fn failures_and_panics_are_reported_with_their_place() {
    for (value, code) in [(13, Code::Evaluation), (14, Code::Internal)] {
        let mut bench = Bench::new(1);
        bench.send(0, row(value));
        let error = bench.failure();
        assert_eq!(error.code, code);
        assert_eq!(error.place[0], "v0/0 a → b");
    }
}

#[test]
fn r31_a_cancelled_task_ends_wherever_it_waits() {
    let mut bench = Bench::new(2);
    bench.barrier(0, 1);
    bench.task.send(ToTask::Cancel);
    bench.state(&TaskState::Cancelled);
}

#[test]
fn s2_one_cut_spans_all_logical_inputs() {
    let mut bench = Bench::with_inputs(&[0, 1]);
    bench.send(1, row(5));
    bench.barrier(1, 1);
    bench.send(1, row(6));
    bench.barrier(0, 1);
    bench.ack(1);
    let journal = bench.journal.take();
    let barrier = journal.iter().position(|line| line == "out: barrier 1").unwrap();
    assert_eq!(journal[..barrier].iter().filter(|line| *line == "a: input 1").count(), 1, "{journal:?}");
}

#[test]
fn idleness_goes_on_when_every_channel_is_idle_and_a_lone_idle_one_holds_nothing_back() {
    let mut bench = Bench::new(2);
    bench.send(1, Element::Idle);
    bench.send(0, Element::Watermark(Watermark(4)));
    bench.send(0, Element::Idle);
    bench.barrier(0, 1);
    bench.barrier(1, 1);
    bench.ack(1);
    let out: Vec<String> = bench.journal.take().into_iter().filter(|line| line.starts_with("out")).collect();
    assert_eq!(out[..3], ["out: lowest watermark", "out: watermark 4", "out: Idle"]);
}
