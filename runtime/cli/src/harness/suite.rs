//! A test file: a job, and cases of input lines and expected rows.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use streamkeeper_types::{Code, Error, Result};

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

/// One case: lines for each source, rows for each sink that is looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// Parallelism that every run begins with, whatever its variant; restores change it all the same. For cases with
    /// late rows: at the very start of a job a reader without a split may hold the watermark back for a moment.
    #[serde(default)]
    pub parallelism: Option<u32>,
    /// Lines in the table's own format.
    #[serde(default)]
    pub input: BTreeMap<String, Vec<String>>,
    /// Rows as CSV in any order; NULL is written `NULL`.
    #[serde(default)]
    pub output: BTreeMap<String, String>,
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
            if case.output.is_empty() {
                let cause = format!("case `{}` expects nothing", case.name);
                return Err(fail(cause).way_out("give `output` for at least one sink; an empty text means no row"));
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
