//! Makes new inputs out of seeds: flips, cuts, repeats, and splices of tokens that the targets know.

use rand::{Rng, SeedableRng, rngs::StdRng};

/// Longest input, in bytes: errors hide in small ones.
const MAX_LENGTH: usize = 4096;

/// An endless, repeatable stream of inputs.
pub struct Mutator {
    random: StdRng,
    corpus: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
}

impl Mutator {
    #[must_use]
    pub fn new(seed: u64, seeds: Vec<Vec<u8>>, tokens: &'static [&'static str]) -> Self {
        let mut corpus = seeds;
        corpus.push(Vec::new());
        Self { random: StdRng::seed_from_u64(seed), corpus, tokens }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let pick = self.random.random_range(0..self.corpus.len());
        let mut input = self.corpus[pick].clone();
        for _ in 0..self.random.random_range(1..6) {
            self.mutate(&mut input);
        }
        input.truncate(MAX_LENGTH);
        // Some offspring join the corpus, so that mutations add up.
        if self.corpus.len() < 256 && self.random.random_ratio(1, 8) {
            self.corpus.push(input.clone());
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.random_range(0..=input.len());
        match random.random_range(0..7) {
            0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            1 if at < input.len() => input[at] = random.random(),
            2 => {
                let end = random.random_range(at..=input.len());
                input.drain(at..end);
            }
            3 => {
                let end = random.random_range(at..=input.len().min(at + 64));
                let part = input[at..end].to_vec();
                for _ in 0..random.random_range(1..8) {
                    input.splice(at..at, part.iter().copied());
                }
            }
            4 if !self.tokens.is_empty() => {
                let token = self.tokens[random.random_range(0..self.tokens.len())];
                input.splice(at..at, token.bytes());
            }
            5 => {
                let other = &self.corpus[random.random_range(0..self.corpus.len())];
                let start = random.random_range(0..=other.len());
                let end = random.random_range(start..=other.len());
                input.splice(at..at, other[start..end].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
}
