//! What is only looked at.

use std::{any::type_name, collections::BTreeMap, thread};

use serde::de::DeserializeOwned;
use serde_json::Value;
use streamkeeper_jobmanager::{
    metrics::{self, Server},
    rest::openapi_json,
};
use streamkeeper_protocol::rest::{
    Accepted, BoundsView, CheckpointList, CheckpointState, CheckpointView, ConfigView, Exceptions, Health, JobList,
    JobPhaseView, JobView, OperationView, Overview, PlanView, RescaleList, Role, SnapshotKind, StatusView,
    SubtaskPhase, TaskManagerList, VertexDetail,
};

use super::{Api, JOB, LOCATION, TOKEN, listen};
use crate::{
    http::send,
    world::{Fault, Faults, Gate, LONG, World},
};

/// An operation of the document: how it is asked, and the type that its answer must be.
struct Operation {
    method: &'static str,
    path: &'static str,
    body: &'static str,
    status: u16,
    /// Name of the type, and whether a text is one.
    answer: (&'static str, fn(&str) -> bool),
}

fn typed<T: DeserializeOwned>() -> (&'static str, fn(&str) -> bool) {
    let name = type_name::<T>();
    (name.rsplit("::").next().unwrap_or(name), |text| serde_json::from_str::<T>(text).is_ok())
}

fn get<T: DeserializeOwned>(path: &'static str) -> Operation {
    Operation { method: "get", path, body: "", status: 200, answer: typed::<T>() }
}

fn post(path: &'static str, body: &'static str) -> Operation {
    Operation { method: "post", path, body, status: 202, answer: typed::<Accepted>() }
}

/// All of them, those last that end the job.
fn operations() -> Vec<Operation> {
    let text = ("", (|text: &str| text.ends_with("# EOF\n")) as fn(&str) -> bool);
    vec![
        get::<Health>("/healthz"),
        Operation { answer: text, ..get::<Value>("/metrics") },
        Operation { answer: ("", typed::<Value>().1), ..get::<Value>("/openapi.json") },
        get::<Overview>("/overview"),
        get::<ConfigView>("/config"),
        get::<TaskManagerList>("/taskmanagers"),
        get::<JobList>("/jobs"),
        get::<JobView>("/jobs/{job}"),
        get::<PlanView>("/jobs/{job}/plan"),
        get::<StatusView>("/jobs/{job}/status"),
        get::<Exceptions>("/jobs/{job}/exceptions"),
        get::<VertexDetail>("/jobs/{job}/vertices/{vertex}"),
        get::<RescaleList>("/jobs/{job}/rescales"),
        get::<BoundsView>("/jobs/{job}/resources"),
        Operation { method: "put", body: r#"{"parallelism":2}"#, ..get::<BoundsView>("/jobs/{job}/resources") },
        get::<CheckpointList>("/jobs/{job}/checkpoints"),
        get::<CheckpointView>("/jobs/{job}/checkpoints/{id}"),
        get::<OperationView>("/requests/{request}"),
        post("/jobs/{job}/checkpoints", ""),
        post("/jobs/{job}/savepoints", r#"{"name":"documented","format":"native"}"#),
        post("/savepoint-disposal", r#"{"savepoint":"nothing"}"#),
        post("/jobs/{job}/stop", r#"{"drain":true}"#),
        post("/jobs/{job}/cancel", ""),
    ]
}

/// The path with its variable parts filled in.
fn filled(path: &str, id: &str, request: &str) -> String {
    let path = path.replace("{job}", "default.test").replace("{vertex}", "0");
    path.replace("{id}", id).replace("{request}", request)
}

#[test]
fn every_operation_of_the_document_is_served_with_the_type_that_it_names() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut documented: BTreeMap<(String, String), Value> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            documented.insert((method.clone(), path.clone()), operation["responses"].clone());
        }
    }
    let (_world, api) = Api::standing();
    let checkpoint = api.outcome(&format!("{JOB}/checkpoints"), "");
    let (id, request) = (checkpoint.savepoint.unwrap().id.to_string(), checkpoint.request);
    for Operation { method, path, body, status, answer: (name, is_one) } in operations() {
        let responses = documented.remove(&(method.to_owned(), path.to_owned()));
        let responses = responses.unwrap_or_else(|| panic!("{method} {path} is not in the document"));
        let schema = &responses[status.to_string()]["content"]["application/json"]["schema"]["$ref"];
        let of_document = schema.as_str().and_then(|schema| schema.rsplit('/').next()).unwrap_or_default();
        assert_eq!(of_document, name, "{method} {path}: {responses}");
        assert!(responses["default"].to_string().contains("schemas/Failure"), "{method} {path}");
        let path = filled(path, &id, &request);
        let response = send(api.address(), &method.to_ascii_uppercase(), &path, &[], body);
        assert_eq!(response.status, status, "{method} {path}: {response:?}");
        assert!(is_one(&response.body), "{method} {path} gives no {name}: {response:?}");
    }
    assert!(documented.is_empty(), "not tested: {:?}", documented.keys());
}

#[test]
fn every_schema_that_the_document_refers_to_is_in_it() {
    let text = openapi_json();
    let document: Value = serde_json::from_str(&text).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let is_type = |name: &String| name.starts_with(|c: char| c.is_ascii_uppercase());
    assert!(schemas.keys().all(is_type), "{:?}", schemas.keys());
}

#[test]
fn a_job_shows_its_tasks_and_figures() {
    let (_world, api) = Api::standing();
    let view: JobView = api.get(JOB);
    assert_eq!((view.phase, view.parallelism, view.slots, view.generation), (JobPhaseView::Running, 2, 8, 1));
    assert_eq!((view.namespace.as_str(), view.name.as_str(), view.restored_from), ("default", "test", None));
    let names: Vec<&str> = view.vertices.iter().map(|vertex| vertex.name.as_str()).collect();
    assert_eq!(names, ["Source(numbers)", "Count(key) → Sink(outside)"]);
    let detail: VertexDetail = api.get(&format!("{JOB}/vertices/0"));
    let running: Vec<_> = detail.subtasks.iter().map(|s| (s.index, s.phase, s.attempt)).collect();
    assert_eq!(running, [(0, SubtaskPhase::Running, 0), (1, SubtaskPhase::Running, 0)]);
    let hosts: Vec<_> = detail.subtasks.iter().map(|s| s.task_manager.as_deref()).collect();
    assert_eq!(hosts, [Some("tm-1"), None]);
    let plan: PlanView = api.get(&format!("{JOB}/plan"));
    let edges: Vec<_> = plan.edges.iter().map(|edge| (edge.from, edge.to, edge.partitioning.as_str())).collect();
    assert_eq!(edges, [(0, 1, "hash")]);
    assert_eq!(
        plan.vertices[1].operators.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(),
        ["Count(key)", "Sink(outside)"]
    );
    let overview: Overview = api.get("/overview");
    assert_eq!((overview.task_managers, overview.slots, overview.slots_used), (1, 8, 2));
}

#[test]
fn a_checkpoint_shows_each_tasks_part() {
    let (_world, api) = Api::standing();
    let result = api.outcome(&format!("{JOB}/checkpoints"), "").savepoint.unwrap();
    assert_eq!(result.location, format!("{LOCATION}/chk-{}", result.id));
    let list: CheckpointList = api.get(&format!("{JOB}/checkpoints"));
    assert_eq!((list.counts.completed, list.counts.failed, list.counts.in_progress), (1, 0, 0));
    assert_eq!(list.counts.last.as_ref().map(|last| last.id), Some(result.id));
    assert!(list.checkpoints.iter().all(|checkpoint| checkpoint.by_task.is_empty()));
    let one: CheckpointView = api.get(&format!("{JOB}/checkpoints/{}", result.id));
    assert_eq!((one.kind, one.state), (SnapshotKind::Checkpoint, CheckpointState::Completed));
    assert_eq!((one.tasks, one.acknowledged, one.location), (4, 4, Some(result.location)));
    let mut tasks: Vec<&str> = one.by_task.iter().map(|part| part.task.as_str()).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["0/0", "0/1", "1/0", "1/1"]);
    assert_eq!(one.uploaded_bytes, one.by_task.iter().map(|part| part.uploaded_bytes).sum::<u64>());
}

#[test]
fn a_failure_is_explained_with_the_task_that_failed_first() {
    let mut world = World { faults: Faults::after(5, Fault::Error), ..World::new(4, 300) };
    world.numbers.gate = Gate::default();
    let api = Api::of(&world, None);
    api.job.wait_until(LONG, |status| status.restarts > 0);
    let Exceptions { exceptions, dropped } = api.get(&format!("{JOB}/exceptions"));
    assert_eq!((exceptions.len(), dropped), (1, 0));
    let [exception] = &exceptions[..] else { panic!("{exceptions:?}") };
    assert!(
        exception.restarted && exception.task.as_deref().is_some_and(|task| task.starts_with("1/")),
        "{exception:?}"
    );
    assert_eq!(exception.failure.code, "SINK_FAILED");
    let view: JobView = api.get(JOB);
    assert_eq!(view.last_failure.as_ref(), Some(&exception.failure));
}

#[test]
fn whoever_waits_for_news_is_answered_when_there_is_some() {
    let (_world, api) = Api::standing();
    let path = format!("{JOB}/status");
    let seen: StatusView = api.get(&path);
    assert_eq!((seen.phase, seen.last_completed), (JobPhaseView::Running, None));
    let address = api.address();
    let waiting = format!("{path}?wait=30s&after={}", seen.revision);
    let waiting = thread::spawn(move || send(address, "GET", &waiting, &[], "").json::<StatusView>());
    let id = api.outcome(&format!("{JOB}/checkpoints"), "").savepoint.unwrap().id;
    let news = waiting.join().unwrap();
    assert!(news.revision > seen.revision, "{news:?}");
    let later: StatusView = api.get(&path);
    assert_eq!(later.last_completed, Some(id));
}

#[test]
fn every_metric_of_a_jobmanager_is_served_and_those_of_a_running_job_have_samples() {
    let (_world, api) = Api::standing();
    api.outcome(&format!("{JOB}/checkpoints"), "");
    let response = send(api.address(), "GET", "/metrics", &[], "");
    assert!(response.headers.contains("content-type: application/openmetrics-text"), "{}", response.headers);
    let samples: Vec<&str> = response.body.lines().filter(|line| !line.starts_with('#')).collect();
    let has_sample = |name: &str| samples.iter().any(|line| line.split(['{', ' ']).next() == Some(name));
    // Not all sources know their size or tell a watermark, and this job began empty.
    let optional = [
        &metrics::VERTEX_SOURCE_READ,
        &metrics::VERTEX_SOURCE_FOUND,
        &metrics::VERTEX_WATERMARK,
        &metrics::CHECKPOINT_RESTORED,
    ];
    for metric in metrics::ALL.iter().filter(|metric| metric.server != Server::TaskManager) {
        let unit = metric.unit.map_or("", metrics::Unit::suffix);
        let family = format!("# TYPE {}{unit} {}", metric.stem(), metric.kind);
        assert!(response.body.lines().any(|line| line == family), "{family}");
        assert!(has_sample(metric.name) || optional.contains(metric), "{}", metric.name);
    }
    for line in &samples {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(samples.contains(&r#"streamkeeper_checkpoints_completed_total{namespace="default",job="test"} 1"#));
    assert!(samples.contains(&r#"streamkeeper_job_phase{namespace="default",job="test",phase="running"} 1"#));
}

#[test]
fn b97_neither_the_token_nor_a_password_in_the_sql_is_ever_served() {
    let mut world = World { interval: None, ..World::new(4, 300) };
    world.numbers.gate = Gate::default();
    let api = Api::of(&world, Some(TOKEN));
    api.wait_for_records();
    let bearer = format!("Bearer {TOKEN}");
    let mut seen = 0;
    for path in operations().iter().filter(|operation| operation.method == "get").map(|operation| operation.path) {
        let path = filled(path, "1", "none");
        let response = send(api.address(), "GET", &path, &[("Authorization", &bearer)], "");
        assert!(!response.body.contains("canary"), "{path}: {}", response.body);
        seen += usize::from(response.status == 200);
    }
    assert!(seen >= 15, "{seen} answers");
}

#[test]
fn everything_but_health_and_metrics_needs_the_token() {
    let mut world = World { interval: None, ..World::new(4, 300) };
    world.numbers.gate = Gate::default();
    let api = Api::of(&world, Some(TOKEN));
    for Operation { method, path, .. } in operations() {
        let is_open = matches!(path, "/healthz" | "/metrics");
        let path = filled(path, "1", "none");
        for given in [None, Some("Bearer wrong"), Some("Bearer"), Some(TOKEN), Some("Basic Y2FuYXJ5")] {
            let headers: Vec<_> = given.iter().map(|given| ("Authorization", *given)).collect();
            let response = send(api.address(), &method.to_ascii_uppercase(), &path, &headers, "");
            assert_eq!(response.status, if is_open { 200 } else { 401 }, "{path}: {response:?}");
            if !is_open {
                assert_eq!(response.failure(401).code, "UNAUTHORIZED");
                assert!(response.headers.contains("www-authenticate: bearer"), "{}", response.headers);
            }
        }
    }
    api.job.cancel();
}

#[test]
fn b98_a_standby_lives_and_says_who_leads() {
    let server = listen(None);
    let ask = |path: &str| send(server.address(), "GET", path, &[], "");
    assert_eq!(ask("/overview").failure(503).code, "NOT_LEADING");
    server.stand_by(Some("jm-1:6123".into()));
    for path in ["/overview", "/config", "/jobs", JOB, "/jobs/default.test/checkpoints", "/taskmanagers"] {
        let failure = ask(path).failure(503);
        assert!(failure.code == "NOT_LEADING" && failure.cause.contains("jm-1:6123"), "{path}: {failure:?}");
    }
    assert_eq!(ask("/healthz").json::<Health>().role, Role::Standby);
    assert!(ask("/metrics").body.contains("streamkeeper_jobmanager_leading 0"));
}
