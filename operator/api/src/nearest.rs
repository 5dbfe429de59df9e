//! The known name that a misspelt one probably means.

/// The nearest of `known`, unless none is near. Case, `-` and `_` do not count, so `min_pause` finds `minPause`.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |text: &str| text.chars().filter(|c| !"-_".contains(*c)).flat_map(char::to_lowercase).collect::<String>();
    // The measure is quadratic in the length, and the name comes from outside.
    let wanted = plain(&name.chars().take(100).collect::<String>());
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// A sentence for the nearest name, or else the list of all if it is short.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(candidate) = nearest(name, known.iter().copied()) {
        return Some(format!("did you mean `{candidate}`?"));
    }
    (1..=12).contains(&known.len()).then(|| format!("known here: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_and_other_spellings_but_nothing_far_away() {
        let known = ["interval", "minPause", "storage"];
        assert_eq!(nearest("intervall", known), Some("interval"));
        assert_eq!(nearest("min-pause", known), Some("minPause"));
        assert_eq!(nearest("Storage", known), Some("storage"));
        assert_eq!(nearest("parallelism", known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }
}
