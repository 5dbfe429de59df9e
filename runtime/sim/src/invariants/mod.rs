//! What must hold whatever happens: one property a file.

mod exactly_once;
mod ids_only_grow;
mod liveness;
mod named_files_exist;
mod nothing_published_is_lost;
mod one_reign_publishes;

pub use exactly_once::ExactlyOnce;
pub use ids_only_grow::IdsOnlyGrow;
pub use liveness::ends_within;
pub use named_files_exist::named_files_exist;
pub use nothing_published_is_lost::NothingPublishedIsLost;
pub use one_reign_publishes::OneReignPublishes;

/// A broken promise, in words.
pub type Verdict = Result<(), String>;
