//! The CustomResourceDefinitions, from the types: what kube derives, made fit for `kubectl apply` and for people to read.

use std::sync::LazyLock;

use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{Savepoint, StreamJob, cel};

/// One CustomResourceDefinition and the file below `crds/` that holds it.
#[derive(Debug, Clone)]
pub struct Crd {
    pub file: &'static str,
    pub definition: Value,
}

impl Crd {
    /// The OpenAPI schema of its only version.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    }
}

/// All definitions, in the order of the files.
pub fn all() -> [&'static Crd; 2] {
    [savepoint(), stream_job()]
}

/// The definition of StreamJob.
pub fn stream_job() -> &'static Crd {
    static CRD: LazyLock<Crd> = LazyLock::new(|| {
        let mut definition = tidied(&StreamJob::crd());
        // Children are named after the job, so the rule needs the object's metadata and stands at the root.
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = cel::job_name();
        Crd { file: "streamjobs.yaml", definition }
    });
    &CRD
}

/// The definition of Savepoint.
pub fn savepoint() -> &'static Crd {
    static CRD: LazyLock<Crd> =
        LazyLock::new(|| Crd { file: "savepoints.yaml", definition: tidied(&Savepoint::crd()) });
    &CRD
}

fn tidied(definition: &impl serde::Serialize) -> Value {
    let mut value = json!(definition);
    tidy(&mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    // The order must not depend on which features of serde_json a build happens to have.
    value.sort_all_objects();
    value
}

/// Takes out of a schema what the server warns about or does not need.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // Without it the server prunes a null and sets the default, and `has()` in CEL means what it says.
            members.remove("nullable");
            if members.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                members.remove("format");
            }
            if let Some(peers) = members.get_mut("allowFrom").and_then(|field| field.get_mut("items")) {
                strip_descriptions(peers);
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        // kube keeps bounds as floats.
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 9e15) {
                #[expect(clippy::cast_possible_truncation, reason = "whole and within ±9e15")]
                let whole = whole as i64;
                *schema = json!(whole);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Kubernetes documents its own types; their text would be a large part of ours.
fn strip_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("description").is_some_and(Value::is_string) {
                members.remove("description");
            }
            members.values_mut().for_each(strip_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
