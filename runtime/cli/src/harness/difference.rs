//! How rows that differ are told.

use std::collections::BTreeMap;

/// Lines shown of a difference; more would bury the first.
const SHOWN: usize = 20;

/// Rows that only one side has, as `-` expected and `+` actual.
#[must_use]
pub fn difference(sink: &str, expected: &[String], actual: &[String]) -> String {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for row in actual {
        *counts.entry(row).or_default() += 1;
    }
    for row in expected {
        *counts.entry(row).or_default() -= 1;
    }
    let mut rows = Vec::new();
    for (row, count) in counts.into_iter().filter(|(_, count)| *count != 0) {
        let sign = if count < 0 { '-' } else { '+' };
        rows.extend((0..count.abs()).map(|_| format!("  {sign} {row}")));
    }
    let more = rows.len().saturating_sub(SHOWN);
    rows.truncate(SHOWN);
    if more > 0 {
        rows.push(format!("  … and {more} more"));
    }
    rows.insert(0, format!("{sink}: {} rows expected, {} came", expected.len(), actual.len()));
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_of_one_side_are_told_and_not_too_many() {
        let rows = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let told = difference("t", &rows(&["a", "b", "b"]), &rows(&["a", "b", "c"]));
        assert_eq!(told, "t: 3 rows expected, 3 came\n  - b\n  + c");
        let many: Vec<String> = (0..50).map(|i| i.to_string()).collect();
        assert!(difference("t", &[], &many).ends_with("… and 30 more"));
    }
}
