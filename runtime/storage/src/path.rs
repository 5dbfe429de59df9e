//! Checks object paths at the border, so that no path leaves its folder.

use streamkeeper_types::{Error, Result};

/// Accepts a path of one or more visible parts.
pub(crate) fn check(path: &str) -> Result<()> {
    let part_is_bad = |part: &str| part.is_empty() || part.starts_with('.') || part.contains(['\\', '\0']);
    if path.split('/').any(part_is_bad) {
        return Err(Error::internal(format!(
            "`{path}` is no object path: parts must be non-empty and not start with `.`"
        )));
    }
    Ok(())
}

/// Accepts a folder to list; `""` is the root.
pub(crate) fn check_folder(folder: &str) -> Result<()> {
    if folder.is_empty() { Ok(()) } else { check(folder) }
}

/// Whether `path` lies below `folder`.
pub(crate) fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_their_folder() {
        for good in ["owner", "log/1/0", "shared/ab-12.delta", "savepoints/before upgrade/_metadata"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "/etc/passwd", "a//b", "a/", "../x", "a/../../x", "a/./b", ".tmp/x", "a\\..\\b", "a\0b"] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_is_no_mere_prefix() {
        assert!(is_below("log/1/0", "log/1"));
        assert!(is_below("log/1/0", ""));
        assert!(!is_below("log/11/0", "log/1"));
        assert!(!is_below("log/1", "log/1"));
    }
}
