//! Times: units, parts, rounding, Java's patterns, and the functions made of them.

mod calendar;
mod convert;
mod moment;
mod now;
mod parts;
pub(crate) mod pattern;
mod unit;
mod zone;

pub use unit::Unit;
pub use zone::parse_zone;

pub(crate) use convert::FUNCTIONS as CONVERSIONS;
pub(crate) use moment::{DAY, Moment, Moments, instants_to_array, to_array};
pub(crate) use now::FUNCTIONS as CLOCK;
pub(crate) use parts::FUNCTIONS as PARTS;
