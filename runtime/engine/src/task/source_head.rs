//! The source at the head of a chain: its reader, and its splits as operator state.

use std::{collections::BTreeMap, sync::Arc};

use arrow::array::RecordBatch;
use streamkeeper_protocol::{Barrier, SourceProgress, SubtaskMetrics};
use streamkeeper_types::{
    CheckpointId, OperatorId, Result, Watermark,
    snapshot::{ListMode, ListState},
};

use super::source_watermarks::SourceWatermarks;
use crate::{
    OperatorMetrics, Polled, RestoredLists, SourceReader, Split, SubtaskInfo,
    source_events::{SPLITS, SplitItem, decode_split, encode_split},
};

/// Splits with their positions.
/// [`SourceReader::extra_state`].
const EXTRA: &str = "extra";

pub(super) type Prelude = Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>;

pub(super) struct SourceHead {
    operator: OperatorId,
    /// For messages.
    name: String,
    /// `None`: the source had finished before the restore and holds nothing that is still to be committed (F3).
    reader: Option<Box<dyn SourceReader>>,
    prelude: Option<Prelude>,
    metrics: Arc<OperatorMetrics>,
    has_splits: bool,
    pub watermarks: Option<SourceWatermarks>,
}

impl SourceHead {
    pub(super) fn new(
        info: &SubtaskInfo,
        reader: Option<Box<dyn SourceReader>>,
        prelude: Option<Prelude>,
        metrics: Arc<OperatorMetrics>,
        watermarks: Option<SourceWatermarks>,
    ) -> Self {
        Self {
            operator: info.operator,
            name: info.name.clone(),
            reader,
            prelude,
            metrics,
            has_splits: false,
            watermarks,
        }
    }

    pub(super) fn operator(&self) -> OperatorId {
        self.operator
    }

    /// For messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Puts restored state in place. A split goes on with its own watermark, so that a row which was late before a
    /// failure is late behind it too.
    pub(super) fn restore(&mut self, restored: &RestoredLists) -> Result<()> {
        let Some(reader) = self.reader.as_mut() else { return Ok(()) };
        if restored.from.is_some() {
            reader.restore_extra(restored.items(EXTRA))?;
        }
        let mut splits = Vec::new();
        for item in restored.items(SPLITS) {
            let SplitItem { split, watermark } = decode_split(item)?;
            if let Some(watermarks) = &mut self.watermarks {
                watermarks.add_split(Arc::from(split.id.as_str()), watermark);
            }
            splits.push(split);
        }
        self.has_splits = !splits.is_empty();
        if self.has_splits { reader.add_splits(splits) } else { Ok(()) }
    }

    /// Whether the reader was ever given a split, at a restore or since.
    pub(super) fn has_splits(&self) -> bool {
        self.has_splits
    }

    pub(super) fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        self.has_splits = true;
        let name = &self.name;
        self.reader.as_mut().map_or(Ok(()), |reader| reader.add_splits(splits).map_err(|e| e.at(name.clone())))
    }

    pub(super) fn poll(&mut self) -> Result<Polled> {
        let Some(reader) = self.reader.as_mut() else { return Ok(Polled::NeedSplits) };
        let polled = match (reader.poll(), &self.prelude) {
            (Ok(Polled::Batch { batch, split }), Some(prelude)) => {
                prelude(batch).map(|batch| Polled::Batch { batch, split })
            }
            (polled, _) => polled,
        };
        polled.map_err(|e| e.at(self.name.clone()))
    }

    pub(super) fn report(&mut self) -> Option<Vec<u8>> {
        self.reader.as_mut()?.report()
    }

    pub(super) fn before_barrier(&mut self, barrier: &Barrier) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| reader.before_barrier(barrier))
    }

    pub(super) fn checkpoint_completed(&mut self, id: CheckpointId) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| reader.checkpoint_completed(id))
    }

    pub(super) fn snapshot_lists(&self) -> BTreeMap<String, ListState> {
        let Some(reader) = &self.reader else { return BTreeMap::new() };
        let list = |items| ListState { mode: ListMode::Split, items };
        let item = |split: Split| {
            let watermark = self.watermarks.as_ref().map_or(Watermark::MIN, |watermarks| watermarks.of(&split.id));
            encode_split(&SplitItem { split, watermark })
        };
        let splits = reader.snapshot().into_iter().map(item).collect();
        BTreeMap::from([(SPLITS.to_owned(), list(splits)), (EXTRA.to_owned(), list(reader.extra_state()))])
    }

    pub(super) fn fill_metrics(&self, metrics: &mut SubtaskMetrics) {
        metrics.bad_records += self.metrics.bad();
        metrics.late_records += self.metrics.late();
        if let Some(reader) = &self.reader {
            let (read_bytes, total_bytes) = reader.progress();
            metrics.bytes_in = read_bytes;
            metrics.source = Some(SourceProgress { read_bytes, total_bytes });
        }
    }
}

/// Whether a finished source still has to be made, to commit what its snapshot holds (R17).
pub(super) fn holds_extra(restored: &RestoredLists) -> bool {
    !restored.items(EXTRA).is_empty()
}
