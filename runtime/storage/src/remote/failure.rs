//! What a try may end with, by what may be done next.

use std::time::Duration;

use streamkeeper_types::{Code, Error};

use crate::StorageError;

/// Why one try did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// No such object; for a write, no such bucket.
    NotFound(Error),
    /// The condition was judged: an object has this path.
    Exists(Error),
    /// Another write to the path was under way. Which of them succeeded must be read.
    Conflict(Error),
    /// The object is no longer the one of which a part was read.
    Changed(Error),
    /// Surely without effect, and another try would end the same.
    Refused(Error),
    /// Surely without effect; another try may succeed.
    Busy(Error),
    /// Nobody knows whether it had an effect, or will have one.
    Unclear(Error),
}

impl Failure {
    pub(super) fn no_answer(limit: Duration) -> Self {
        Self::Unclear(Error::new(Code::Storage, format!("no answer within {:.1} s", limit.as_secs_f64())))
    }

    pub(super) fn error(&self) -> &Error {
        let (Self::NotFound(error)
        | Self::Exists(error)
        | Self::Conflict(error)
        | Self::Changed(error)
        | Self::Refused(error)
        | Self::Busy(error)
        | Self::Unclear(error)) = self;
        error
    }

    fn into_error(self) -> Error {
        let (Self::NotFound(error)
        | Self::Exists(error)
        | Self::Conflict(error)
        | Self::Changed(error)
        | Self::Refused(error)
        | Self::Busy(error)
        | Self::Unclear(error)) = self;
        error
    }

    /// For a step that touches nothing that callers see: whatever happened, the object was not changed.
    pub(super) fn without_effect(self) -> Self {
        match self {
            Self::Unclear(error) | Self::Changed(error) | Self::Conflict(error) => Self::Busy(error),
            other => other,
        }
    }

    /// As the answer of a write to `place`.
    pub(super) fn of_write(self, place: &str) -> StorageError {
        match self {
            Self::Unclear(error) => StorageError::Unknown(error.at(place)),
            other => StorageError::Other(other.into_error().at(place)),
        }
    }

    /// As the answer of a listing of `place`. A folder that does not exist is empty, so what is not found is the bucket.
    pub(super) fn of_list(self, place: &str) -> StorageError {
        StorageError::Other(self.into_error().at(place))
    }

    /// As the answer of a read of `path` at `place`.
    pub(super) fn of_read(self, path: &str, place: &str) -> StorageError {
        match self {
            Self::NotFound(_) => StorageError::not_found(path),
            other => StorageError::Other(other.into_error().at(place)),
        }
    }
}

/// The first line of a foreign error's text, cut to what a person reads; addresses lose what follows their `?`, since
/// signatures stand there.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.lines().next().unwrap_or_default();
    let words = line.split(' ').map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    let line: String = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_loses_signatures_stack_traces_and_length() {
        assert_eq!(
            short("GET https://a.blob.core.windows.net/c?sig=SECRET failed\n\tat java"),
            "GET https://a.blob.core.windows.net/c failed"
        );
        assert_eq!(short("why? because"), "why? because");
        assert_eq!(short(&"ä".repeat(1000)).chars().count(), 301);
    }

    #[test]
    fn only_an_unclear_write_is_unknown() {
        let error = || Error::new(Code::Storage, "x");
        assert!(matches!(Failure::Unclear(error()).of_write("p"), StorageError::Unknown(_)));
        for known in [Failure::Busy(error()), Failure::Refused(error()), Failure::NotFound(error())] {
            assert!(matches!(known.of_write("p"), StorageError::Other(_)));
        }
        assert!(matches!(Failure::Unclear(error()).of_read("p", "p"), StorageError::Other(_)));
        assert!(matches!(Failure::NotFound(error()).of_read("p", "p"), StorageError::NotFound { .. }));
    }
}
