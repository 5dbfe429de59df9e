//! No record is judged before every channel has said where it stands in time.

use streamkeeper_network::Element;
use streamkeeper_protocol::{TaskState, ToTask};
use streamkeeper_types::{CheckpointId, Watermark};

use crate::bench::{Bench, row};

const LOWEST: Element = Element::Watermark(Watermark::MIN);

/// A reader with a split, one of whose rows is late.
fn reader() -> Vec<(usize, Element)> {
    let elements = [LOWEST, row(1), Element::Watermark(Watermark(10)), row(5), row(11)];
    elements.into_iter().map(|element| (0, element)).collect()
}

/// Channels take turns, so without the wait these markers would let all of the other channel's elements come first.
fn turns(count: u64) -> impl Iterator<Item = (usize, Element)> {
    (1..=count).map(|id| (1, Element::CancelBarrier(CheckpointId(id))))
}

fn late(journal: &[String]) -> Vec<&String> {
    journal.iter().filter(|line| line.starts_with("a: late")).collect()
}

#[test]
fn d13_a_late_row_is_late_even_if_the_reader_without_split_says_so_behind_it() {
    let mut elements = reader();
    elements.extend(turns(20));
    elements.push((1, Element::Idle));
    let mut bench = Bench::filled(2, elements);
    bench.barrier(0, 30);
    bench.barrier(1, 30);
    bench.ack(30);
    assert_eq!(late(&bench.journal.take()), ["a: late 5"]);
}

#[test]
fn d14_no_row_is_late_before_a_reader_that_begins_later_has_read_its_own() {
    let mut elements = reader();
    elements.extend(turns(20));
    elements.extend([LOWEST, row(2), row(3)].map(|element| (1, element)));
    let mut bench = Bench::filled(2, elements);
    bench.barrier(0, 30);
    bench.barrier(1, 30);
    bench.ack(30);
    assert!(late(&bench.journal.take()).is_empty());
}

#[test]
fn a_task_says_where_it_stands_before_its_first_record() {
    let mut bench = Bench::filled(2, reader());
    bench.send(1, LOWEST);
    bench.barrier(0, 2);
    bench.barrier(1, 2);
    bench.ack(2);
    let out: Vec<String> = bench.journal.take().into_iter().filter(|line| line.starts_with("out")).collect();
    assert_eq!(out.iter().position(|line| line == "out: lowest watermark"), Some(0), "{out:?}");
    assert!(out.len() > 2, "{out:?}");
}

#[test]
fn a_task_of_idle_channels_begins_idle() {
    let mut bench = Bench::filled(2, vec![(0, Element::Idle), (1, Element::Idle)]);
    bench.barrier(0, 1);
    bench.barrier(1, 1);
    bench.ack(1);
    let out: Vec<String> = bench.journal.take().into_iter().filter(|line| line.starts_with("out")).collect();
    assert_eq!(out[0], "out: Idle");
}

#[test]
fn r9_a_barrier_that_comes_before_the_other_channel_has_spoken_still_cuts_behind_all_rows() {
    let mut bench = Bench::filled(2, reader());
    bench.barrier(0, 1);
    bench.send(1, Element::Idle);
    bench.barrier(1, 1);
    bench.ack(1);
    let journal = bench.journal.take();
    let barrier = journal.iter().position(|line| line == "out: barrier 1").unwrap();
    let rows = journal[..barrier].iter().filter_map(|line| line.strip_prefix("out: ")?.strip_suffix(" rows"));
    let rows: usize = rows.map(|count| count.parse::<usize>().unwrap()).sum();
    assert_eq!(rows, 3 + 2, "three rows of the reader, two flushes: {journal:?}");
}

#[test]
fn r31_a_task_whose_channels_stay_silent_can_be_cancelled() {
    let bench = Bench::filled(2, reader());
    bench.task.send(ToTask::Cancel);
    bench.state(&TaskState::Cancelled);
    assert!(bench.journal.take().is_empty());
}

/// Behind an idle mark a row would be judged by the watermark of the channels beside it.
#[test]
fn rows_that_are_held_back_go_on_before_idleness_does() {
    let mut bench = Bench::filled(1, vec![(0, LOWEST), (0, row(5)), (0, Element::Idle)]);
    bench.barrier(0, 1);
    bench.ack(1);
    let journal = bench.journal.take();
    let at = |wanted: &str| journal.iter().position(|line| line.starts_with(wanted)).unwrap();
    assert!(at("out: 1 rows") < at("out: Idle"), "{journal:?}");
}
