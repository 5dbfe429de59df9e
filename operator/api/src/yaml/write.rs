//! JSON values as YAML that every reader understands alike.
//!
//! Kubernetes reads YAML 1.1, where a bare `off` or `yes` is a truth value and `1:30` a number: whatever is not plainly a
//! word is quoted. Texts of several lines, SQL above all, are literal blocks.

use std::fmt::Write;

use serde_json::Value;

/// Writes one value, in block style, with a line break at its end.
#[must_use]
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    node(&mut text, value, 0);
    // The root follows no key.
    text.trim_start_matches([' ', '\n']).to_owned()
}

/// Writes a value after its key or dash: on the same line, or below it with `indent` blanks.
fn node(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                let _ = write!(text, "\n{:indent$}{}:", "", scalar(key));
                node(text, member, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(text, "\n{:indent$}-", "");
                item_after_dash(text, item, indent + 2);
            }
        }
        Value::String(lines) if is_literal(lines) => literal(text, lines, indent),
        Value::String(word) => line(text, &scalar(word), indent),
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            line(text, &value.to_string(), indent);
        }
    }
    if indent == 0 {
        text.push('\n');
    }
}

/// The first member of a map stands on the line of its dash.
fn item_after_dash(text: &mut String, item: &Value, indent: usize) {
    let mut below = String::new();
    node(&mut below, item, indent);
    match below.strip_prefix('\n') {
        Some(first) => {
            text.push(' ');
            text.push_str(first.trim_start_matches(' '));
        }
        None => text.push_str(&below),
    }
}

fn line(text: &mut String, word: &str, indent: usize) {
    if indent > 0 {
        text.push(' ');
    }
    text.push_str(word);
}

fn literal(text: &mut String, lines: &str, indent: usize) {
    let (body, keep) = match lines.strip_suffix('\n') {
        Some(body) => (body, "|"),
        None => (lines, "|-"),
    };
    line(text, keep, indent);
    let indent = indent.max(2);
    for body_line in body.split('\n') {
        text.push('\n');
        if !body_line.is_empty() {
            let _ = write!(text, "{:indent$}{body_line}", "");
        }
    }
}

/// Whether a text keeps every character in a literal block.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && !body.ends_with(['\n', ' ', '\t'])
        && body.chars().all(|c| c == '\n' || is_printable(c))
}

fn is_printable(c: char) -> bool {
    // YAML's line breaks and byte order mark, which readers treat differently, and what it does not allow bare.
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A text on one line, bare if it is plainly a word.
fn scalar(text: &str) -> String {
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let inner = |c: char| c.is_ascii_alphanumeric() || " ._/-()<>=;,^+".contains(c);
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(inner)
        && !text.ends_with(' ')
        && !reserved.iter().any(|word| text.eq_ignore_ascii_case(word));
    if bare { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ if is_printable(c) => out.push(c),
            _ => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_yaml_1_1_are_quoted() {
        let value =
            json!({ "a": "off", "b": ["No", "advise", "1:30", "10s"], "on": "x y", "c": "", "d": "~", "e": "a: b" });
        let expected = "a: \"off\"\nb:\n  - \"No\"\n  - advise\n  - \"1:30\"\n  - \"10s\"\nc: \"\"\nd: \"~\"\ne: \"a: b\"\n\"on\": x y\n";
        assert_eq!(write(&value), expected);
    }

    #[test]
    fn nested_values_and_sql_are_readable() {
        let value = json!({
            "empty": [{}, []],
            "list": [{ "a": 1, "b": [true, null] }, [1, 2]],
            "sql": "SELECT 1\n\n  FROM a;\n",
        });
        let expected = "empty:\n  - {}\n  - []\nlist:\n  - a: 1\n    b:\n      - true\n      - null\n  - - 1\n    - 2\n\
                        sql: |\n  SELECT 1\n\n    FROM a;\n";
        assert_eq!(write(&value), expected);
        assert_eq!(write(&json!("a")), "a\n");
        assert_eq!(write(&json!({})), "{}\n");
    }
}
