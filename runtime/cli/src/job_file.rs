//! A StreamJob read from a file, validated, with everything that running it on this machine needs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use chrono_tz::Tz;
use streamkeeper_api::{Fault, ObjectName, ProgramSource, ValidatedJob, load, unsupported, validate};
use streamkeeper_sql::plan::{Plan, PlanOptions, plan_script};
use streamkeeper_types::{Code, Error, Result};

/// Folder beside the file in which a laptop keeps state, unless told otherwise.
pub const LOCAL_STORAGE: &str = ".streamkeeper";

/// A job that can be planned.
#[derive(Debug)]
pub struct JobFile {
    pub path: PathBuf,
    /// What stands in it.
    pub text: String,
    pub job: ValidatedJob,
    pub sql: String,
    /// Objects of the file that only a cluster has a use for.
    pub aside: Vec<ObjectName>,
}

impl JobFile {
    /// Reads and validates.
    ///
    /// # Errors
    /// `FILE_UNREADABLE`, or `JOB_INVALID` with every fault of the failing step.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(path, read_text(path)?)
    }

    /// As [`JobFile::read`], of text that was read from `path`, maybe by another process.
    ///
    /// # Errors
    /// `JOB_INVALID` with every fault of the failing step.
    pub fn parse(path: &Path, text: String) -> Result<Self> {
        let place = path.display().to_string();
        let fail = |faults: &[Fault]| Fault::into_error(faults).at(place.clone());
        let manifest = load(&text).map_err(|faults| fail(&faults))?;
        let job = manifest.job(None).map_err(|fault| fail(&[fault]))?;
        let refused = unsupported(&job.spec);
        if !refused.is_empty() {
            return Err(fail(&refused));
        }
        let validated = validate(job, &manifest.config_maps).map_err(|faults| fail(&faults))?;
        let ProgramSource::Sql(sql) = &validated.program else {
            return Err(Error::new(Code::JobInvalid, "the job is a program image, which only a cluster can run")
                .way_out("give the job as `sql`")
                .at(place));
        };
        let sql = sql.clone();
        Ok(Self { path: path.to_path_buf(), text, job: validated, sql, aside: manifest.aside })
    }

    /// The job's dataflow.
    ///
    /// # Errors
    /// Those of [`plan_script`], with the file's name.
    pub fn plan(&self) -> Result<Plan> {
        let options = PlanOptions {
            job: format!("{}/{}", self.job.namespace, self.job.name),
            base_dir: self.base_dir(),
            zone: Tz::UTC,
            config: self.sql_settings(),
            table_options: BTreeMap::new(),
        };
        plan_script(&self.sql, &options).map_err(|error| self.place(error))
    }

    /// Lines and columns are those of the SQL, which begins somewhere within the file.
    fn place(&self, error: Error) -> Error {
        let in_text = error.place.iter().any(|place| place.starts_with("line "));
        let error = if in_text { error.at("spec.sql") } else { error };
        error.at(self.path.display().to_string())
    }

    /// Options of the job's `config` that SET could make too.
    fn sql_settings(&self) -> BTreeMap<String, String> {
        let settings = self.job.config.set().filter(|(key, _)| key.starts_with("table.") || key.starts_with("window."));
        settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Folder from which relative paths in the job resolve.
    #[must_use]
    pub fn base_dir(&self) -> PathBuf {
        base_dir(&self.path)
    }
}

/// The folder of a file, as an absolute path where the file exists.
#[must_use]
pub fn base_dir(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    absolute.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A text file as UTF-8.
///
/// # Errors
/// `FILE_UNREADABLE` with the path and the cause.
pub fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Error::new(Code::FileUnreadable, format!("{}: {error}", path.display()))
            .way_out("name an existing, readable text file")
    })
}
