//! All cases in all variants, several runs at a time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use streamkeeper_types::{Code, Error, Result};

use super::{Case, Prepared, Suite, Variant};

/// A run mostly waits, for threads to start and files to be synced: more of them than cores go on together.
const RUNS_AT_ONCE: usize = 6;

/// How one case went in one variant.
#[derive(Debug)]
pub struct Verdict {
    pub case: String,
    pub variant: String,
    /// The rows that differ; `None` if the case passed.
    pub failure: Option<String>,
}

/// Runs the cases in the variants. Verdicts come case by case, in the order of the variants.
///
/// # Errors
/// The first error that is no difference of rows, with the case and variant: the job or the case is wrong.
pub fn check_all(suite: &Suite, cases: &[&Case], variants: &[Variant]) -> Result<Vec<Verdict>> {
    let prepared = cases.iter().map(|case| Prepared::new(suite, case)).collect::<Result<Vec<_>>>()?;
    let runs: Vec<(&Prepared, &Variant)> =
        prepared.iter().flat_map(|case| variants.iter().map(move |variant| (case, variant))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let taken = taken.take_while(|index| *index < runs.len());
        taken.map(|index| (index, runs[index].0.check(runs[index].1))).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (0..RUNS_AT_ONCE.min(runs.len())).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join().map_err(|_| Error::internal("a run panicked")));
        done.collect::<Result<Vec<_>>>()
    })?
    .concat();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(index, result)| verdict(runs[index], result)).collect()
}

fn verdict((case, variant): (&Prepared, &Variant), result: Result<()>) -> Result<Verdict> {
    let (case, variant) = (case.case.name.clone(), variant.to_string());
    match result {
        Ok(()) => Ok(Verdict { case, variant, failure: None }),
        Err(error) if error.code == Code::TestFailed => Ok(Verdict { case, variant, failure: Some(error.cause) }),
        Err(error) => Err(error.at(format!("case `{case}`, {variant}"))),
    }
}
