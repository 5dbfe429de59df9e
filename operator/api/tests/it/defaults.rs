//! The server's defaults and serde's are the same.

use serde_json::{Map, Value, json};
use streamkeeper_api::{SavepointSpec, StreamJobSpec, crd};

/// Sets defaults as the API server does: what is missing first, then inside of what is there.
fn with_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let properties = schema["properties"].as_object();
            for (name, field) in properties.into_iter().flatten() {
                if !members.contains_key(name) && !field["default"].is_null() {
                    members.insert(name.clone(), field["default"].clone());
                }
            }
            for (name, member) in members {
                let known = properties.and_then(|properties| properties.get(name));
                with_defaults(member, known.unwrap_or(&schema["additionalProperties"]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| with_defaults(item, &schema["items"])),
        _ => {}
    }
}

fn spec_schema(crd: &'static crd::Crd) -> &'static Value {
    &crd.schema()["properties"]["spec"]
}

#[track_caller]
fn check_job(spec: Value) {
    let mut by_server = spec.clone();
    with_defaults(&mut by_server, spec_schema(crd::stream_job()));
    let by_serde: StreamJobSpec = serde_json::from_value(spec).unwrap();
    assert_eq!(by_server, json!(by_serde));
}

#[test]
fn the_server_and_serde_set_the_same_defaults() {
    check_job(json!({}));
    check_job(json!({ "sql": "SELECT 1", "checkpoint": { "interval": "1s" }, "upgrade": { "rollback": {} } }));
    check_job(json!({ "sqlFrom": { "configMap": "c" }, "savepoint": { "schedule": { "cron": "0 * * * *" } } }));
    check_job(json!({ "program": { "image": "i", "env": [{ "name": "A" }] }, "autoscaler": { "limits": {} } }));
    check_job(json!({ "autoscaler": { "excludedPeriods": [{ "cron": "0 * * * *", "duration": "1h" }] } }));
    check_job(json!({ "taskManager": { "resources": { "requests": { "cpu": "2" } } } }));

    let mut by_server = json!({ "jobName": "j" });
    with_defaults(&mut by_server, spec_schema(crd::savepoint()));
    let by_serde: SavepointSpec = serde_json::from_value(json!({ "jobName": "j" })).unwrap();
    assert_eq!(by_server, json!(by_serde));
}

fn each_default(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().unwrap_or(&Map::new()) {
        let place = format!("{path}.{name}");
        if field["default"].is_object() {
            visit(&place, field);
        }
        each_default(field, &place, visit);
    }
}

#[test]
fn defaults_of_structs_are_complete_objects() {
    let mut seen = 0;
    each_default(spec_schema(crd::stream_job()), "spec", &mut |path, field| {
        let mut filled = field["default"].clone();
        with_defaults(&mut filled, field);
        assert_eq!(filled, field["default"], "{path}");
        seen += 1;
    });
    assert!(seen > 15, "{seen}");
}

#[test]
fn what_is_derived_has_no_default_in_the_schema() {
    let spec = spec_schema(crd::stream_job());
    for path in ["/properties/maxParallelism", "/properties/image", "/properties/restart/properties/strategy"] {
        let field = spec.pointer(path).unwrap();
        assert!(field.get("default").is_none(), "{path}");
    }
    assert!(spec_schema(crd::savepoint())["properties"]["format"].get("default").is_none());
}
