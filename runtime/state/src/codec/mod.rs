//! Version 1 of the byte form of single values: order-preserving for keys, exact for nested values.
//!
//! Each value is `00` (NULL) or `01` and its bytes; decisions.md 10 has the forms and the vectors. A change of any
//! form is a new version.

mod kind;
mod read;
mod view;

pub(crate) use kind::{Codec, Use};
pub(crate) use read::{Decoded, decode_values, skip};
pub(crate) use view::View;
