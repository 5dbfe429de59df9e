//! Splits a batch by key group: count, one index array, one `take` over all columns, zero-copy slices.
//!
//! Measured against one `take` per partition in docs/performance.md ("Hash partitioning"): the gap grows with the
//! number of targets.

use std::sync::Arc;

use arrow::{
    array::{RecordBatch, UInt32Array},
    compute::take,
    error::ArrowError,
};
use streamkeeper_types::{KeyGroup, key_group};

/// Splits batches over the subtasks of one edge. Reuses its buffers.
#[derive(Debug)]
pub struct Partitioner {
    /// Target of each key group.
    targets: Vec<u32>,
    parallelism: usize,
    starts: Vec<usize>,
    cursors: Vec<usize>,
}

/// Rows of one target.
#[derive(Debug)]
pub struct Partitioned {
    pub target: usize,
    pub batch: RecordBatch,
}

impl Partitioner {
    #[must_use]
    pub fn new(parallelism: u32, max_parallelism: u32) -> Self {
        let targets = key_group::KeyGroupRange::all(max_parallelism)
            .iter()
            .map(|group| key_group::subtask_of(group, parallelism, max_parallelism))
            .collect();
        let parallelism = parallelism as usize;
        Self { targets, parallelism, starts: vec![0; parallelism + 1], cursors: vec![0; parallelism] }
    }

    /// Splits `batch`, row `i` of which has key group `groups[i]`. Order within a target is kept.
    ///
    /// # Errors
    /// Those of Arrow's `take`.
    pub fn split(&mut self, batch: &RecordBatch, groups: &[KeyGroup]) -> Result<Vec<Partitioned>, ArrowError> {
        debug_assert_eq!(batch.num_rows(), groups.len());
        let Some(first) = groups.first().map(|g| self.targets[usize::from(g.0)]) else { return Ok(Vec::new()) };
        if groups.iter().all(|g| self.targets[usize::from(g.0)] == first) {
            return Ok(vec![Partitioned { target: first as usize, batch: batch.clone() }]);
        }
        self.starts.fill(0);
        for group in groups {
            self.starts[self.targets[usize::from(group.0)] as usize + 1] += 1;
        }
        for target in 0..self.parallelism {
            self.starts[target + 1] += self.starts[target];
            self.cursors[target] = self.starts[target];
        }
        let mut indices = vec![0u32; groups.len()];
        for (row, group) in groups.iter().enumerate() {
            let cursor = &mut self.cursors[self.targets[usize::from(group.0)] as usize];
            indices[*cursor] = u32::try_from(row).expect("a batch has fewer than 2^32 rows");
            *cursor += 1;
        }
        let indices = UInt32Array::from(indices);
        let columns = batch.columns().iter().map(|c| take(c, &indices, None)).collect::<Result<Vec<_>, _>>()?;
        let sorted = RecordBatch::try_new(Arc::clone(batch.schema_ref()), columns)?;
        Ok((0..self.parallelism)
            .filter(|&t| self.starts[t] < self.starts[t + 1])
            .map(|t| Partitioned {
                target: t,
                batch: sorted.slice(self.starts[t], self.starts[t + 1] - self.starts[t]),
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::{
        array::{AsArray, Int64Array},
        datatypes::{DataType, Field, Int64Type, Schema},
    };
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_reaches_the_owner_of_its_key_group_in_order(
            groups in prop::collection::vec(0u16..128, 0..200),
            parallelism in 1u32..9,
        ) {
            let schema = Arc::new(Schema::new(vec![Field::new("row", DataType::Int64, false)]));
            let rows: Int64Array = (0..i64::try_from(groups.len()).unwrap()).collect();
            let batch = RecordBatch::try_new(schema, vec![Arc::new(rows)]).unwrap();
            let groups: Vec<KeyGroup> = groups.into_iter().map(KeyGroup).collect();
            let parts = Partitioner::new(parallelism, 128).split(&batch, &groups).unwrap();
            let mut seen: Vec<Vec<i64>> = vec![Vec::new(); parallelism as usize];
            for part in parts {
                seen[part.target].extend(part.batch.column(0).as_primitive::<Int64Type>().values());
            }
            let mut expected: Vec<Vec<i64>> = vec![Vec::new(); parallelism as usize];
            for (row, group) in groups.iter().enumerate() {
                expected[key_group::subtask_of(*group, parallelism, 128) as usize].push(i64::try_from(row).unwrap());
            }
            prop_assert_eq!(seen, expected);
        }
    }
}
