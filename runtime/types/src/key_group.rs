//! Key groups: hash, assignment to subtasks and ranges. The one place that knows these formulas; nobody recomputes them.
//!
//! Version 1: group = XXH3-64(key bytes, seed 0) mod maxParallelism; subtask = ⌊group · p / maxP⌋.
//! The version is stored in every snapshot; a restore under an unknown one is refused.

use serde::{Deserialize, Serialize};

/// Version of hash, seed and key encoding together.
pub const HASH_VERSION: u32 = 1;

/// The most key groups, and so the greatest parallelism, that a job can have.
pub const MAX_PARALLELISM_LIMIT: u32 = 32_768;

/// The unit in which keyed state is spread over subtasks and moved between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyGroup(pub u16);

/// Key groups `start..=end`, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyGroupRange {
    start: u16,
    /// Exclusive, hence wider than a group.
    end: u32,
}

impl KeyGroupRange {
    /// Groups from `start` up to and without `end`.
    #[must_use]
    pub fn new(start: u16, end: u32) -> Self {
        Self { start, end: end.max(u32::from(start)) }
    }

    /// Every group of a job with `max_parallelism` groups.
    #[must_use]
    pub fn all(max_parallelism: u32) -> Self {
        Self { start: 0, end: max_parallelism }
    }

    #[must_use]
    pub fn contains(&self, group: KeyGroup) -> bool {
        self.start <= group.0 && u32::from(group.0) < self.end
    }

    #[must_use]
    pub fn len(&self) -> u32 {
        self.end - u32::from(self.start)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn start(&self) -> u16 {
        self.start
    }

    /// Exclusive end.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.end
    }

    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let start = self.start.max(other.start);
        Self::new(start, self.end.min(other.end).max(u32::from(start)))
    }

    pub fn iter(&self) -> impl Iterator<Item = KeyGroup> + use<> {
        #[expect(clippy::cast_possible_truncation, reason = "groups are below 32,768")]
        (u32::from(self.start)..self.end).map(|g| KeyGroup(g as u16))
    }
}

/// Hash of a key's serialized bytes (without key group), version 1.
#[must_use]
pub fn hash(key_bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key_bytes)
}

/// Key group of a hash.
#[must_use]
#[inline]
pub fn of_hash(hash: u64, max_parallelism: u32) -> KeyGroup {
    let max = u64::from(max_parallelism);
    let group = if max.is_power_of_two() { hash & (max - 1) } else { hash % max };
    #[expect(clippy::cast_possible_truncation, reason = "below max_parallelism, at most 32,768")]
    KeyGroup(group as u16)
}

/// Subtask that owns a key group.
#[must_use]
pub fn subtask_of(group: KeyGroup, parallelism: u32, max_parallelism: u32) -> u32 {
    u32::from(group.0) * parallelism / max_parallelism
}

/// Key groups that subtask `index` of `parallelism` owns; agrees with [`subtask_of`] on every border.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "bounded by 32,768")]
pub fn range_of(index: u32, parallelism: u32, max_parallelism: u32) -> KeyGroupRange {
    let (i, p, max) = (u64::from(index), u64::from(parallelism), u64::from(max_parallelism));
    let start = (i * max).div_ceil(p);
    let end = ((i + 1) * max - 1) / p + 1;
    KeyGroupRange::new(start as u16, end as u32)
}

/// Number of key groups for a job that states none: min(max(nextPow2(p + ⌊p / 2⌋), 128), 32768).
#[must_use]
pub fn default_max_parallelism(parallelism: u32) -> u32 {
    let wanted = u64::from(parallelism) + u64::from(parallelism) / 2;
    #[expect(clippy::cast_possible_truncation, reason = "clamped")]
    let rounded = wanted.next_power_of_two().clamp(128, u64::from(MAX_PARALLELISM_LIMIT)) as u32;
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
    }

    #[test]
    fn hash_has_the_documented_vectors() {
        let check = |bytes: &[u8], expected: u64, group: u16| {
            assert_eq!(hash(bytes), expected, "{bytes:?}");
            assert_eq!(of_hash(expected, 128), KeyGroup(group), "{bytes:?}");
        };
        check(b"", 0x2d06_8005_38d3_94c2, 66);
        check(b"hello", 0x9555_e855_5c62_dcfd, 125);
        check(&unhex("000000000000002a"), 0x2e4f_e982_b689_10ac, 44);
        check(&[0; 8], 0xc77b_3abb_6f87_acd9, 89);
        check(&[0xff; 8], 0x5111_c7e4_7d78_4413, 19);
        check(&(1..=32).collect::<Vec<u8>>(), 0xbfd4_9bed_2d15_02eb, 107);
        check(&[b'a'; 300], 0xc1d1_7581_d8eb_7e21, 33);
        check(&unhex("01800000000000002a"), 0x5bf7_6a38_8e4a_df0a, 10);
        check(&unhex("00"), 0xc44b_dff4_074e_ecdb, 91);
    }

    #[test]
    fn ranges_have_the_documented_vectors() {
        let ranges = |max: u32, p: u32| -> Vec<(u16, u32)> {
            (0..p).map(|i| range_of(i, p, max)).map(|r| (r.start(), r.end() - 1)).collect()
        };
        assert_eq!(ranges(128, 3), [(0, 42), (43, 85), (86, 127)]);
        assert_eq!(ranges(128, 5), [(0, 25), (26, 51), (52, 76), (77, 102), (103, 127)]);
        assert_eq!(ranges(10, 4), [(0, 2), (3, 4), (5, 7), (8, 9)]);
        assert_eq!(ranges(32_768, 3), [(0, 10_922), (10_923, 21_845), (21_846, 32_767)]);
    }

    #[test]
    fn assignment_and_ranges_agree_on_every_border() {
        let check = |max: u32, p: u32| {
            let mut next = 0;
            for i in 0..p {
                let range = range_of(i, p, max);
                assert_eq!(u32::from(range.start()), next, "gap before subtask {i} of {p}, maxP {max}");
                next = range.end();
                if range.is_empty() {
                    continue;
                }
                for group in [range.start(), u16::try_from(range.end() - 1).expect("below limit")] {
                    assert_eq!(subtask_of(KeyGroup(group), p, max), i, "group {group} of {max}, p {p}");
                }
            }
            assert_eq!(next, max);
        };
        for max in 1..=299 {
            for p in 1..=max {
                check(max, p);
            }
        }
        for p in [1, 2, 3, 7, 1000, 12_345, 32_767, 32_768] {
            check(32_768, p);
        }
    }

    #[test]
    fn default_max_parallelism_has_the_documented_vectors() {
        for (p, max) in
            [(1, 128), (85, 128), (86, 256), (171, 256), (172, 512), (1000, 2048), (30_000, 32_768), (32_768, 32_768)]
        {
            assert_eq!(default_max_parallelism(p), max, "p {p}");
        }
    }
}
