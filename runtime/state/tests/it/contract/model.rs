//! The oracle: three tables as ordinary maps, and random numbers from a seed.

use std::collections::BTreeMap;

/// Values of a row of `groups`.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub count: i64,
    pub sum: Option<f64>,
    pub text: Option<String>,
}

/// The whole state of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    pub groups: BTreeMap<i64, Group>,
    /// By window end and key.
    pub windows: BTreeMap<(i64, i64), i128>,
    /// By key and value.
    pub values: BTreeMap<(i64, String), i64>,
}

/// SplitMix64: the same numbers for the same seed, for ever.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
