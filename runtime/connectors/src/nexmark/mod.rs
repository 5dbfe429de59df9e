//! `nexmark`: the events of the Nexmark benchmark, one table of persons, auctions and bids.
//!
//! Event `i` depends on `i` and the options alone and is the same as that of the `nexmark` crate for the same
//! configuration, which the tests check event by event.

mod columns;
mod event;
mod random;

use std::sync::{Arc, LazyLock};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_engine::{OperatorFactory, SourceFactory};
use streamkeeper_types::{
    Error, Millis, Result,
    options::{OptionKind, OptionSpec},
};

use crate::{
    generator::{Generator, GeneratorSource, RowRange},
    registry::{Connector, SinkInput, TableDefinition},
    settings::{self, CONNECTOR, Settings, wrong_direction},
};
use event::Config;

const POSITIVE: OptionKind = OptionKind::Integer { min: 1, max: 1_000_000_000 };

static OPTIONS: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| {
    let number = |key, doc, default| OptionSpec::new(key, POSITIVE, doc).default(default);
    let own = [
        CONNECTOR,
        OptionSpec::new("events.num", OptionKind::COUNT, "Events in all; 0: the table does not end.").default("0"),
        number("first-event.rate", "Events per second of event time.", "10000"),
        OptionSpec::new("next-event.rate", POSITIVE, "Must be equal to 'first-event.rate' if it is given."),
        OptionSpec::new("base-time", OptionKind::COUNT, "Time of the first event, in milliseconds since 1970-01-01.")
            .default("1436918400000"),
        number("person.proportion", "Persons among person + auction + bid events.", "1"),
        number("auction.proportion", "Auctions among person + auction + bid events.", "3"),
        number("bid.proportion", "Bids among person + auction + bid events.", "46"),
        number("person.avg-size", "Bytes of a person on average.", "200"),
        number("auction.avg-size", "Bytes of an auction on average.", "500"),
        number("bid.avg-size", "Bytes of a bid on average.", "100"),
        number("bid.hot-ratio.auctions", "One bid of so many is for an auction that is not hot.", "2"),
        number("bid.hot-ratio.bidders", "One bid of so many is by a person who is not hot.", "4"),
        number("auction.hot-ratio.sellers", "One auction of so many is by a seller who is not hot.", "4"),
    ];
    [&own, settings::SOURCE.as_slice()].concat()
});

pub(crate) struct Nexmark;

impl Connector for Nexmark {
    fn name(&self) -> &'static str {
        "nexmark"
    }

    fn doc(&self) -> &'static str {
        "Source of the events of the Nexmark benchmark, as fast as they are taken (`scan.rate-limit` slows it down). \
         Columns: `event_type INT` (0 person, 1 auction, 2 bid), `person ROW<…>`, `auction ROW<…>`, `bid ROW<…>` as in \
         the benchmark's own CREATE TABLE."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>> {
        let settings = Settings::new(table, self)?;
        columns::check(table)?;
        let number = |key| settings.count(key).unwrap_or_default();
        let rate = number("first-event.rate");
        if settings.count("next-event.rate").is_some_and(|next| next != rate) {
            let way_out = "write the same rate for both, or leave 'next-event.rate' away";
            return Err(settings.fault("next-event.rate", "the rate cannot change", way_out));
        }
        let config = Config {
            base_time: number("base-time"),
            rate,
            person_proportion: number("person.proportion"),
            auction_proportion: number("auction.proportion"),
            bid_proportion: number("bid.proportion"),
            person_size: number("person.avg-size"),
            auction_size: number("auction.avg-size"),
            bid_size: number("bid.avg-size"),
            hot_auctions: number("bid.hot-ratio.auctions"),
            hot_bidders: number("bid.hot-ratio.bidders"),
            hot_sellers: number("auction.hot-ratio.sellers"),
        };
        let events = settings.count("events.num").filter(|events| *events > 0);
        Ok(Arc::new(GeneratorSource(Arc::new(Events { schema: Arc::clone(&table.schema), config, events }))))
    }

    fn sink(&self, table: &TableDefinition, _input: &SinkInput) -> Result<Arc<dyn OperatorFactory>> {
        Err(wrong_direction(table, self.name(), "cannot be written", "write to a 'filesystem' or 'print' table"))
    }
}

/// The table's rows as a function of their number.
struct Events {
    schema: SchemaRef,
    config: Config,
    events: Option<u64>,
}

impl Generator for Events {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self) -> Option<u64> {
        self.events
    }

    fn rows_per_second(&self) -> Option<u64> {
        None
    }

    fn batch(&self, rows: RowRange, _now: Millis) -> Result<RecordBatch> {
        let mut columns = columns::Columns::new(rows.count);
        rows.iter().for_each(|number| columns.append(&self.config, number));
        RecordBatch::try_new(Arc::clone(&self.schema), columns.finish(&self.schema)?)
            .map_err(|e| Error::internal(format!("nexmark columns: {e}")))
    }
}
