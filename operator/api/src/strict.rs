//! Checks a JSON value against one of our schemas and lists every fault.
//!
//! The API server would prune an unknown field in silence and report type by type; a person at a terminal gets it all at
//! once, with the nearest known name. Knows only the part of OpenAPI that our own schemas use.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::nearest::suggestion;
use crate::text::{DurationText, StorageUri};

/// Removes members that are null, as the server does before it sets defaults.
pub(crate) fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds to `faults` whatever of `value` does not fit `schema`.
pub(crate) fn check(value: &Value, schema: &Value, path: &str, faults: &mut Vec<Fault>) {
    if is_set(schema, "x-kubernetes-int-or-string") {
        if !value.is_string() && !value.is_i64() && !value.is_u64() {
            faults.push(wrong_type(path, value, "a quantity such as 500m, 1Gi or 2"));
        }
        return;
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(members)) => check_object(members, schema, path, faults),
        (Some("array"), Value::Array(items)) => check_array(items, schema, path, faults),
        (Some("string"), Value::String(text)) => check_string(text, schema, path, faults),
        (Some("integer"), Value::Number(number)) if !number.is_f64() => check_integer(number, schema, path, faults),
        (Some("boolean"), Value::Bool(_)) | (None, _) => {}
        (Some(expected), _) => faults.push(wrong_type(path, value, named(expected, schema))),
    }
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema[key].as_bool() == Some(true)
}

fn named<'a>(expected: &'a str, schema: &Value) -> &'a str {
    match expected {
        "object" => "a map of fields",
        "array" => "a list",
        "string" if schema["pattern"] == DurationText::PATTERN => "a duration such as 10s or 1h30m",
        "string" => "a text",
        "integer" => "a whole number",
        "boolean" => "true or false",
        other => other,
    }
}

fn wrong_type(path: &str, value: &Value, expected: &str) -> Fault {
    let found = match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => format!("`{flag}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the text `{}`", short(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    };
    let fault = Fault::new(path, format!("{found} stands where {expected} belongs"));
    match (value, expected) {
        (Value::Number(_) | Value::Bool(_), "a text") => fault.way_out("put it in quotes"),
        _ => fault,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { short(name) } else { format!("{path}.{}", short(name)) }
}

fn check_object(members: &Map<String, Value>, schema: &Value, path: &str, faults: &mut Vec<Fault>) {
    let count = members.len() as u64;
    if let Some(most) = schema["maxProperties"].as_u64().filter(|most| count > *most) {
        faults.push(Fault::new(path, format!("{count} entries; at most {most} are allowed")));
    }
    let properties = schema["properties"].as_object();
    for (name, value) in members {
        let place = member(path, name);
        if let Some(known) = properties.and_then(|properties| properties.get(name)) {
            check(value, known, &place, faults);
        } else if schema["additionalProperties"].is_object() {
            check(value, &schema["additionalProperties"], &place, faults);
        } else if let Some(properties) = properties.filter(|_| !is_set(schema, "x-kubernetes-preserve-unknown-fields"))
        {
            let fault = Fault::new(place, "there is no such field");
            let suggestion = suggestion(name, properties.keys().map(String::as_str));
            faults.push(Fault { way_out: suggestion, ..fault });
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            faults.push(Fault::new(member(path, name), "this field is missing"));
        }
    }
}

fn check_array(items: &[Value], schema: &Value, path: &str, faults: &mut Vec<Fault>) {
    let count = items.len() as u64;
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| count > *most) {
        faults.push(Fault::new(path, format!("{count} entries; at most {most} are allowed")));
    }
    for (index, item) in items.iter().enumerate() {
        check(item, &schema["items"], &format!("{path}[{index}]"), faults);
    }
}

fn check_string(text: &str, schema: &Value, path: &str, faults: &mut Vec<Fault>) {
    if let Some(allowed) = schema["enum"].as_array() {
        if !allowed.iter().any(|value| value == text) {
            let fault = Fault::new(path, format!("`{}` is not among the allowed values", short(text)));
            let suggestion = suggestion(text, allowed.iter().filter_map(Value::as_str));
            faults.push(Fault { way_out: suggestion, ..fault });
        }
        return;
    }
    let length = text.chars().count() as u64;
    if schema["minLength"].as_u64().is_some_and(|least| length < least) {
        faults.push(Fault::new(path, "the text is empty"));
        return;
    }
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        faults.push(Fault::new(path, format!("the text has {length} characters; at most {most} are allowed")));
        return;
    }
    if schema["pattern"] == DurationText::PATTERN {
        if let Err(cause) = streamkeeper_types::duration::parse(text) {
            faults.push(Fault::new(path, cause));
        }
    } else if schema["pattern"] == StorageUri::PATTERN && !StorageUri::is_valid(text) {
        faults.push(Fault::new(path, format!("`{}` is no storage address", short(text))).way_out(
            "write s3://…, gs://…, abfs://…, hdfs://… or file:///…; on a laptop leave checkpoint.storage out",
        ));
    }
}

fn check_integer(number: &serde_json::Number, schema: &Value, path: &str, faults: &mut Vec<Fault>) {
    let value = number.as_i64().map_or_else(|| number.as_u64().map(i128::from), |value| Some(i128::from(value)));
    let (least, most) = (schema["minimum"].as_i64().map(i128::from), schema["maximum"].as_i64().map(i128::from));
    let Some(value) = value else { return };
    let too_small = least.is_some_and(|least| value < least);
    let too_large = value > most.unwrap_or(i128::from(i64::MAX));
    if !too_small && !too_large {
        return;
    }
    let bounds = match (least, most) {
        (Some(least), Some(most)) => format!("it must lie between {least} and {most}"),
        (Some(least), None) => format!("it must be at least {least}"),
        (None, Some(most)) => format!("it must be at most {most}"),
        (None, None) => "it is too large".to_owned(),
    };
    faults.push(Fault::new(path, format!("{value} is out of bounds; {bounds}")));
}
