//! Nexmark events as Arrow columns: the event's type, and one ROW for each type, NULL in events of another.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, Int32Builder, Int64Builder, StringBuilder, StructArray, make_array},
    buffer::NullBuffer,
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use streamkeeper_types::{Code, Error, Result};

use super::event::{Auction, Bid, Config, Kind, Person};
use crate::registry::TableDefinition;

const TIME: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);
const LONG: DataType = DataType::Int64;
const TEXT: DataType = DataType::Utf8;

const PERSON: [(&str, DataType); 8] = [
    ("id", LONG),
    ("name", TEXT),
    ("emailAddress", TEXT),
    ("creditCard", TEXT),
    ("city", TEXT),
    ("state", TEXT),
    ("dateTime", TIME),
    ("extra", TEXT),
];
const AUCTION: [(&str, DataType); 10] = [
    ("id", LONG),
    ("itemName", TEXT),
    ("description", TEXT),
    ("initialBid", LONG),
    ("reserve", LONG),
    ("dateTime", TIME),
    ("expires", TIME),
    ("seller", LONG),
    ("category", LONG),
    ("extra", TEXT),
];
const BID: [(&str, DataType); 7] = [
    ("auction", LONG),
    ("bidder", LONG),
    ("price", LONG),
    ("channel", TEXT),
    ("url", TEXT),
    ("dateTime", TIME),
    ("extra", TEXT),
];

/// The table must have the benchmark's columns; times may also be TIMESTAMP_LTZ(3).
pub(super) fn check(table: &TableDefinition) -> Result<()> {
    let row = |name: &str, fields: &[(&str, DataType)]| {
        let fields = fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
        Field::new(name, DataType::Struct(fields.collect()), true)
    };
    let event_type = Field::new("event_type", DataType::Int32, true);
    let wanted = Schema::new(vec![event_type, row("person", &PERSON), row("auction", &AUCTION), row("bid", &BID)]);
    let fields = table.schema.fields();
    let fits = fields.len() == wanted.fields().len()
        && fields
            .iter()
            .zip(wanted.fields())
            .all(|(field, wanted)| field.name() == wanted.name() && is_same(field.data_type(), wanted.data_type()));
    if fits {
        return Ok(());
    }
    let columns = |fields: &[(&str, DataType)]| {
        let column = |(name, data_type): &(&str, DataType)| format!("`{name}` {}", sql(data_type));
        fields.iter().map(column).collect::<Vec<_>>().join(", ")
    };
    let way_out = format!(
        "write: event_type INT, person ROW<{}>, auction ROW<{}>, bid ROW<{}>",
        columns(&PERSON),
        columns(&AUCTION),
        columns(&BID)
    );
    let cause = format!("table {}: the physical columns are not those of the Nexmark benchmark", table.name);
    Err(Error::new(Code::SqlInvalid, cause).way_out(way_out))
}

fn sql(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "BIGINT",
        DataType::Utf8 => "STRING",
        _ => "TIMESTAMP(3)",
    }
}

fn is_same(ours: &DataType, wanted: &DataType) -> bool {
    match (ours, wanted) {
        (DataType::Timestamp(unit, _), DataType::Timestamp(wanted, _)) => unit == wanted,
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            fields.len() == wanted.len()
                && fields.iter().zip(wanted).all(|(field, wanted)| {
                    field.name() == wanted.name() && is_same(field.data_type(), wanted.data_type())
                })
        }
        (ours, wanted) => ours == wanted,
    }
}

/// Columns under construction.
pub(super) struct Columns {
    event_type: Int32Builder,
    person: Row<8>,
    auction: Row<10>,
    bid: Row<7>,
    /// One event, its texts reused.
    scratch: (Person, Auction, Bid),
}

/// One ROW column. Runs of NULL are counted and appended at once.
struct Row<const N: usize> {
    columns: [Builder; N],
    valid: Vec<bool>,
    nulls: usize,
}

enum Builder {
    Long(Int64Builder),
    Text(StringBuilder),
}

enum Value<'a> {
    Long(u64),
    Text(&'a str),
}

impl<const N: usize> Row<N> {
    fn new(fields: &[(&str, DataType); N], rows: usize) -> Self {
        let builder = |index: usize| match fields[index].1 {
            DataType::Utf8 => Builder::Text(StringBuilder::with_capacity(rows, 0)),
            _ => Builder::Long(Int64Builder::with_capacity(rows)),
        };
        Self { columns: std::array::from_fn(builder), valid: Vec::with_capacity(rows), nulls: 0 }
    }

    fn append_null(&mut self) {
        self.nulls += 1;
    }

    fn flush_nulls(&mut self) {
        let nulls = std::mem::take(&mut self.nulls);
        if nulls == 0 {
            return;
        }
        self.valid.resize(self.valid.len() + nulls, false);
        for column in &mut self.columns {
            match column {
                Builder::Long(builder) => builder.append_nulls(nulls),
                Builder::Text(builder) => builder.append_nulls(nulls),
            }
        }
    }

    #[inline]
    fn append(&mut self, values: [Value<'_>; N]) {
        self.flush_nulls();
        self.valid.push(true);
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, value) {
                (Builder::Long(builder), Value::Long(value)) => builder.append_value(value.cast_signed()),
                (Builder::Text(builder), Value::Text(value)) => builder.append_value(value),
                // The arrays of fields above and the calls below have the same order of types.
                (Builder::Long(builder), Value::Text(_)) => builder.append_null(),
                (Builder::Text(builder), Value::Long(_)) => builder.append_null(),
            }
        }
    }

    /// The column in its declared type.
    fn finish(mut self, declared: &DataType) -> Result<ArrayRef> {
        self.flush_nulls();
        let DataType::Struct(fields) = declared else { return Err(Error::internal("a Nexmark column that is no ROW")) };
        let columns = self.columns.into_iter().zip(fields).map(|(builder, field)| {
            let array: ArrayRef = match builder {
                Builder::Long(mut builder) => Arc::new(builder.finish()),
                Builder::Text(mut builder) => Arc::new(builder.finish()),
            };
            // Timestamps are made as the counts that they are.
            let data = array.to_data().into_builder().data_type(field.data_type().clone()).build();
            data.map(make_array).map_err(|e| Error::internal(e.to_string()))
        });
        let row =
            StructArray::try_new(fields.clone(), columns.collect::<Result<_>>()?, Some(NullBuffer::from(self.valid)));
        Ok(Arc::new(row.map_err(|e| Error::internal(e.to_string()))?))
    }
}

impl Columns {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            event_type: Int32Builder::with_capacity(rows),
            person: Row::new(&PERSON, rows),
            auction: Row::new(&AUCTION, rows),
            bid: Row::new(&BID, rows),
            scratch: Default::default(),
        }
    }

    /// Appends event `number`.
    pub(super) fn append(&mut self, config: &Config, number: u64) {
        use Value::{Long, Text};
        let (person, auction, bid) = &mut self.scratch;
        match config.kind(number) {
            Kind::Person => {
                config.person(number, person);
                let p = &*person;
                self.person.append([
                    Long(p.id),
                    Text(&p.name),
                    Text(&p.email),
                    Text(&p.credit_card),
                    Text(p.city),
                    Text(p.state),
                    Long(p.time),
                    Text(&p.extra),
                ]);
                self.event_type.append_value(0);
                self.auction.append_null();
                self.bid.append_null();
            }
            Kind::Auction => {
                config.auction(number, auction);
                let a = &*auction;
                self.auction.append([
                    Long(a.id),
                    Text(&a.item),
                    Text(&a.description),
                    Long(a.initial_bid),
                    Long(a.reserve),
                    Long(a.time),
                    Long(a.expires),
                    Long(a.seller),
                    Long(a.category),
                    Text(&a.extra),
                ]);
                self.event_type.append_value(1);
                self.person.append_null();
                self.bid.append_null();
            }
            Kind::Bid => {
                config.bid(number, bid);
                let b = &*bid;
                self.bid.append([
                    Long(b.auction),
                    Long(b.bidder),
                    Long(b.price),
                    Text(b.channel),
                    Text(b.url),
                    Long(b.time),
                    Text(&b.extra),
                ]);
                self.event_type.append_value(2);
                self.person.append_null();
                self.auction.append_null();
            }
        }
    }

    /// The four columns in the types of the table.
    pub(super) fn finish(mut self, schema: &Schema) -> Result<Vec<ArrayRef>> {
        let declared = |index: usize| schema.field(index).data_type();
        Ok(vec![
            Arc::new(self.event_type.finish()) as ArrayRef,
            self.person.finish(declared(1))?,
            self.auction.finish(declared(2))?,
            self.bid.finish(declared(3))?,
        ])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use super::*;
    use crate::{nexmark::Nexmark, registry::Connector as _};

    fn table(time: DataType) -> TableDefinition {
        let row = |name: &str, fields: &[(&str, DataType)]| {
            let field = |(name, data_type): &(&str, DataType)| {
                Field::new(*name, if data_type == &TIME { time.clone() } else { data_type.clone() }, true)
            };
            Field::new(name, DataType::Struct(fields.iter().map(field).collect()), true)
        };
        let event_type = Field::new("event_type", DataType::Int32, true);
        TableDefinition {
            name: "nexmark".to_owned(),
            job: "default/j".to_owned(),
            schema: Arc::new(Schema::new(vec![
                event_type,
                row("person", &PERSON),
                row("auction", &AUCTION),
                row("bid", &BID),
            ])),
            options: BTreeMap::from([("connector".to_owned(), "nexmark".to_owned())]),
            partitioned_by: Vec::new(),
            primary_key: Vec::new(),
            base_dir: ".".into(),
            has_watermark: true,
        }
    }

    #[test]
    fn the_benchmarks_columns_are_wanted_with_either_kind_of_timestamp() {
        assert!(Nexmark.source(&table(TIME)).is_ok());
        assert!(Nexmark.source(&table(DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())))).is_ok());
        let error = Nexmark.source(&table(DataType::Int64)).err().unwrap();
        assert!(error.way_out.unwrap().contains("bid ROW<`auction` BIGINT"));
    }

    #[test]
    fn each_event_has_exactly_one_row() {
        let table = table(TIME);
        let config = Config {
            base_time: 0,
            rate: 10_000,
            person_proportion: 1,
            auction_proportion: 3,
            bid_proportion: 46,
            person_size: 200,
            auction_size: 500,
            bid_size: 100,
            hot_auctions: 2,
            hot_bidders: 4,
            hot_sellers: 4,
        };
        let mut columns = Columns::new(100);
        (0..100).for_each(|number| columns.append(&config, number));
        let arrays = columns.finish(&table.schema).unwrap();
        let valid: Vec<usize> = arrays[1..].iter().map(|a| a.len() - a.null_count()).collect();
        assert_eq!(valid, [2, 6, 92]);
    }
}
