//! The one duration grammar of YAML, SQL options and flags: `^([0-9]+(ms|s|m|h))+$`, as in `10m` or `1h30m`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Parses a duration. Overflow is an error, never a wrap.
///
/// # Errors
/// The text with what is wrong in it.
pub fn parse(text: &str) -> Result<Duration, String> {
    let fault = |why: &str| format!("`{text}` is no duration: {why}; write for example 500ms, 10s, 5m or 1h30m");
    if text.is_empty() {
        return Err(fault("it is empty"));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(fault("a number is missing"));
        }
        let number: u64 = rest[..digits].parse().map_err(|_| fault("a number is too large"))?;
        rest = &rest[digits..];
        let unit = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let millis = match &rest[..unit] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(fault("units are ms, s, m and h")),
        };
        rest = &rest[unit..];
        let part = number.checked_mul(millis).ok_or_else(|| fault("it is too large"))?;
        total = total.checked_add(Duration::from_millis(part)).ok_or_else(|| fault("it is too large"))?;
    }
    // Everything downstream counts milliseconds in i64.
    if i64::try_from(total.as_millis()).is_err() {
        return Err(fault("it is too large"));
    }
    Ok(total)
}

/// The shortest text that [`parse`] reads back as the same duration, in whole milliseconds.
#[must_use]
pub fn format(duration: Duration) -> String {
    let mut millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if millis >= size {
            text.push_str(&format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    text
}

/// For `#[serde(with = "streamkeeper_types::duration")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For `#[serde(with = "streamkeeper_types::duration")]`.
///
/// # Errors
/// As [`parse`].
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_the_grammar_and_nothing_else() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for bad in [
            "",
            "10",
            "s",
            "10min",
            "30d",
            "-1s",
            "1.5s",
            "1 s",
            "１s",
            "99999999999999999999s",
            "9223372036854775807s",
            "1s ",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn formatted_durations_read_back(millis in 0..=i64::MAX as u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
