//! What is wrong with a StreamJob: where, what, and what to do; many at once.

use std::fmt;

use streamkeeper_types::{Code, Error};

/// One fault, at one place of the file or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field, as in `spec.checkpoint.interval`, or a position in the text.
    pub path: String,
    pub message: String,
    /// What to do about it.
    pub way_out: Option<String>,
}

impl Fault {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), way_out: None }
    }

    #[must_use]
    pub(crate) fn way_out(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// All faults as one error with code `JOB_INVALID`.
    #[must_use]
    pub fn into_error(faults: &[Self]) -> Error {
        match faults {
            [fault] => {
                let error = Error::new(Code::JobInvalid, fault.message.clone()).at(fault.path.clone());
                match &fault.way_out {
                    Some(way_out) => error.way_out(way_out.clone()),
                    None => error,
                }
            }
            _ => {
                let list: String = faults.iter().map(|fault| format!("\n  - {fault}")).collect();
                Error::new(Code::JobInvalid, format!("{} faults{list}", faults.len()))
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.way_out {
            Some(way_out) => write!(f, " ({way_out})"),
            None => Ok(()),
        }
    }
}
