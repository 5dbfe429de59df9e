//! Keep first by processing time: state holds only which keys were seen.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch, UInt32Array},
    compute::take,
};
use streamkeeper_engine::{Operator, OperatorContext, Output};
use streamkeeper_state::{KeyEncoder, KeyRows, Missing, Slot};
use streamkeeper_types::{Code, Result, ResultExt};

use super::{KEPT, Plan};
use crate::{changelog, state::table};

pub(super) struct KeepFirst {
    plan: Arc<Plan>,
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
}

impl KeepFirst {
    pub(super) fn new(plan: Arc<Plan>, encoder: KeyEncoder) -> Self {
        Self { plan, encoder, keys: KeyRows::new(), slots: Vec::new() }
    }
}

impl Operator for KeepFirst {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        self.encoder.encode(&self.plan.keys.of(&batch), batch.num_rows(), &mut self.keys)?;
        let kept = table(context, KEPT)?;
        kept.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        let mut firsts = Vec::new();
        for (row, slot) in (0_u32..).zip(&self.slots) {
            if !kept.exists(*slot) {
                kept.mark_dirty(*slot);
                firsts.push(row);
            }
        }
        let rows = firsts.len();
        if rows == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = if rows == batch.num_rows() {
            batch.columns().to_vec()
        } else {
            let firsts = UInt32Array::from(firsts);
            let taken = batch.columns().iter().map(|column| take(column, &firsts, None)).collect::<Result<_, _>>();
            taken.or_code(Code::Internal, || "first rows".to_owned())?
        };
        output.emit(changelog::batch(&self.plan.output, self.plan.numbered(columns, rows))?)
    }
}
