//! From the text of a YAML file to the StreamJobs in it, with every fault of their form.
//!
//! Only the form is judged here (schema, types, names); [`validate`](crate::validate()) judges the meaning.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::fault::Fault;
use crate::nearest::suggestion;
use crate::strict;
use crate::{StreamJob, crd, yaml};

const API_VERSION: &str = "streamkeeper.dev/v1alpha1";

/// Texts of the ConfigMaps at hand: name → key → text.
pub type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The StreamJobs, in their order.
    pub jobs: Vec<StreamJob>,
    /// ConfigMaps, since a job may take its SQL from one.
    pub config_maps: ConfigMaps,
    /// All other objects: only a cluster has a use for them.
    pub aside: Vec<ObjectName>,
}

/// Kind and name of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    pub kind: String,
    /// Empty if the object has none.
    pub name: String,
}

impl Manifest {
    /// The job of that name, or the only one.
    ///
    /// # Errors
    /// No job, no such job, or several without a name to choose by.
    pub fn job(&self, name: Option<&str>) -> Result<&StreamJob, Fault> {
        let names = || self.jobs.iter().filter_map(|job| job.metadata.name.as_deref());
        match (name, self.jobs.as_slice()) {
            (_, []) => Err(Fault::new("file", "there is no StreamJob in it")
                .way_out(format!("a StreamJob begins with `apiVersion: {API_VERSION}` and `kind: StreamJob`"))),
            (None, [job]) => Ok(job),
            (None, _) => Err(Fault::new("file", format!("{} StreamJobs are in it", self.jobs.len()))
                .way_out(format!("name one of them: {}", names().collect::<Vec<_>>().join(", ")))),
            (Some(name), jobs) => {
                let found = jobs.iter().find(|job| job.metadata.name.as_deref() == Some(name));
                found.ok_or_else(|| Fault {
                    way_out: suggestion(name, names()),
                    ..Fault::new("file", format!("there is no StreamJob `{name}` in it"))
                })
            }
        }
    }
}

/// Reads the text of a YAML file.
///
/// # Errors
/// Unreadable YAML, which ends the reading; else all faults of all documents.
pub fn load(text: &str) -> Result<Manifest, Vec<Fault>> {
    let documents = yaml::read(text).map_err(|fault| vec![fault])?;
    let mut manifest = Manifest::default();
    let mut faults = Vec::new();
    let several = documents.len() > 1;
    for (index, document) in documents.into_iter().enumerate() {
        let mut own = Vec::new();
        let title = add(&mut manifest, document, &mut own);
        for fault in own {
            let path = if several { format!("document {} ({title}): {}", index + 1, fault.path) } else { fault.path };
            faults.push(Fault { path, ..fault });
        }
    }
    let mut seen = BTreeMap::new();
    for job in &manifest.jobs {
        let key = (job.metadata.namespace.as_deref(), job.metadata.name.as_deref());
        if seen.insert(key, ()).is_some() {
            faults.push(Fault::new("file", format!("StreamJob `{}` stands in it twice", key.1.unwrap_or_default())));
        }
    }
    if faults.is_empty() { Ok(manifest) } else { Err(faults) }
}

/// Adds one document, and returns what to call it.
fn add(manifest: &mut Manifest, document: Value, faults: &mut Vec<Fault>) -> String {
    let Value::Object(mut object) = document else {
        faults.push(Fault::new("document", "it is no object: `apiVersion`, `kind` and `metadata` are expected"));
        return "no object".to_owned();
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = object.get("kind").map(text).unwrap_or_default();
    let api_version = object.get("apiVersion").map(text).unwrap_or_default();
    let name = object.get("metadata").map(|metadata| text(&metadata["name"])).unwrap_or_default();
    let title = format!("{kind} {name}").trim().to_owned();

    if kind.is_empty() {
        faults.push(Fault::new("kind", "this field is missing").way_out("write `kind: StreamJob`"));
        return title;
    }
    let ours = api_version.starts_with("streamkeeper.dev/");
    match (kind.as_str(), ours) {
        ("StreamJob", _) => {
            if api_version != API_VERSION {
                faults.push(
                    Fault::new("apiVersion", format!("`{api_version}` is no version of StreamJob"))
                        .way_out(format!("write `apiVersion: {API_VERSION}`")),
                );
            }
            manifest.jobs.extend(stream_job(object, faults));
        }
        ("ConfigMap", false) => {
            manifest.config_maps.insert(name, config_map_texts(object.remove("data")));
        }
        ("Savepoint", true) | (_, false) => manifest.aside.push(ObjectName { kind, name }),
        (_, true) => faults.push(Fault {
            way_out: suggestion(&kind, ["StreamJob", "Savepoint"]),
            ..Fault::new("kind", format!("streamkeeper.dev has no kind `{kind}`"))
        }),
    }
    title
}

fn config_map_texts(data: Option<Value>) -> BTreeMap<String, String> {
    let Some(Value::Object(data)) = data else { return BTreeMap::new() };
    data.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_owned()))).collect()
}

/// Of the metadata a person writes, these matter here; what the server adds is taken as it comes.
static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 45 },
            "namespace": { "type": "string", "minLength": 1, "maxLength": 63 },
            "labels": texts,
            "annotations": texts,
            "creationTimestamp": {}, "deletionGracePeriodSeconds": {}, "deletionTimestamp": {}, "finalizers": {},
            "generateName": {}, "generation": {}, "managedFields": {}, "ownerReferences": {}, "resourceVersion": {},
            "selfLink": {}, "uid": {},
        }
    })
});

fn stream_job(object: Map<String, Value>, faults: &mut Vec<Fault>) -> Option<StreamJob> {
    let before = faults.len();
    let mut value = Value::Object(object);
    strict::prune_nulls(&mut value);
    let object = value.as_object_mut()?;
    // A file made by `kubectl get -o yaml` holds a status; nobody here reads it.
    object.remove("status");

    for name in object.keys().filter(|name| !["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str())) {
        let suggestion = suggestion(name, ["apiVersion", "kind", "metadata", "spec"]);
        faults.push(Fault { way_out: suggestion, ..Fault::new(strict::member("", name), "there is no such field") });
    }
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    strict::check(&metadata, &METADATA, "metadata", faults);
    if let Some(fault) = metadata["name"].as_str().and_then(|name| name_fault(name, "metadata.name")) {
        faults.push(fault);
    }
    if let Some(fault) = metadata["namespace"].as_str().and_then(|name| name_fault(name, "metadata.namespace")) {
        faults.push(fault);
    }
    match object.get("spec") {
        Some(spec) => strict::check(spec, spec_schema(), "spec", faults),
        None => faults.push(Fault::new("spec", "this field is missing")),
    }
    if faults.len() > before {
        return None;
    }
    // Only what server-made metadata or an embedded Kubernetes type holds can still be wrong.
    for server_made in ["managedFields", "creationTimestamp", "deletionTimestamp", "ownerReferences", "finalizers"] {
        object.get_mut("metadata").and_then(Value::as_object_mut)?.remove(server_made);
    }
    match serde_json::from_value(value) {
        Ok(job) => Some(job),
        Err(error) => {
            faults.push(Fault::new("spec", error.to_string()));
            None
        }
    }
}

/// The schema of `spec`, also for specs that did not come from a file.
pub(crate) fn spec_schema() -> &'static Value {
    &crd::stream_job().schema()["properties"]["spec"]
}

/// Names become labels and parts of names of other objects.
fn name_fault(name: &str, path: &str) -> Option<Fault> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = name.starts_with(plain) && name.ends_with(plain) && name.chars().all(|c| plain(c) || c == '-');
    (!valid && !name.is_empty()).then(|| {
        Fault::new(path, format!("`{}` is no valid name", name.escape_debug()))
            .way_out("use lower-case letters, digits and `-`, with a letter or digit at both ends")
    })
}
