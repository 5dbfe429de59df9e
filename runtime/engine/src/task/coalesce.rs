//! Joins small batches on the receiving side, so that a fan-out to many subtasks does not make every batch tiny.
//!
//! What is held back leaves at the target size, when nothing else can be read, after the latency bound, or before any
//! control event that the operators see.

use std::time::{Duration, Instant};

use arrow::{array::RecordBatch, compute::concat_batches};
use streamkeeper_types::{Code, Result, ResultExt};

#[derive(Debug, Default)]
struct Held {
    batches: Vec<RecordBatch>,
    rows: usize,
}

/// Held batches of each logical input.
#[derive(Debug)]
pub(super) struct Coalescer {
    inputs: Vec<Held>,
    target_rows: usize,
    latency: Duration,
    since: Option<Instant>,
}

impl Coalescer {
    pub(super) fn new(inputs: usize, target_rows: usize, latency: Duration) -> Self {
        Self { inputs: (0..inputs).map(|_| Held::default()).collect(), target_rows, latency, since: None }
    }

    /// Takes a batch; gives back what is to be processed now, if the input reached the target.
    pub(super) fn push(&mut self, input: usize, batch: RecordBatch, now: Instant) -> Result<Option<RecordBatch>> {
        let held = &mut self.inputs[input];
        if held.batches.is_empty() && batch.num_rows() >= self.target_rows {
            return Ok(Some(batch));
        }
        held.rows += batch.num_rows();
        held.batches.push(batch);
        if held.rows >= self.target_rows {
            return held.take();
        }
        self.since.get_or_insert(now);
        Ok(None)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inputs.iter().all(|held| held.batches.is_empty())
    }

    /// Whether something was held back for too long.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now - since >= self.latency)
    }

    /// The next held rows of any input; `None` when nothing is left.
    pub(super) fn pop(&mut self) -> Result<Option<(usize, RecordBatch)>> {
        for (input, held) in self.inputs.iter_mut().enumerate() {
            if let Some(batch) = held.take()? {
                return Ok(Some((input, batch)));
            }
        }
        self.since = None;
        Ok(None)
    }
}

impl Held {
    fn take(&mut self) -> Result<Option<RecordBatch>> {
        self.rows = 0;
        if self.batches.len() < 2 {
            return Ok(self.batches.pop());
        }
        let joined = concat_batches(self.batches[0].schema_ref(), &self.batches);
        self.batches.clear();
        Ok(Some(joined.or_code(Code::Internal, || "joining small batches".into())?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::{
        array::{AsArray, Int64Array},
        datatypes::{DataType, Field, Int64Type, Schema},
    };

    use super::*;

    fn batch(values: std::ops::Range<i64>) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()
    }

    fn values(batch: &RecordBatch) -> Vec<i64> {
        batch.column(0).as_primitive::<Int64Type>().values().to_vec()
    }

    #[test]
    fn small_batches_leave_together_and_in_order_at_the_target() {
        let mut coalescer = Coalescer::new(1, 5, Duration::from_millis(10));
        let now = Instant::now();
        assert!(coalescer.push(0, batch(0..2), now).unwrap().is_none());
        assert!(coalescer.push(0, batch(2..4), now).unwrap().is_none());
        assert_eq!(values(&coalescer.push(0, batch(4..6), now).unwrap().unwrap()), [0, 1, 2, 3, 4, 5]);
        assert!(coalescer.is_empty());
        assert_eq!(coalescer.push(0, batch(0..7), now).unwrap().unwrap().num_rows(), 7, "a large batch is not held");
    }

    #[test]
    fn held_rows_are_due_after_the_latency_bound_and_inputs_stay_apart() {
        let mut coalescer = Coalescer::new(2, 100, Duration::from_millis(10));
        let now = Instant::now();
        coalescer.push(1, batch(0..2), now).unwrap();
        coalescer.push(0, batch(5..6), now).unwrap();
        assert!(!coalescer.is_due(now + Duration::from_millis(9)));
        assert!(coalescer.is_due(now + Duration::from_millis(10)));
        let (input, first) = coalescer.pop().unwrap().unwrap();
        assert_eq!((input, values(&first)), (0, vec![5]));
        assert_eq!(coalescer.pop().unwrap().unwrap().0, 1);
        assert!(coalescer.pop().unwrap().is_none());
        assert!(!coalescer.is_due(now + Duration::from_secs(1)));
    }
}
