//! R25: once a reign has begun, no lower one publishes.

use streamkeeper_types::Generation;

use super::Verdict;

/// The highest reign that has begun.
#[derive(Debug, Default)]
pub struct OneReignPublishes {
    highest: Option<Generation>,
}

impl OneReignPublishes {
    /// A reign began: its base is accepted.
    pub fn began(&mut self, generation: Generation) {
        self.highest = self.highest.max(Some(generation));
    }

    /// A record became visible.
    ///
    /// # Errors
    /// A higher reign had begun.
    pub fn published(&self, generation: Generation) -> Verdict {
        match self.highest.filter(|highest| *highest > generation) {
            Some(highest) => Err(format!("generation {generation} published although {highest} had begun")),
            None => Ok(()),
        }
    }
}
