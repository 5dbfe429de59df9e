//! Amounts of CPU and memory as Kubernetes writes them, made comparable.

/// The amount in thousandths, which is the finest that Kubernetes keeps for CPU.
///
/// # Errors
/// What is wrong in the text.
pub(crate) fn milli(text: &str) -> Result<u128, String> {
    let fault = |why: &str| format!("`{text}` is no quantity: {why}; write for example 500m, 2, 256Mi or 1Gi");
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(fault("a number is missing"));
    }
    let (factor, divisor): (u128, u128) = match suffix {
        "n" => (1, 1_000_000),
        "u" => (1, 1_000),
        "m" => (1, 1),
        "" => (1_000, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1_000 << 10, 1),
        "Mi" => (1_000 << 20, 1),
        "Gi" => (1_000 << 30, 1),
        "Ti" => (1_000 << 40, 1),
        "Pi" => (1_000 << 50, 1),
        _ => return Err(fault("suffixes are m, k, M, G, T, P, Ki, Mi, Gi, Ti and Pi")),
    };
    // 20 digits times the largest factor stay far below 2^128.
    if whole.len() + fraction.len() > 19 {
        return Err(fault("it has too many digits"));
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| fault("a number is missing"))?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).map_err(|_| fault("it has too many digits"))?);
    // Rounded up, as the server does.
    Ok((digits * factor).div_ceil(scale * divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_amount_in_other_units_is_equal() {
        assert_eq!(milli("500m"), Ok(500));
        assert_eq!(milli("0.5"), Ok(500));
        assert_eq!(milli("2"), Ok(2_000));
        assert_eq!(milli("1Gi"), milli("1024Mi"));
        assert_eq!(milli("1.5Gi"), milli("1536Mi"));
        assert_eq!(milli("1M"), Ok(1_000_000_000));
        assert_eq!(milli("1n"), Ok(1));
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "Gi", ".", "1.2.3", "-1", "1 Gi", "1gb", "1e3", "99999999999999999999"] {
            assert!(milli(bad).is_err(), "{bad}");
        }
        assert!(milli("9999999999999999999Pi").is_ok());
    }
}
