//! The schema keeps to what Kubernetes accepts, and to the bounds that CEL's cost estimate needs.

use serde_json::Value;
use streamkeeper_api::crd;

/// Calls `visit` with every schema node: its path, and itself.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), visit);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            walk(&schema[part], &format!("{path}[]"), visit);
        }
    }
}

#[test]
fn schemas_are_structural() {
    for crd in crd::all() {
        walk(crd.schema(), "", &mut |path, node| {
            for refused in
                ["$ref", "$schema", "definitions", "oneOf", "anyOf", "allOf", "not", "nullable", "const", "title"]
            {
                assert!(node.get(refused).is_none() || path.is_empty(), "{}{path}: {refused}", crd.file);
            }
            let typed = node["type"].is_string() || node["x-kubernetes-int-or-string"] == true;
            assert!(typed, "{}{path} has no type: {node}", crd.file);
            assert!(node["properties"].is_null() || node["additionalProperties"].is_null(), "{}{path}", crd.file);
            let format = node["format"].as_str();
            assert!(matches!(format, None | Some("int32" | "int64" | "date-time")), "{}{path}: {format:?}", crd.file);
        });
    }
}

#[test]
fn every_text_list_and_map_that_a_person_writes_has_a_bound() {
    for crd in crd::all() {
        walk(&crd.schema()["properties"]["spec"], "spec", &mut |path, node| {
            // Kubernetes' own types bring their own schema; no rule reads them.
            if path.starts_with("spec.networkPolicy.allowFrom[]") {
                return;
            }
            let bound = match node["type"].as_str() {
                Some("string") if node["enum"].is_null() => "maxLength",
                Some("array") => "maxItems",
                Some("object") if node["additionalProperties"].is_object() => "maxProperties",
                Some("integer") if path != "spec.restore.discardUpTo" => "maximum",
                _ => return,
            };
            assert!(node[bound].is_number(), "{}: {path} has no {bound}", crd.file);
        });
    }
}

#[test]
fn patterns_are_those_that_the_command_line_knows_too() {
    walk(&crd::stream_job().schema()["properties"]["spec"], "spec", &mut |path, node| {
        if let Some(pattern) = node["pattern"].as_str() {
            assert!(
                ["^([0-9]+(ms|s|m|h))+$", "^(s3|gs|abfs|hdfs|file)://.+"].contains(&pattern)
                    || path.contains("allowFrom"),
                "{path}: {pattern}"
            );
        }
    });
}

#[test]
fn rules_stand_where_their_fields_are() {
    let schema = crd::stream_job().schema();
    let rules =
        |pointer: &str| schema.pointer(pointer).unwrap()["x-kubernetes-validations"].as_array().map_or(0, Vec::len);
    assert_eq!(rules(""), 1);
    assert_eq!(rules("/properties/spec"), 7);
    assert_eq!(rules("/properties/spec/properties/checkpoint"), 3);
    assert_eq!(rules("/properties/spec/properties/savepoint"), 1);
    assert_eq!(rules("/properties/spec/properties/upgrade/properties/rollback"), 1);
    assert_eq!(rules("/properties/spec/properties/restore"), 1);
    assert_eq!(rules("/properties/spec/properties/deletionPolicy"), 1);
    assert_eq!(rules("/properties/spec/properties/autoscaler"), 3);
    let savepoint = crd::savepoint().schema();
    assert_eq!(savepoint["properties"]["spec"]["x-kubernetes-validations"].as_array().map_or(0, Vec::len), 4);
}

#[test]
fn names_columns_and_scale_are_as_promised() {
    let spec = &crd::stream_job().definition["spec"];
    assert_eq!(spec["group"], "streamkeeper.dev");
    assert_eq!(spec["names"]["shortNames"][0], "sj");
    assert_eq!(spec["names"]["plural"], "streamjobs");
    let version = &spec["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"]["scale"]["specReplicasPath"], ".spec.parallelism");
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let shown: Vec<_> =
        columns.iter().filter(|column| column["priority"].is_null()).map(|column| &column["name"]).collect();
    assert_eq!(shown, ["State", "Health", "Parallelism", "Records/s", "Lag", "Checkpoint", "Restarts", "Age"]);
}
