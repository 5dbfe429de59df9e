//! What must hold whatever happens: one property a file.

mod exactly_once;
mod fenced_changes_nothing;
mod generations_only_grow;
mod ids_only_grow;
mod liveness;
mod named_files_exist;
mod nothing_published_is_lost;
mod one_reign_publishes;
mod slots_suffice;

pub use exactly_once::ExactlyOnce;
pub use fenced_changes_nothing::FencedChangesNothing;
pub use generations_only_grow::GenerationsOnlyGrow;
pub use ids_only_grow::IdsOnlyGrow;
pub use liveness::{ends_in_time, ends_within};
pub use named_files_exist::named_files_exist;
pub use nothing_published_is_lost::NothingPublishedIsLost;
pub use one_reign_publishes::OneReignPublishes;
pub use slots_suffice::slots_suffice;

/// A broken promise, in words.
pub type Verdict = Result<(), String>;
