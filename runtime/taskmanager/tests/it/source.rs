//! A source of numbered rows in splits, with a coordinator that deals the splits out one by one.

use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock},
    time::Duration,
};

use arrow::{
    array::{Int64Array, RecordBatch, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use streamkeeper_engine::{
    Assignment, Polled, SourceContext, SourceFactory, SourceReader, Split, SplitCoordinator, SplitRequest, SubtaskInfo,
};
use streamkeeper_types::Result;

use crate::world::Gate;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let ts = DataType::Timestamp(TimeUnit::Millisecond, None);
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, false),
        Field::new("value", DataType::Int64, false),
        Field::new("ts", ts, false),
    ]))
});

/// `splits` splits of `rows` rows; row `i` of split `s` is (i mod keys, s · rows + i, i).
#[derive(Clone)]
pub struct Numbers {
    pub splits: i64,
    pub rows: i64,
    pub keys: i64,
    /// Closed: readers stand still behind a third of each split until it opens.
    pub gate: Gate,
}

impl Numbers {
    pub fn total(&self) -> i64 {
        self.splits * self.rows
    }
}

impl SourceFactory for Numbers {
    fn schema(&self) -> SchemaRef {
        SCHEMA.clone()
    }

    fn coordinator(&self, _parallelism: u32) -> Result<Box<dyn SplitCoordinator>> {
        Ok(Box::new(Dealer { left: (0..self.splits).collect() }))
    }

    fn reader(&self, _subtask: &SubtaskInfo, context: SourceContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader { numbers: self.clone(), batch: context.batch_rows, open: VecDeque::new() }))
    }
}

struct Dealer {
    left: VecDeque<i64>,
}

fn split(number: i64, position: i64) -> Split {
    Split { id: number.to_string(), state: [number.to_be_bytes(), position.to_be_bytes()].concat() }
}

impl SplitCoordinator for Dealer {
    fn reset(&mut self, _readers: u32) {}

    fn on_request(&mut self, request: SplitRequest) -> Result<Vec<Assignment>> {
        let splits: Vec<Split> = self.left.pop_front().into_iter().map(|number| split(number, 0)).collect();
        Ok(vec![Assignment { reader: request.reader, no_more: splits.is_empty(), splits }])
    }

    fn has_unread_splits(&self) -> bool {
        !self.left.is_empty()
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        Ok(self.left.iter().flat_map(|number| number.to_be_bytes()).collect())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.left = bytes.chunks(8).map(|number| i64::from_be_bytes(number.try_into().unwrap())).collect();
        Ok(())
    }
}

struct Reader {
    numbers: Numbers,
    batch: usize,
    /// (split, position)
    open: VecDeque<(i64, i64)>,
}

impl SourceReader for Reader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        let number = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().unwrap());
        self.open.extend(splits.iter().map(|s| (number(&s.state[..8]), number(&s.state[8..]))));
        Ok(())
    }

    fn poll(&mut self) -> Result<Polled> {
        let Some((split, position)) = self.open.front_mut() else { return Ok(Polled::NeedSplits) };
        if *position == self.numbers.rows {
            let id = Arc::from(split.to_string());
            self.open.pop_front();
            return Ok(Polled::SplitFinished(id));
        }
        if *position > self.numbers.rows / 3 && !self.numbers.gate.is_open() {
            return Ok(Polled::Wait(Duration::from_millis(1)));
        }
        let end = (*position + i64::try_from(self.batch).unwrap()).min(self.numbers.rows);
        let rows = *position..end;
        let offset = *split * self.numbers.rows;
        let keys = self.numbers.keys;
        let batch = RecordBatch::try_new(
            SCHEMA.clone(),
            vec![
                Arc::new(Int64Array::from_iter_values(rows.clone().map(|i| i % keys))),
                Arc::new(Int64Array::from_iter_values(rows.clone().map(|i| offset + i))),
                Arc::new(TimestampMillisecondArray::from_iter_values(rows)),
            ],
        );
        *position = end;
        Ok(Polled::Batch { batch: batch.unwrap(), split: Arc::from(split.to_string()) })
    }

    fn snapshot(&self) -> Vec<Split> {
        self.open.iter().map(|(number, position)| split(*number, *position)).collect()
    }
}
