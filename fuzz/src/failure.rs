//! An input that fails, kept for whoever mends it.

use std::{fmt, fs, panic::catch_unwind, path::PathBuf};

use crate::{Mutator, Target};

/// A target and the input on which it panics.
#[derive(Debug)]
pub struct Failure {
    target: &'static str,
    input: Vec<u8>,
    /// Where the input was written.
    file: std::io::Result<PathBuf>,
}

impl Target {
    /// Runs one input.
    ///
    /// # Errors
    /// If it panics.
    pub fn check(&self, input: &[u8]) -> Result<(), Failure> {
        catch_unwind(|| (self.run)(input)).map_err(|_| Failure::keep(self.name, input))
    }

    /// Runs the seeds as they are, then mutated ones as long as `goes_on` says; gives the number of inputs.
    ///
    /// # Errors
    /// The first input that panics.
    pub fn explore(&self, random_seed: u64, mut goes_on: impl FnMut(u64) -> bool) -> Result<u64, Failure> {
        let seeds = (self.seeds)();
        seeds.iter().try_for_each(|seed| self.check(seed))?;
        let mut mutator = Mutator::new(random_seed, seeds, self.tokens);
        let mut inputs = 0;
        while goes_on(inputs) {
            self.check(&mutator.next_input())?;
            inputs += 1;
        }
        Ok(inputs)
    }
}

impl Failure {
    fn keep(target: &'static str, input: &[u8]) -> Self {
        // A number of the content: the same input is kept once.
        let number = input
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        let file = std::env::temp_dir().join(format!("streamkeeper-fuzz-{target}-{number:016x}"));
        let file = fs::write(&file, input).map(|()| file);
        Self { target, input: input.to_vec(), file }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} panics on {:?}", self.target, String::from_utf8_lossy(&self.input))?;
        match &self.file {
            Ok(file) => {
                write!(f, "again: cargo run -p streamkeeper-fuzz -- {} --replay {}", self.target, file.display())
            }
            Err(error) => write!(f, "the input could not be kept: {error}"),
        }
    }
}
