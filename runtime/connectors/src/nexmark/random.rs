//! The random numbers of Nexmark events: xoshiro256++ seeded by PCG32, and bounded numbers by multiplication, as the
//! reference generator draws them.

use std::sync::LazyLock;

/// State of xoshiro256++.
pub(super) struct Random([u64; 4]);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        // PCG32: a step of the linear generator, then its output function.
        let mut half = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11_634_580_027_462_260_723);
            let shifted = (((state >> 18) ^ state) >> 27) as u32;
            u64::from(shifted.rotate_right((state >> 59) as u32))
        };
        Self(std::array::from_fn(|_| half() | half() << 32))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    #[inline]
    fn next_32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// A number below `bound`, drawn from 64 bits.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let zone = (bound << bound.leading_zeros()).wrapping_sub(1);
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 <= zone {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number below `bound`, drawn from 32 bits.
    #[inline]
    pub(super) fn below_32(&mut self, bound: u32) -> u32 {
        let zone = (bound << bound.leading_zeros()).wrapping_sub(1);
        loop {
            let product = u64::from(self.next_32()) * u64::from(bound);
            if product as u32 <= zone {
                return (product >> 32) as u32;
            }
        }
    }

    /// One of some things.
    pub(super) fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below_32(from.len() as u32) as usize]
    }

    /// Appends lower-case letters.
    pub(super) fn letters(&mut self, length: u64, out: &mut String) {
        // The largest multiple of 26 below 2^32, less one: draws beyond it would favour some letters.
        const ZONE: u32 = u32::MAX - (u32::MAX - 26 + 1) % 26;
        for _ in 0..length {
            let letter = loop {
                let product = u64::from(self.next_32()) * 26;
                if product as u32 <= ZONE {
                    break (product >> 32) as u8;
                }
            };
            out.push(char::from(b'a' + letter));
        }
    }

    /// Appends letters that bring `size` bytes to about `average`.
    pub(super) fn extra(&mut self, size: u64, average: u64, out: &mut String) {
        let Some(missing) = average.checked_sub(size) else { return };
        let delta = (missing + 2) / 5;
        let more = if delta == 0 { 0 } else { self.below(2 * delta) };
        self.letters(missing - delta + more, out);
    }

    /// A price in cents, from 1 to 1,000,000 on a logarithmic scale.
    pub(super) fn price(&mut self) -> u64 {
        let unit = (self.next_32() >> 8) as f32 * (1.0 / (1_u32 << 24) as f32);
        (10.0_f32.powf(unit * 6.0) * 100.0).round() as u64
    }

    /// Appends 3 or more but less than `most` characters, letters and some delimiters.
    fn word(&mut self, most: u64, delimiter: char, out: &mut String) {
        for _ in 0..3 + self.below(most - 3) {
            if self.below_32(13) == 0 {
                out.push(delimiter);
            } else {
                self.letters(1, out);
            }
        }
    }
}

/// Name and URL of every channel that is not hot.
pub(super) static CHANNELS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let channel = |number: u32| {
        let mut url = base_url(u64::from(number));
        if Random::new(u64::from(number)).below_32(10) > 0 {
            let id = i64::from(number.reverse_bits().cast_signed()).abs();
            url.push_str(&format!("&channel_id={id}"));
        }
        (format!("channel-{number}"), url)
    };
    (0..10_000).map(channel).collect()
});

/// Name and URL of the hot channels.
pub(super) static HOT_CHANNELS: LazyLock<Vec<(&str, String)>> =
    LazyLock::new(|| ["Google", "Facebook", "Baidu", "Apple"].into_iter().zip((0..).map(base_url)).collect());

fn base_url(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut url = "https://www.nexmark.com".to_owned();
    for _ in 0..3 {
        url.push('/');
        random.word(5, '_', &mut url);
    }
    url.push_str("/item.htm?query=1");
    url
}
