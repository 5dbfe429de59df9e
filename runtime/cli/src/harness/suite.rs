//! A test file: a job, and cases of inputs and expected rows.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use streamkeeper_types::{Code, Error, Result};

use super::Generate;
use crate::job_file::{JobFile, base_dir, read_text};

/// A test file as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    /// A StreamJob's file, relative to the test file.
    job: Option<PathBuf>,
    /// Or SQL itself.
    sql: Option<String>,
    cases: Vec<Case>,
}

/// One case: an input for each source, expected rows for each sink that is looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// Lines in the table's own format.
    #[serde(default)]
    pub input: BTreeMap<String, Vec<String>>,
    /// Or random rows, written in the table's own format.
    #[serde(default)]
    pub generate: BTreeMap<String, Generate>,
    /// Rows as CSV in any order; NULL is written `NULL`.
    #[serde(default)]
    pub output: BTreeMap<String, String>,
    /// Or a SELECT in DataFusion's dialect over the inputs, whose rows are expected. A sink may have both.
    #[serde(default)]
    pub oracle: BTreeMap<String, String>,
}

/// A test file, read and checked.
#[derive(Debug)]
pub struct Suite {
    pub sql: String,
    pub base_dir: PathBuf,
    pub cases: Vec<Case>,
}

impl Suite {
    /// # Errors
    /// `FILE_UNREADABLE`, or `JOB_INVALID` with what is wrong in the file.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let fail = |cause: String| Error::new(Code::JobInvalid, cause).at(place.clone());
        let text: Text = serde_yaml::from_str(&read_text(path)?).map_err(|e| fail(e.to_string()))?;
        let base_dir = base_dir(path);
        let (sql, base_dir) = match (text.job, text.sql) {
            (Some(job), None) => {
                let job = JobFile::read(&base_dir.join(job))?;
                (job.sql.clone(), job.base_dir())
            }
            (None, Some(sql)) => (sql, base_dir),
            _ => return Err(fail("give either `job`, a StreamJob's file, or `sql`".to_owned())),
        };
        if text.cases.is_empty() {
            return Err(fail("`cases` is empty".to_owned()));
        }
        for case in &text.cases {
            if case.output.is_empty() && case.oracle.is_empty() {
                let cause = format!("case `{}` expects nothing", case.name);
                let way_out = "give `output` or `oracle` for at least one sink; an empty `output` means no row";
                return Err(fail(cause).way_out(way_out));
            }
        }
        Ok(Self { sql, base_dir, cases: text.cases })
    }
}

impl Case {
    /// Expected rows of a sink, sorted.
    #[must_use]
    pub fn expected(&self, sink: &str) -> Vec<String> {
        let text = self.output.get(sink).map_or("", String::as_str);
        let mut rows: Vec<String> = text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect();
        rows.sort();
        rows
    }
}
