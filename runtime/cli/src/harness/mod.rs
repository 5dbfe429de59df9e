//! Runs a case of a test file: straight, or with crashes at known records and restores in other shapes.
//!
//! Sources read the case's lines through a [`Gate`](gate::Gate); sinks write to a transactional store in memory that
//! outlives the job. Everything between them is the engine as it runs anywhere.

mod fold;
mod gate;
mod memory_sink;
mod run;
mod suite;
mod variant;

use std::collections::BTreeMap;

pub use fold::fold;
pub use run::run;
use streamkeeper_types::{Code, Error, Result};
pub use suite::{Case, Suite};
pub use variant::{Crash, ResumeFrom, Variant};

/// Runs a case in one variant and compares every sink that it names.
///
/// # Errors
/// `TEST_FAILED` with the rows that differ; any other error of planning or running.
pub fn check(suite: &Suite, case: &Case, variant: &Variant) -> Result<()> {
    let folded = run(suite, case, variant)?;
    let mut differences = Vec::new();
    for sink in case.output.keys() {
        let Some(actual) = folded.get(sink) else {
            let cause = format!("`{sink}` is no table that the job inserts into");
            return Err(Error::new(Code::JobInvalid, cause)
                .way_out(format!("its sinks are: {}", folded.keys().cloned().collect::<Vec<_>>().join(", "))));
        };
        let expected = case.expected(sink);
        if *actual != expected {
            differences.push(difference(sink, &expected, actual));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(Error::new(Code::TestFailed, differences.join("\n"))) }
}

/// Rows that only one side has, as `-` expected and `+` actual.
fn difference(sink: &str, expected: &[String], actual: &[String]) -> String {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for row in actual {
        *counts.entry(row).or_default() += 1;
    }
    for row in expected {
        *counts.entry(row).or_default() -= 1;
    }
    let mut lines = vec![format!("{sink}: {} rows expected, {} came", expected.len(), actual.len())];
    for (row, count) in counts.into_iter().filter(|(_, count)| *count != 0) {
        let sign = if count < 0 { '-' } else { '+' };
        for _ in 0..count.abs() {
            lines.push(format!("  {sign} {row}"));
        }
    }
    lines.join("\n")
}
