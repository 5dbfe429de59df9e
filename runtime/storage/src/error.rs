//! What can go wrong with one call, by what the caller must do about it.

use streamkeeper_types::{Code, Error};

/// Shorthand for results with [`StorageError`].
pub type StorageResult<T> = Result<T, StorageError>;

/// An error of one storage call. The three kinds ask for three reactions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The write may or may not have happened. Read back to learn which; until then delete nothing (R24).
    #[error("outcome unknown: {0}")]
    Unknown(Error),
    /// No object has this path.
    #[error("`{path}` does not exist")]
    NotFound { path: String },
    /// The call had no effect.
    #[error("{0}")]
    Other(Error),
}

impl StorageError {
    pub(crate) fn not_found(path: &str) -> Self {
        Self::NotFound { path: path.to_owned() }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unknown(error) | StorageError::Other(error) => error,
            StorageError::NotFound { path } => Self::new(Code::Storage, format!("`{path}` does not exist")),
        }
    }
}
