//! Names of time zones.

use chrono_tz::Tz;

/// Reads a zone's name (`Europe/Berlin`) or a distance from UTC in whole hours (`GMT+08:00`, `UTC-5`, `+02:00`).
#[must_use]
pub fn parse_zone(name: &str) -> Option<Tz> {
    let name = name.trim();
    if let Ok(zone) = name.parse() {
        return Some(zone);
    }
    let distance = name.strip_prefix("GMT").or_else(|| name.strip_prefix("UTC")).unwrap_or(name);
    if matches!(distance, "" | "Z") {
        return Some(Tz::UTC);
    }
    let (sign, digits) = (distance.chars().next()?, distance.get(1..)?);
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
    if minutes != "00" || hours.is_empty() || !hours.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (hours.parse::<u8>().ok()?, sign) {
        (0, '+' | '-') => Some(Tz::UTC),
        // The zones of this name count the other way round.
        (hours, '+') => format!("Etc/GMT-{hours}").parse().ok(),
        (hours, '-') => format!("Etc/GMT+{hours}").parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_by_name_and_by_distance() {
        assert_eq!(parse_zone("Europe/Berlin"), Some(Tz::Europe__Berlin));
        assert_eq!(parse_zone("GMT+08:00"), Some(Tz::Etc__GMTMinus8));
        assert_eq!(parse_zone("UTC-5"), Some(Tz::Etc__GMTPlus5));
        assert_eq!(parse_zone("+00:00"), Some(Tz::UTC));
        for bad in ["Mars/Olympus", "+05:30", "GMT+99", "+", "é", "GMT+8x"] {
            assert_eq!(parse_zone(bad), None, "{bad}");
        }
    }
}
