//! A table of fields from an OpenAPI schema, one row per field, nested ones under their path.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The description of a schema as one line that fits a table.
pub(crate) fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Appends the table of everything below `schema`, and the rules that the server checks.
pub(crate) fn write(page: &mut String, path: &str, schema: &Value) {
    page.push_str("\n| Field | Type | Default | Description |\n|---|---|---|---|\n");
    let mut rules = Vec::new();
    rows(page, path, schema, &mut rules);
    if !rules.is_empty() {
        page.push_str("\nRules:\n\n");
        for rule in rules {
            let _ = writeln!(page, "- {rule}");
        }
    }
}

fn rows(page: &mut String, path: &str, schema: &Value, rules: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        rules.push(format!("`{path}`: {}", rule["message"].as_str().unwrap_or_default()));
    }
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{path}.{name}");
        let default = match (&field["default"], required(name)) {
            (Value::Null, true) => "required".to_owned(),
            (Value::Null, false) => "–".to_owned(),
            (Value::Object(members), _) if said_by_members(members, field) => "see below".to_owned(),
            (Value::String(text), _) => format!("`{text}`"),
            (value, _) => format!("`{value}`"),
        };
        let _ = writeln!(page, "| `{place}` | {} | {default} | {} |", type_of(field), description(field));
        if is_documented(field) {
            rows(page, &place, field, rules);
        }
        if is_documented(&field["items"]) {
            rows(page, &format!("{place}[]"), &field["items"], rules);
        }
    }
}

/// Whether the rows of the members say the default of the whole.
fn said_by_members(default: &Map<String, Value>, schema: &Value) -> bool {
    schema["properties"].is_object()
        && default.iter().all(|(name, value)| schema["properties"][name]["default"] == *value)
}

/// Types of Kubernetes carry no descriptions here: its own reference has them.
fn is_documented(schema: &Value) -> bool {
    schema["properties"].as_object().is_some_and(|fields| fields.values().any(|field| field["description"].is_string()))
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "quantity".to_owned();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .filter_map(Value::as_str)
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    match schema["type"].as_str().unwrap_or("any") {
        "array" => format!("list of {}{}", type_of(&schema["items"]), at_most(&schema["maxItems"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}{}", type_of(&schema["additionalProperties"]), at_most(&schema["maxProperties"]))
        }
        "integer" if least.is_number() && most.is_number() => format!("integer, {least} to {most}"),
        "integer" if least.is_number() => format!("integer, at least {least}"),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        "string" => match schema["pattern"].as_str() {
            Some(pattern) if pattern.contains("ms|s|m|h") => "duration".to_owned(),
            Some(pattern) if pattern.contains("://") => "storage address".to_owned(),
            _ => format!("string{}", up_to(&schema["maxLength"])),
        },
        other => other.to_owned(),
    }
}

fn up_to(bound: &Value) -> String {
    if bound.is_number() { format!(" ≤ {bound}") } else { String::new() }
}

fn at_most(bound: &Value) -> String {
    if bound.is_number() { format!(" (at most {bound})") } else { String::new() }
}
