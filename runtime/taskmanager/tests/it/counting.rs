//! An operator that numbers the rows of each key, with keyed state: (key, value) → (key, value, count so far).

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch},
    datatypes::{DataType, Field, Int64Type, Schema, SchemaRef},
};
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_state::{KeyRows, KeySchema, Missing, Slot, TableSpec, ValueField};
use streamkeeper_types::{Code, Error, Result};

use crate::{
    mortal::Fuse,
    world::{Fault, Faults},
};

pub static COUNTED: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = ["key", "value", "count"].map(|name| Field::new(name, DataType::Int64, false));
    Arc::new(Schema::new(fields.to_vec()))
});

#[derive(Clone)]
pub struct Counting {
    pub faults: Faults,
    pub fuse: Fuse,
}

impl OperatorFactory for Counting {
    fn tables(&self) -> Vec<TableSpec> {
        let key = KeySchema::new(vec![Arc::new(Field::new("key", DataType::Int64, false))]).unwrap();
        vec![TableSpec::new("counts", key, vec![ValueField::zero("count", DataType::Int64)]).unwrap()]
    }

    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Count { counting: self.clone(), keys: KeyRows::new(), slots: Vec::new() }))
    }
}

struct Count {
    counting: Counting,
    keys: KeyRows,
    slots: Vec<Slot>,
}

impl Operator for Count {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        self.counting.fuse.step();
        match self.counting.faults.take() {
            Some(Fault::Error) => return Err(Error::new(Code::SinkFailed, "an injected failure")),
            Some(Fault::Panic) => panic!("an injected panic"),
            Some(Fault::Hang) => {
                while !self.counting.faults.resumes.is_open() {
                    std::thread::yield_now();
                }
            }
            None => {}
        }
        let state = context.state.as_mut().unwrap();
        let key: ArrayRef = batch.column(0).clone();
        state.key_encoder(0).encode(&[key], batch.num_rows(), &mut self.keys)?;
        let table = state.table_mut(0);
        table.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        let mut counts = Vec::with_capacity(batch.num_rows());
        for slot in &self.slots {
            let column = table.columns_mut()[0].as_i64_mut().unwrap();
            column.values[slot.index()] += 1;
            counts.push(column.values[slot.index()]);
            table.mark_dirty(*slot);
        }
        let columns: Vec<ArrayRef> =
            vec![batch.column(0).clone(), batch.column(1).clone(), Arc::new(Int64Array::from(counts))];
        output.emit(RecordBatch::try_new(COUNTED.clone(), columns).unwrap())
    }
}

/// Rows of a counted batch.
pub fn rows(batch: &RecordBatch) -> Vec<[i64; 3]> {
    let column = |i: usize| batch.column(i).as_primitive::<Int64Type>().values();
    (0..batch.num_rows()).map(|row| [0, 1, 2].map(|i| column(i)[row])).collect()
}
