//! `streamkeeper test`: every case of a file in every variant, with a table of what came out.

use serde::Serialize;
use streamkeeper_types::{Code, Error, Result};

use crate::{
    args::{Global, Output, Test},
    harness::{self, Suite, Variant, Verdict},
    report,
};

#[derive(Serialize)]
struct Outcome {
    case: String,
    variant: String,
    /// Empty if it passed.
    failure: Option<String>,
}

pub fn execute(arguments: &Test, global: &Global) -> Result<()> {
    let suite = Suite::read(&arguments.cases)?;
    let wanted = |name: &str| arguments.case.as_deref().is_none_or(|part| name.contains(part));
    let cases: Vec<_> = suite.cases.iter().filter(|case| wanted(&case.name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = suite.cases.iter().map(|c| c.name.as_str()).collect();
        return Err(Error::new(Code::JobInvalid, "no case has that name")
            .way_out(format!("the file has: {}", names.join("; "))));
    }
    let verdicts = harness::check_all(&suite, &cases, &Variant::all())?;
    let outcome = |Verdict { case, variant, failure }| Outcome { case, variant, failure };
    let outcomes: Vec<Outcome> = verdicts.into_iter().map(outcome).collect();
    let failed = outcomes.iter().filter(|o| o.failure.is_some()).count();
    match global.output {
        Output::Json => report::json(&outcomes)?,
        Output::Text | Output::Dot => print_table(&outcomes),
    }
    if failed > 0 {
        return Err(Error::new(Code::TestFailed, format!("{failed} of {} runs gave other rows", outcomes.len())));
    }
    Ok(())
}

fn print_table(outcomes: &[Outcome]) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for outcome in outcomes {
        let verdict = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        rows.push(vec![verdict.to_owned(), outcome.variant.clone(), outcome.case.clone()]);
    }
    report::line(&report::table(&["RESULT", "RUN", "CASE"], rows));
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            report::line(&format!("\n{} ({}):\n{failure}", outcome.case, outcome.variant));
        }
    }
}
