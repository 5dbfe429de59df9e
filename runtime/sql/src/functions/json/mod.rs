//! JSON_VALUE, JSON_QUERY, JSON_EXISTS and IS JSON.

mod functions;
mod path;

pub(crate) use functions::FUNCTIONS;
