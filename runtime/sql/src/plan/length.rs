//! Lengths of windows as people read them.

use std::fmt;

/// Milliseconds in the largest units that hold them exactly, as in `1m` or `1h30m`.
pub(super) struct Length(pub(super) i64);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut rest = self.0.unsigned_abs();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (length, unit) in UNITS {
            if rest >= length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_shown_in_the_largest_units() {
        let shown = |ms: i64| Length(ms).to_string();
        assert_eq!(shown(60_000), "1m");
        assert_eq!(shown(5_400_000), "1h30m");
        assert_eq!(shown(1_500), "1s500ms");
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(-1), "-1ms");
    }
}
