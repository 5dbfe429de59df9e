//! Paths into JSON, `lax $.a.b[0]['c']`: what a path finds, and whether finding nothing is an error.

use serde_json::Value;

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub mode: Mode,
    steps: Vec<Step>,
}

/// Without a word it is strict, as in Flink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// What is missing is empty.
    Lax,
    /// What is missing is an error.
    Strict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
    /// `[*]` and `.*`: from here on the result is a list.
    All,
}

/// What a path finds in a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    Value(Value),
    /// Nothing, and that is fine.
    Empty,
    Error,
}

impl Path {
    /// # Errors
    /// Why it is no path that runs here.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let (mode, path) = match trimmed.split_once(char::is_whitespace) {
            Some((word, path)) if word.eq_ignore_ascii_case("lax") => (Mode::Lax, path.trim()),
            Some((word, path)) if word.eq_ignore_ascii_case("strict") => (Mode::Strict, path.trim()),
            _ => (Mode::Strict, trimmed),
        };
        let wrong = |why: &str| format!("`{text}` is no JSON path that runs here: {why}");
        let Some(mut rest) = path.strip_prefix('$') else { return Err(wrong("it does not begin with $")) };
        let mut steps = Vec::new();
        while let Some(first) = rest.chars().next() {
            if first == '.' {
                rest = &rest[1..];
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let name = rest[..end].trim();
                match name {
                    "" => return Err(wrong("a name is missing behind a point")),
                    "*" => steps.push(Step::All),
                    _ if name.contains(['(', ')', '?', '@']) => {
                        return Err(wrong("functions and filters are not supported"));
                    }
                    _ => steps.push(Step::Member(name.to_owned())),
                }
                rest = &rest[end..];
                continue;
            }
            if first != '[' {
                return Err(wrong("a point or bracket is missing"));
            }
            let (step, behind) =
                bracket(&rest[1..]).ok_or_else(|| wrong("brackets hold an index, a quoted name or *"))?;
            steps.push(step);
            rest = behind;
        }
        Ok(Self { mode, steps })
    }

    pub(super) fn find(&self, document: &str) -> Found {
        let Ok(root) = serde_json::from_str::<Value>(document) else { return self.missing() };
        match walk(root, &self.steps) {
            // A JSON null counts as empty.
            Some(Value::Null) => Found::Empty,
            Some(value) => Found::Value(value),
            None => self.missing(),
        }
    }

    fn missing(&self) -> Found {
        if self.mode == Mode::Lax { Found::Empty } else { Found::Error }
    }
}

/// Reads what follows a `[`, and gives what stands behind its `]`.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let text = text.trim_start();
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (name, behind) = text[1..].split_once(quote)?;
        return Some((Step::Member(name.to_owned()), behind.trim_start().strip_prefix(']')?));
    }
    let (inner, behind) = text.split_once(']')?;
    let step = if inner.trim() == "*" { Step::All } else { Step::Index(inner.trim().parse().ok()?) };
    Some((step, behind))
}

fn walk(value: Value, steps: &[Step]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match (step, value) {
        (Step::Member(name), Value::Object(mut members)) => walk(members.remove(name)?, rest),
        (Step::Index(index), Value::Array(mut items)) if *index < items.len() => walk(items.swap_remove(*index), rest),
        // Of many, those that lack the rest of the path are left out.
        (Step::All, Value::Array(items)) => Some(items.into_iter().filter_map(|item| walk(item, rest)).collect()),
        (Step::All, Value::Object(members)) => {
            Some(members.into_iter().filter_map(|(_, member)| walk(member, rest)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_members_items_and_lists() {
        let document = r#"{"a": {"b c": [10, {"d": true}]}, "n": null}"#;
        let find = |path: &str| Path::new(path).unwrap().find(document);
        assert_eq!(find("$.a['b c'][1].d"), Found::Value(json!(true)));
        assert_eq!(find("lax $.a.*[*]"), Found::Value(json!([[10, {"d": true}]])));
        assert_eq!(find("$"), Found::Value(serde_json::from_str(document).unwrap()));
        assert_eq!(find("$.n"), Found::Empty);
        assert_eq!(find("$.x"), Found::Error);
        assert_eq!(find("strict $.a[0]"), Found::Error);
        assert_eq!(find("LAX $.x"), Found::Empty);
        assert_eq!(Path::new("lax $.x").unwrap().find("no json"), Found::Empty);
        assert_eq!(Path::new("$.x").unwrap().find("no json"), Found::Error);
    }

    #[test]
    fn what_is_no_path_says_why() {
        for bad in ["", "a.b", "$a", "$.", "$..a", "$[", "$[-1]", "$['a", "$.a?(@.b > 1)", "$.a.size()", "$[é]"] {
            assert!(Path::new(bad).is_err(), "{bad}");
        }
    }
}
