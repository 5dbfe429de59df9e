//! `json`: one object a line.

mod decode;
mod encode;
mod text_values;

use arrow::datatypes::SchemaRef;
use streamkeeper_types::{
    Result,
    options::{OptionKind, OptionSpec},
};

pub(crate) use encode::write_string;

use super::{Decoder, Encoder};
use crate::settings::Settings;

pub(super) static OPTIONS: [OptionSpec; 2] = [
    OptionSpec::new(
        "json.timestamp-format.standard",
        OptionKind::OneOf(&["SQL", "ISO-8601"]),
        "How timestamps are written: `2026-01-01 10:00:00.5` or `2026-01-01T10:00:00.5`. Both are read.",
    )
    .default("SQL"),
    OptionSpec::new(
        "json.encode.ignore-null-fields",
        OptionKind::Boolean,
        "Whether members that are NULL are left out when writing.",
    )
    .default("false"),
];

/// The format with its options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json {
    timestamps: Timestamps,
    nulls: Nulls,
}

/// What stands between date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timestamps {
    Sql,
    Iso8601,
}

/// What becomes of NULL members on writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Written,
    LeftOut,
}

impl Json {
    pub(super) fn new(settings: Settings<'_>) -> Self {
        Self {
            timestamps: match settings.text("json.timestamp-format.standard") {
                Some("ISO-8601") => Timestamps::Iso8601,
                _ => Timestamps::Sql,
            },
            nulls: if settings.flag("json.encode.ignore-null-fields") { Nulls::LeftOut } else { Nulls::Written },
        }
    }

    pub(super) fn decoder(self, schema: &SchemaRef) -> Result<Box<dyn Decoder>> {
        Ok(Box::new(decode::JsonDecoder::new(schema)?))
    }

    pub(super) fn encoder(self, schema: &SchemaRef) -> Box<dyn Encoder> {
        Box::new(encode::JsonEncoder::new(self, schema))
    }
}
