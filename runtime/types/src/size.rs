//! Memory and file sizes: `64MiB`, `1gb`, `4096`. Binary and decimal suffixes; without one, bytes.

/// Parses a size in bytes.
///
/// # Errors
/// The text with what is wrong in it.
pub fn parse(text: &str) -> Result<u64, String> {
    let fault = |why: &str| format!("`{text}` is no size: {why}; write for example 512KiB, 64MiB or 1GiB");
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(fault("a number is missing"));
    }
    let number: u64 = trimmed[..digits].parse().map_err(|_| fault("the number is too large"))?;
    let factor: u64 = match trimmed[digits..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        _ => return Err(fault("suffixes are KB, MB, GB, KiB, MiB and GiB")),
    };
    number.checked_mul(factor).ok_or_else(|| fault("it is too large"))
}

/// For people: three digits and a binary unit, as in `1.21 GiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn display(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.*} {}", if value < 10.0 { 2 } else { usize::from(value < 100.0) }, units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_show() {
        assert_eq!(parse("64MiB"), Ok(64 << 20));
        assert_eq!(parse("1 gb"), Ok(1_000_000_000));
        assert_eq!(parse("4096"), Ok(4096));
        for bad in ["", "MiB", "1.5GiB", "-1", "1 parsec", "99999999999999999999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(display(12), "12 B");
        assert_eq!(display(1_300_000_000), "1.21 GiB");
    }
}
