//! Keep last: state holds the latest row of each key, and each newer one updates it at once.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, DynComparator, RecordBatch, make_comparator},
    compute::{SortOptions, interleave},
};
use streamkeeper_engine::{Operator, OperatorContext, Output};
use streamkeeper_state::{KeyEncoder, KeyRows, Missing, Slot, Table};
use streamkeeper_types::{Code, Millis, Result, ResultExt, RowKind};

use super::{KEPT, Plan};
use crate::{
    changelog,
    latest::Latest,
    state::table,
    time::{TimeOrder, read_millis, read_millis_of_any},
};

pub(super) struct KeepLast {
    plan: Arc<Plan>,
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
    latest: Latest,
}

/// A row: its source for `interleave`, and its number there.
type Place = (usize, usize);

/// State's rows before the batch, one for each row of the batch by its key.
const STATE: usize = 0;
const BATCH: usize = 1;

impl KeepLast {
    pub(super) fn new(plan: Arc<Plan>, encoder: KeyEncoder) -> Self {
        Self { plan, encoder, keys: KeyRows::new(), slots: Vec::new(), latest: Latest::default() }
    }
}

impl Operator for KeepLast {
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
        let before = (0..batch.num_columns()).map(|c| kept.gather(c, &self.slots)).collect::<Result<Vec<_>>>()?;
        let order = Order::new(&self.plan, &batch, &before)?;
        let (picks, kinds) = self.changes(&order, kept);
        self.store(&batch, kept)?;
        if picks.is_empty() {
            return Ok(());
        }
        let columns = before.iter().zip(batch.columns()).map(|(before, now)| interleave(&[before, now], &picks));
        let columns = columns.collect::<Result<Vec<_>, _>>().or_code(Code::Internal, || "latest rows".to_owned())?;
        let columns = self.plan.numbered(columns, picks.len());
        output.emit(changelog::updating_batch(&self.plan.output, columns, kinds)?)
    }
}

impl KeepLast {
    /// Rows of the changelog, with their kinds.
    fn changes(&mut self, order: &Order, kept: &Table) -> (Vec<Place>, Vec<i8>) {
        self.latest.begin();
        let (mut picks, mut kinds) = (Vec::new(), Vec::new());
        for (row, slot) in (0_u32..).zip(&self.slots) {
            let place = (BATCH, row as usize);
            let rival = match self.latest.row(*slot) {
                Some(rival) => Some((BATCH, rival as usize)),
                None => kept.exists(*slot).then_some((STATE, row as usize)),
            };
            if rival.is_some_and(|rival| order.is_older(row as usize, rival)) {
                continue;
            }
            self.latest.replace(*slot, row);
            match rival {
                None => {
                    picks.push(place);
                    kinds.push(RowKind::Insert.code());
                }
                Some(rival) if order.is_silent_repeat(row as usize, rival) => {}
                Some(rival) => {
                    picks.extend([rival, place]);
                    kinds.extend([RowKind::UpdateBefore.code(), RowKind::UpdateAfter.code()]);
                }
            }
        }
        (picks, kinds)
    }

    /// Writes the latest rows.
    fn store(&self, batch: &RecordBatch, kept: &mut Table) -> Result<()> {
        let (slots, rows): (Vec<Slot>, Vec<u32>) = self.latest.rows().unzip();
        for (index, column) in batch.columns().iter().enumerate() {
            kept.scatter(index, column, &rows, &slots)?;
        }
        slots.iter().for_each(|slot| kept.mark_dirty(*slot));
        Ok(())
    }
}

/// How rows of a batch compare with the rows before them.
enum Order {
    /// Later is newer; equal rows are told apart by all columns.
    Arrival {
        against_state: Vec<DynComparator>,
        against_batch: Vec<DynComparator>,
    },
    /// As arrival, but repeats are put out, so that state with a TTL further down is used.
    ArrivalWithTtl,
    Rowtime {
        before: Vec<Millis>,
        batch: Vec<Millis>,
    },
}

impl Order {
    fn new(plan: &Plan, batch: &RecordBatch, before: &[ArrayRef]) -> Result<Self> {
        if let TimeOrder::Rowtime(column) = plan.order {
            let (mut times, mut times_before) = (Vec::new(), Vec::new());
            read_millis(batch.column(column), &mut times)?;
            read_millis_of_any(&before[column], &mut times_before)?;
            return Ok(Self::Rowtime { before: times_before, batch: times });
        }
        if plan.has_ttl {
            return Ok(Self::ArrivalWithTtl);
        }
        let comparators = |others: &[ArrayRef]| {
            let pairs = batch.columns().iter().zip(others);
            let compare = pairs.map(|(a, b)| make_comparator(a, b, SortOptions::default()));
            compare.collect::<Result<Vec<_>, _>>().or_code(Code::Internal, || "latest rows".to_owned())
        };
        Ok(Self::Arrival { against_state: comparators(before)?, against_batch: comparators(batch.columns())? })
    }

    fn is_older(&self, row: usize, (source, rival): Place) -> bool {
        match self {
            Self::Rowtime { before, batch } => batch[row] < if source == STATE { before[rival] } else { batch[rival] },
            Self::Arrival { .. } | Self::ArrivalWithTtl => false,
        }
    }

    /// Whether a newer row changes nothing and is not put out.
    fn is_silent_repeat(&self, row: usize, (source, rival): Place) -> bool {
        match self {
            Self::Arrival { against_state, against_batch } => {
                let compare = if source == STATE { against_state } else { against_batch };
                compare.iter().all(|compare| compare(row, rival).is_eq())
            }
            Self::ArrivalWithTtl | Self::Rowtime { .. } => false,
        }
    }
}
