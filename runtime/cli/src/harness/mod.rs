//! Runs the cases of a test file: straight, or with crashes at known records and restores in other shapes.
//!
//! Sources read the case's input through a [`Gate`](gate::Gate); sinks write to a transactional store in memory that
//! outlives the job. Everything between them is the engine as it runs anywhere. Expected rows are written by hand, or
//! computed by stock DataFusion ([`oracle`]) over inputs that may be generated ([`generate`]).

mod check;
mod difference;
mod fold;
mod format;
mod gate;
mod generate;
mod input;
mod memory_sink;
mod oracle;
mod prepared;
mod run;
mod suite;
mod variant;

pub use check::{Verdict, check_all};
use difference::difference;
use fold::fold;
pub use generate::Generate;
use prepared::Prepared;
use run::run;
pub use suite::{Case, Suite};
pub use variant::{Crash, ResumeFrom, Variant};
