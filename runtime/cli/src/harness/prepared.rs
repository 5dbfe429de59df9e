//! A case made ready once for all its runs: inputs written, expected rows known.

use std::collections::BTreeMap;

use streamkeeper_sql::parse::parse_script;
use streamkeeper_types::{Code, Error, Result};
use tempfile::TempDir;

use super::{
    Case, Suite, Variant, difference,
    input::{self, Input},
    oracle::Oracle,
    run,
};

/// A case with its input files, which live as long as this value.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub suite: &'a Suite,
    pub case: &'a Case,
    pub inputs: Vec<Input>,
    expected: Vec<Expected>,
    _folder: TempDir,
}

/// Rows that a sink must have in the end, sorted.
#[derive(Debug)]
struct Expected {
    sink: String,
    by: By,
    rows: Vec<String>,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Hand,
    Oracle,
}

impl<'a> Prepared<'a> {
    /// Writes the inputs and asks the oracles.
    ///
    /// # Errors
    /// `JOB_INVALID` or `SQL_INVALID` for what the case gets wrong, with its name.
    pub fn new(suite: &'a Suite, case: &'a Case) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Error::io(Code::NotWritable, "a temporary folder", &e))?;
        let script = parse_script(&suite.sql)?;
        let inputs = input::write_all(&script, case, folder.path())?;
        let by_hand = case.output.keys().map(|sink| (sink, By::Hand, case.expected(sink)));
        let mut expected: Vec<Expected> =
            by_hand.map(|(sink, by, rows)| Expected { sink: sink.clone(), by, rows }).collect();
        if !case.oracle.is_empty() {
            let place = |error: Error| error.at(format!("case `{}`", case.name));
            let oracle = Oracle::new(&inputs).map_err(place)?;
            for (sink, query) in &case.oracle {
                let Some(table) = input::table(&script, sink) else {
                    return Err(place(Error::new(Code::JobInvalid, format!("there is no table `{sink}`"))));
                };
                let columns = table.physical_schema().fields().len();
                let rows = oracle.rows(sink, query, columns).map_err(place)?;
                expected.push(Expected { sink: sink.clone(), by: By::Oracle, rows });
            }
        }
        Ok(Self { suite, case, inputs, expected, _folder: folder })
    }

    /// Rows of all inputs together.
    #[must_use]
    pub fn total_rows(&self) -> u64 {
        self.inputs.iter().map(|input| input.rows).sum()
    }

    /// Options by which each input table is read.
    #[must_use]
    pub fn table_options(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.inputs.iter().map(|input| (input.table.clone(), input.options.clone())).collect()
    }

    /// Runs in one variant and compares every sink for which rows are expected.
    ///
    /// # Errors
    /// `TEST_FAILED` with the rows that differ; any other error of planning or running.
    pub fn check(&self, variant: &Variant) -> Result<()> {
        let folded = run(self, variant)?;
        let mut differences = Vec::new();
        for Expected { sink, by, rows } in &self.expected {
            let Some(actual) = folded.get(sink) else {
                let cause = format!("`{sink}` is no table that the job inserts into");
                return Err(Error::new(Code::JobInvalid, cause)
                    .way_out(format!("its sinks are: {}", folded.keys().cloned().collect::<Vec<_>>().join(", "))));
            };
            if actual != rows {
                let by = if *by == By::Oracle { " (oracle)" } else { "" };
                differences.push(difference(&format!("{sink}{by}"), rows, actual));
            }
        }
        if differences.is_empty() { Ok(()) } else { Err(Error::new(Code::TestFailed, differences.join("\n"))) }
    }
}
