//! `streamkeeper plan`: the dataflow of a StreamJob as a tree, JSON or DOT.

use streamkeeper_sql::explain::Format;
use streamkeeper_types::Result;

use crate::{
    args::{Global, Output, Plan},
    job_file::JobFile,
    report,
};

pub fn execute(arguments: &Plan, global: &Global) -> Result<()> {
    let plan = JobFile::read(&arguments.job)?.plan()?;
    let format = match global.output {
        Output::Text => Format::Tree,
        Output::Json => Format::Json,
        Output::Dot => Format::Dot,
    };
    report::line(plan.explain(format).trim_end());
    Ok(())
}
