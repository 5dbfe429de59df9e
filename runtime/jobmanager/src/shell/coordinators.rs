//! The split coordinators of a run, each behind a valve that keeps its events on the right side of a cut (R29).

use std::collections::BTreeMap;

use streamkeeper_engine::{Assignment, JobGraph, NodeFactory, SourceFactory, SplitCoordinator, SplitRequest, ToReader};
use streamkeeper_protocol::{CoordinatorEvent, ToTask};
use streamkeeper_types::{AttemptId, Error, Millis, OperatorId, Result, SubtaskId, VertexId};

/// A command for one reader.
pub(super) type ReaderMessage = (AttemptId, ToTask);

pub(super) struct Coordinators {
    sources: BTreeMap<OperatorId, Source>,
    /// States of sources that had finished before the restore: their input is not looked at again.
    finished: BTreeMap<OperatorId, Vec<u8>>,
}

struct Source {
    name: String,
    coordinator: Box<dyn SplitCoordinator>,
    /// By subtask index.
    readers: Vec<AttemptId>,
    /// Closed between the coordinator's cut and the delivery of the trigger to the readers.
    valve_closed: bool,
    held: Vec<ReaderMessage>,
    /// What the readers were last told of splits that nobody has.
    told_unread: Option<bool>,
    next_discovery: Option<Millis>,
}

impl Coordinators {
    /// New coordinators for a run, put where the snapshot has them. `attempt_of` names the readers; vertices for which
    /// `is_finished` holds need none.
    pub(super) fn start(
        graph: &JobGraph,
        restored: &BTreeMap<OperatorId, Vec<u8>>,
        is_finished: impl Fn(VertexId) -> bool,
        attempt_of: impl Fn(SubtaskId) -> AttemptId,
        now: Millis,
    ) -> Result<Self> {
        let mut coordinators = Self::none();
        for vertex in &graph.vertices {
            let Some(node) = vertex.nodes.first() else { continue };
            let NodeFactory::Source { source, .. } = &node.factory else { continue };
            if is_finished(vertex.id) {
                coordinators.finished.insert(node.id, restored.get(&node.id).cloned().unwrap_or_default());
                continue;
            }
            let readers =
                (0..vertex.parallelism).map(|index| attempt_of(SubtaskId { vertex: vertex.id, index })).collect();
            let opened = Source::open(node.name.clone(), source.as_ref(), readers, restored.get(&node.id), now);
            coordinators.sources.insert(node.id, opened.map_err(|e| e.at(node.name.clone()))?);
        }
        Ok(coordinators)
    }

    /// Nobody is to be coordinated.
    pub(super) fn none() -> Self {
        Self { sources: BTreeMap::new(), finished: BTreeMap::new() }
    }

    /// A reader asks for splits.
    pub(super) fn on_request(&mut self, operator: OperatorId, attempt: AttemptId) -> Result<Vec<ReaderMessage>> {
        let Some(source) = self.sources.get_mut(&operator) else { return Ok(Vec::new()) };
        if source.readers.get(attempt.subtask.index as usize) != Some(&attempt) {
            return Ok(Vec::new());
        }
        let reader = attempt.subtask.index;
        let assigned = source.coordinator.on_request(SplitRequest { reader }).map(|mut assigned| {
            if assigned.iter().all(|assignment| assignment.reader != reader) {
                assigned.push(Assignment { reader, splits: Vec::new(), no_more: false });
            }
            assigned
        });
        source.messages(operator, assigned)
    }

    /// A reader says something of itself.
    pub(super) fn on_report(
        &mut self,
        operator: OperatorId,
        attempt: AttemptId,
        report: &[u8],
    ) -> Result<Vec<ReaderMessage>> {
        let Some(source) = self.sources.get_mut(&operator) else { return Ok(Vec::new()) };
        if source.readers.get(attempt.subtask.index as usize) != Some(&attempt) {
            return Ok(Vec::new());
        }
        let taken = source.coordinator.on_report(attempt.subtask.index, report);
        taken.map(|()| Vec::new()).map_err(|e| e.at(source.name.clone()))
    }

    /// Looks for new splits where that is due.
    pub(super) fn discover(&mut self, now: Millis) -> Result<Vec<ReaderMessage>> {
        let mut messages = Vec::new();
        for (operator, source) in &mut self.sources {
            if source.next_discovery.is_some_and(|due| due <= now) {
                let found = source.coordinator.discover(now);
                source.schedule(now);
                messages.extend(source.messages(*operator, found)?);
            }
        }
        Ok(messages)
    }

    /// What the readers must know before they begin.
    pub(super) fn greet(&mut self) -> Result<Vec<ReaderMessage>> {
        let mut messages = Vec::new();
        for (operator, source) in &mut self.sources {
            messages.extend(source.messages(*operator, Ok(Vec::new()))?);
        }
        Ok(messages)
    }

    pub(super) fn next_discovery(&self) -> Option<Millis> {
        self.sources.values().filter_map(|source| source.next_discovery).min()
    }

    pub(super) fn hold(&mut self, operator: OperatorId) {
        if let Some(source) = self.sources.get_mut(&operator) {
            source.valve_closed = true;
        }
    }

    pub(super) fn release(&mut self, operator: OperatorId) -> Vec<ReaderMessage> {
        let Some(source) = self.sources.get_mut(&operator) else { return Vec::new() };
        source.valve_closed = false;
        std::mem::take(&mut source.held)
    }

    pub(super) fn snapshot(&mut self, operator: OperatorId) -> Result<Vec<u8>> {
        if let Some(state) = self.finished.get(&operator) {
            return Ok(state.clone());
        }
        let source = self.sources.get_mut(&operator);
        let source = source.ok_or_else(|| Error::internal(format!("{operator} has no split coordinator")))?;
        source.coordinator.snapshot().map_err(|e| e.at(source.name.clone()))
    }
}

impl Source {
    fn open(
        name: String,
        factory: &dyn SourceFactory,
        readers: Vec<AttemptId>,
        restored: Option<&Vec<u8>>,
        now: Millis,
    ) -> Result<Self> {
        let parallelism = u32::try_from(readers.len()).map_err(|_| Error::internal("too many readers"))?;
        let mut coordinator = factory.coordinator(parallelism)?;
        if let Some(bytes) = restored {
            coordinator.restore(bytes)?;
        }
        coordinator.reset(parallelism);
        let mut source = Self {
            name,
            coordinator,
            readers,
            valve_closed: false,
            held: Vec::new(),
            told_unread: None,
            next_discovery: None,
        };
        source.schedule(now);
        Ok(source)
    }

    fn schedule(&mut self, now: Millis) {
        let interval = self.coordinator.discovery_interval();
        self.next_discovery =
            interval.map(|i| now.saturating_add(Millis::try_from(i.as_millis()).unwrap_or(Millis::MAX).max(1)));
    }

    /// Messages for the readers, or nothing yet if the valve is closed.
    fn messages(&mut self, operator: OperatorId, assigned: Result<Vec<Assignment>>) -> Result<Vec<ReaderMessage>> {
        let assigned = assigned.map_err(|e| e.at(self.name.clone()))?;
        let unread = self.coordinator.has_unread_splits();
        let mut messages = Vec::with_capacity(assigned.len());
        let mut told = vec![self.told_unread == Some(unread); self.readers.len()];
        for Assignment { reader, splits, no_more } in assigned {
            let Some(attempt) = self.readers.get(reader as usize) else {
                return Err(Error::internal(format!("{}: there is no reader {reader}", self.name)));
            };
            told[reader as usize] = true;
            messages.push(message(operator, *attempt, &ToReader { splits, no_more, unread_elsewhere: unread }));
        }
        for (attempt, _) in self.readers.iter().zip(&told).filter(|(_, told)| !**told) {
            let event = ToReader { splits: Vec::new(), no_more: false, unread_elsewhere: unread };
            messages.push(message(operator, *attempt, &event));
        }
        self.told_unread = Some(unread);
        if self.valve_closed {
            self.held.append(&mut messages);
        }
        Ok(messages)
    }
}

fn message(operator: OperatorId, attempt: AttemptId, event: &ToReader) -> ReaderMessage {
    (attempt, ToTask::Coordinator(CoordinatorEvent { operator, payload: event.encode() }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use streamkeeper_engine::Split;
    use streamkeeper_types::Generation;

    use super::*;

    /// Deals `left` splits out one by one.
    struct Dealer {
        left: u8,
    }

    impl SplitCoordinator for Dealer {
        fn reset(&mut self, _readers: u32) {}

        fn on_request(&mut self, request: SplitRequest) -> Result<Vec<Assignment>> {
            if self.left == 0 {
                return Ok(Vec::new());
            }
            self.left -= 1;
            let splits = vec![Split { id: self.left.to_string(), state: Vec::new() }];
            Ok(vec![Assignment { reader: request.reader, splits, no_more: self.left == 0 }])
        }

        fn on_report(&mut self, reader: u32, report: &[u8]) -> Result<()> {
            Err(Error::internal(format!("{reader} says {report:?}")))
        }

        fn has_unread_splits(&self) -> bool {
            self.left > 0
        }

        fn snapshot(&mut self) -> Result<Vec<u8>> {
            Ok(vec![self.left])
        }

        fn restore(&mut self, bytes: &[u8]) -> Result<()> {
            self.left = bytes[0];
            Ok(())
        }
    }

    const SOURCE: OperatorId = OperatorId(1);

    fn attempt(index: u32, number: u32) -> AttemptId {
        AttemptId { generation: Generation(1), subtask: SubtaskId { vertex: VertexId(0), index }, number }
    }

    fn coordinators(left: u8) -> Coordinators {
        let source = Source {
            name: "s".into(),
            coordinator: Box::new(Dealer { left }),
            readers: vec![attempt(0, 0), attempt(1, 0)],
            valve_closed: false,
            held: Vec::new(),
            told_unread: None,
            next_discovery: None,
        };
        Coordinators { sources: BTreeMap::from([(SOURCE, source)]), finished: BTreeMap::new() }
    }

    /// Reader, splits, no more, unread elsewhere.
    fn events(messages: &[ReaderMessage]) -> Vec<(u32, usize, bool, bool)> {
        let event = |(attempt, message): &ReaderMessage| {
            let ToTask::Coordinator(event) = message else { panic!("{message:?}") };
            let ToReader { splits, no_more, unread_elsewhere } = ToReader::decode(&event.payload).unwrap();
            (attempt.subtask.index, splits.len(), no_more, unread_elsewhere)
        };
        messages.iter().map(event).collect()
    }

    #[test]
    fn r29_what_is_assigned_behind_the_cut_leaves_behind_the_trigger() {
        let mut coordinators = coordinators(3);
        coordinators.greet().unwrap();
        assert_eq!(events(&coordinators.on_request(SOURCE, attempt(0, 0)).unwrap()), [(0, 1, false, true)]);
        coordinators.hold(SOURCE);
        assert_eq!(coordinators.snapshot(SOURCE).unwrap(), [2], "what was sent before is not in the snapshot");
        assert!(coordinators.on_request(SOURCE, attempt(1, 0)).unwrap().is_empty());
        assert_eq!(events(&coordinators.release(SOURCE)), [(1, 1, false, true)]);
        assert!(coordinators.release(SOURCE).is_empty());
    }

    #[test]
    fn reports_reach_the_coordinator_of_their_source_and_those_of_old_attempts_do_not() {
        let mut coordinators = coordinators(1);
        let error = coordinators.on_report(SOURCE, attempt(1, 0), &[7]).unwrap_err();
        assert!(error.to_string().contains("s: 1 says [7]"), "{error}");
        assert_eq!(coordinators.on_report(SOURCE, attempt(1, 9), &[7]), Ok(Vec::new()));
        assert_eq!(coordinators.on_report(OperatorId(2), attempt(1, 0), &[7]), Ok(Vec::new()));
    }

    #[test]
    fn d14_all_readers_learn_when_the_last_split_is_read() {
        let mut coordinators = coordinators(2);
        assert_eq!(events(&coordinators.greet().unwrap()), [(0, 0, false, true), (1, 0, false, true)]);
        coordinators.on_request(SOURCE, attempt(0, 0)).unwrap();
        let last = coordinators.on_request(SOURCE, attempt(1, 0)).unwrap();
        assert_eq!(events(&last), [(1, 1, true, false), (0, 0, false, false)]);
    }

    #[test]
    fn a_reader_that_asks_is_answered_at_once_even_if_there_is_nothing_for_it() {
        let mut coordinators = coordinators(0);
        coordinators.greet().unwrap();
        assert_eq!(events(&coordinators.on_request(SOURCE, attempt(1, 0)).unwrap()), [(1, 0, false, false)]);
    }

    #[test]
    fn b7_a_reader_of_an_earlier_run_is_given_nothing() {
        let mut coordinators = coordinators(2);
        let stale = AttemptId { number: 7, ..attempt(0, 0) };
        assert!(coordinators.on_request(SOURCE, stale).unwrap().is_empty());
        assert_eq!(coordinators.snapshot(SOURCE).unwrap(), [2]);
    }
}
