//! How long a JobManager may be silent while something is waited for: another one may just be taking over.

use std::time::{Duration, Instant};

use streamkeeper_types::{Error, Fault, Result};

/// Between two looks.
pub(super) const POLL: Duration = Duration::from_millis(200);

/// From the first missing answer.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Patience {
    silent_since: Option<Instant>,
}

impl Patience {
    pub(super) fn answered(&mut self) {
        self.silent_since = None;
    }

    /// # Errors
    /// `error` itself if a further look would not help, or if there were none but errors for too long.
    pub(super) fn bear(&mut self, error: Error) -> Result<()> {
        let silent = self.silent_since.get_or_insert_with(Instant::now).elapsed();
        if error.fault() != Fault::External || silent >= SILENCE { Err(error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_types::Code;

    use super::*;

    #[test]
    fn only_what_may_pass_is_waited_out() {
        let mut patience = Patience::default();
        assert!(patience.bear(Error::new(Code::NotLeading, "a standby answers")).is_ok());
        patience.answered();
        assert!(patience.bear(Error::new(Code::NotFound, "no such request")).is_err());
    }
}
