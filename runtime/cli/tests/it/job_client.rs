//! `streamkeeper job` against a scripted server.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output},
};

use serde_json::{Value, json};
use streamkeeper_protocol::rest::{
    BoundsView, CheckpointCounts, CheckpointList, CheckpointState, CheckpointTask, CheckpointView, ExceptionView,
    Exceptions, Failure, JobPhaseView, JobSummary, JobView, OperationKind, OperationState, OperationView, Overview,
    RescaleList, RescaleReason, RescaleState, RescaleView, SavepointResult, SnapshotKind, SplitProgress, SubtaskPhase,
    SubtaskView, TaskManagerList, TaskManagerView, TimeShares, VertexDetail, VertexView,
};

use crate::{
    example::{BINARY, assert_success},
    scripted_server::{Answer, Scripted, refuses, says},
};

const JOB: &str = "default.clicks";

fn job(server: &Scripted, arguments: &[&str]) -> Output {
    ask(&server.url(), arguments)
}

fn ask(url: &str, arguments: &[&str]) -> Output {
    Command::new(BINARY).arg("job").args(arguments).args(["--rest", url]).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert_success(output);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Exit code and standard error.
fn failed(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

fn failure(code: &str, cause: &str) -> Failure {
    Failure {
        code: code.to_owned(),
        cause: cause.to_owned(),
        way_out: None,
        place: vec![],
        fault: "external".to_owned(),
    }
}

fn overview(jobs: &[&str]) -> Overview {
    let summary = |id: &&str| JobSummary {
        id: (*id).to_owned(),
        namespace: "default".to_owned(),
        name: id.trim_start_matches("default.").to_owned(),
        phase: JobPhaseView::Running,
        parallelism: 2,
    };
    let jobs = jobs.iter().map(summary).collect();
    Overview { version: "0.1.0".to_owned(), jobs, task_managers: 2, slots: 4, slots_used: 2 }
}

fn checkpoint(id: u64) -> CheckpointView {
    CheckpointView {
        id,
        kind: SnapshotKind::Checkpoint,
        state: CheckpointState::Completed,
        triggered_at: 1_769_853_903_000,
        duration_ms: Some(14),
        acknowledged: 4,
        tasks: 4,
        start_delay_us: 180,
        alignment_us: 3_250,
        sync_us: 90,
        async_us: 11_000,
        uploaded_bytes: 2 << 20,
        full_bytes: 1 << 30,
        location: Some(format!("s3://state/clicks/chk-{id}")),
        failure: None,
        by_task: vec![],
    }
}

fn vertex() -> VertexView {
    VertexView {
        id: 0,
        name: "clicks → Group(user)".to_owned(),
        parallelism: 2,
        records_in: 1_234_567,
        records_out: 1_000,
        late_records: 3,
        state_bytes: 5 << 20,
        watermark: Some(1_769_853_903_000),
        time: TimeShares { busy: 912, idle: 80, back_pressured: 8 },
        source: Some(SplitProgress { read_bytes: 1 << 20, total_bytes: Some(4 << 20) }),
        ..VertexView::default()
    }
}

fn view(phase: JobPhaseView, parallelism: u32) -> JobView {
    JobView {
        id: JOB.to_owned(),
        namespace: "default".to_owned(),
        name: "clicks".to_owned(),
        phase,
        parallelism,
        bounds: BoundsView { least: 1, target: 2 },
        slots: 4,
        max_parallelism: 128,
        generation: 3,
        started_at: 1_769_853_903_000,
        restarts: 1,
        restored_from: Some(7),
        deployment_ms: Some(120),
        last_failure: Some(failure("TASK_MANAGER_LOST", "tm-2 is gone")),
        checkpoints: CheckpointCounts { completed: 12, failed: 1, in_progress: 0, last: Some(checkpoint(12)) },
        vertices: vec![vertex()],
    }
}

fn operation(kind: OperationKind, state: OperationState) -> OperationView {
    let completed = state == OperationState::Completed;
    let location = "s3://state/clicks/savepoints/friday".to_owned();
    OperationView {
        request: "r1".to_owned(),
        kind,
        state,
        started_at: 1_000,
        ended_at: completed.then_some(4_200),
        savepoint: completed.then_some(SavepointResult { id: 13, location }),
        failure: None,
    }
}

fn with_one_job(path: &str, answers: Vec<Answer>) -> Scripted {
    Scripted::start([("GET /overview", vec![says(overview(&[JOB]))]), (path, answers)])
}

#[test]
fn status_is_a_table_for_people_and_the_answer_itself_for_scripts() {
    let said = view(JobPhaseView::Running, 2);
    let server = with_one_job("GET /jobs/default.clicks", vec![says(&said)]);
    let text = stdout(&job(&server, &["status"]));
    assert_has(&text, &["default.clicks running", "parallelism 2 of 1–2, 4 slots", "1 restart ", "reign 3"]);
    assert_has(&text, &["12 completed, 1 failed; last 12: 2.00 MiB of 1.00 GiB in 14 ms", "restored from 7"]);
    assert_has(&text, &["[TASK_MANAGER_LOST] tm-2 is gone", "3 late and 0 bad records"]);
    let row = text.lines().find(|line| line.contains("Group(user)")).unwrap();
    assert_has(row, &["1 234 567", "1 000", "5.00 MiB", "2026-01-31 10:05:03", "1.00 MiB of 4.00 MiB"]);
    assert!(!text.contains('\x1b'), "colours belong on a terminal only");

    let json: JobView = serde_json::from_str(&stdout(&job(&server, &["status", "--output", "json"]))).unwrap();
    assert_eq!(json, said);
}

#[test]
fn watching_ends_with_the_job() {
    let answers = [JobPhaseView::Running, JobPhaseView::Ended].map(|phase| says(view(phase, 2)));
    let server = with_one_job("GET /jobs/default.clicks", answers.to_vec());
    let arguments = ["status", "--watch", "100ms", "--output", "json"];
    let text = stdout(&job(&server, &arguments));
    let phases: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["phase"].clone()).collect();
    assert_eq!(phases, [json!("running"), json!("ended")]);
}

#[test]
fn top_tells_who_is_busy_and_how_fast() {
    let mut later = view(JobPhaseView::Running, 2);
    later.vertices[0].records_in += 1_000;
    let server = with_one_job("GET /jobs/default.clicks", vec![says(view(JobPhaseView::Running, 2)), says(&later)]);
    let text = stdout(&job(&server, &["top", "--output", "json"]));
    let json: Value = serde_json::from_str(&text).unwrap();
    let vertex = &json["vertices"][0];
    assert!(vertex["records_in_per_second"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!(vertex["records_out_per_second"], json!(0.0));
    assert!(vertex["lag_ms"].as_i64().unwrap() > 0 && vertex["time"]["busy"] == 912, "{json}");
}

#[test]
fn checkpoints_tell_sizes_times_and_why_one_failed() {
    let expired = CheckpointView {
        state: CheckpointState::Failed,
        failure: Some(failure("CHECKPOINTS_FAILING", "task 1/0 was too slow")),
        location: None,
        ..checkpoint(13)
    };
    let counts = CheckpointCounts { completed: 12, failed: 1, in_progress: 0, last: None };
    let list = CheckpointList { counts, checkpoints: vec![expired, checkpoint(12)] };
    let task = CheckpointTask {
        task: "1/0".to_owned(),
        start_delay_us: 180,
        alignment_us: 3_250,
        sync_us: 90,
        async_us: 11_000,
        uploaded_bytes: 512,
        full_bytes: 1_024,
    };
    let detail = CheckpointView { by_task: vec![task], ..checkpoint(12) };
    let server = Scripted::start([
        ("GET /jobs/a.b/checkpoints", vec![says(&list)]),
        ("GET /jobs/a.b/checkpoints/12", vec![says(&detail)]),
    ]);
    let text = stdout(&job(&server, &["checkpoints", "--job", "a.b"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_has(lines[0], &["12 completed, 1 failed"]);
    assert_has(lines[2], &["13", "checkpoint", "failed", "task 1/0 was too slow"]);
    assert_has(lines[3], &["12", "completed", "2026-01-31 10:05:03", "14 ms", "4/4", "2.00 MiB", "1.00 GiB"]);

    let text = stdout(&job(&server, &["checkpoint", "12", "--job", "a.b"]));
    assert_has(&text, &["location     s3://state/clicks/chk-12", "acknowledged 4 of 4 tasks"]);
    assert_has(text.lines().last().unwrap(), &["1/0", "180 µs", "3.2 ms", "90 µs", "11 ms", "512 B", "1.00 KiB"]);
}

#[test]
fn a_savepoint_is_waited_for_and_asked_for_with_token_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "s3cret\n").unwrap();
    let states = [OperationState::InProgress, OperationState::InProgress, OperationState::Completed];
    let server = Scripted::start([
        ("GET /overview", vec![says(overview(&[JOB]))]),
        ("POST /jobs/default.clicks/savepoints", vec![refuses(202, json!({ "request": "r1" }))]),
        ("GET /requests/r1", states.map(|state| says(operation(OperationKind::Savepoint, state))).to_vec()),
    ]);
    let arguments = ["savepoint", "friday", "--format", "native", "--token-file", token.to_str().unwrap()];
    let text = stdout(&job(&server, &arguments));
    assert_eq!(text, "savepoint 13 in 3.2 s: s3://state/clicks/savepoints/friday\n");
    let [asked] = &server.asked("POST /jobs/default.clicks/savepoints")[..] else { panic!("one request") };
    assert_eq!(asked.json(), json!({ "name": "friday", "format": "native" }));
    assert_eq!(asked.headers["authorization"], "Bearer s3cret");
    assert_eq!(asked.headers["idempotency-key"].len(), 32);
    assert_eq!(server.asked("GET /requests/r1").len(), 3);
}

#[test]
fn without_waiting_the_id_is_printed_and_can_be_asked_for() {
    let server = Scripted::start([
        ("POST /jobs/a.b/stop", vec![refuses(202, json!({ "request": "r1" }))]),
        ("GET /requests/r1", vec![says(operation(OperationKind::Stop, OperationState::Completed))]),
    ]);
    let text = stdout(&job(&server, &["stop", "--savepoint", "friday", "--drain", "--no-wait", "--job", "a.b"]));
    assert_eq!(text, "r1\n");
    let asked = server.asked("POST /jobs/a.b/stop")[0].json();
    assert_eq!(asked, json!({ "name": "friday", "format": "canonical", "drain": true }));
    let text = stdout(&job(&server, &["request", "r1"]));
    assert_has(&text, &["stopped with savepoint 13", "--restore s3://state/clicks/savepoints/friday"]);
}

#[test]
fn a_post_without_an_answer_is_sent_again_under_the_same_key() {
    let line = "POST /jobs/a.b/cancel";
    let accepted = refuses(202, json!({ "request": "r1" }));
    let completed = says(operation(OperationKind::Cancel, OperationState::Completed));
    let server = Scripted::start([(line, vec![Answer::HangsUp, accepted]), ("GET /requests/r1", vec![completed])]);
    assert_has(&stdout(&job(&server, &["cancel", "--job", "a.b"])), &["cancelled"]);
    let keys: Vec<String> = server.asked(line).iter().map(|asked| asked.headers["idempotency-key"].clone()).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

#[test]
fn a_savepoint_that_fails_is_the_commands_error() {
    let failed_one = OperationView {
        failure: Some(failure("SAVEPOINT_FAILED", "task 1/0 declined")),
        ..operation(OperationKind::Savepoint, OperationState::Failed)
    };
    let server = Scripted::start([
        ("POST /jobs/a.b/savepoints", vec![refuses(202, json!({ "request": "r1" }))]),
        ("GET /requests/r1", vec![says(failed_one)]),
    ]);
    let output = job(&server, &["savepoint", "--job", "a.b", "--output", "json"]);
    let (code, error) = failed(&output);
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!((code, &error["error"]["code"]), (3, &json!("SAVEPOINT_FAILED")));
    assert_eq!(error["error"]["cause"], "task 1/0 declined");
}

#[test]
fn a_rescale_is_waited_for_until_the_job_runs_so_or_is_reverted() {
    let rescale = |started_at, state| RescaleView {
        started_at,
        reason: RescaleReason::Requested,
        from: 1,
        to: 2,
        state,
        pause_ms: Some(340),
        failure: None,
    };
    let list = |rescales: &[RescaleView]| says(RescaleList { rescales: rescales.to_vec() });
    let (old, done) = (rescale(10, RescaleState::Done), rescale(20, RescaleState::Done));
    let reverted =
        RescaleView { failure: Some(failure("SLOTS_MISSING", "tm-2 is gone")), ..rescale(20, RescaleState::Reverted) };
    let start = |end: &RescaleView| {
        Scripted::start([
            ("PUT /jobs/a.b/resources", vec![says(json!({}))]),
            (
                "GET /jobs/a.b",
                vec![
                    says(view(JobPhaseView::Running, 1)),
                    says(view(JobPhaseView::Restarting, 1)),
                    says(view(JobPhaseView::Running, 2)),
                ],
            ),
            (
                "GET /jobs/a.b/rescales",
                vec![
                    list(std::slice::from_ref(&old)),
                    list(&[rescale(20, RescaleState::InProgress)]),
                    list(&[end.clone(), old.clone()]),
                ],
            ),
        ])
    };
    let server = start(&done);
    let text = stdout(&job(&server, &["rescale", "2", "--least", "1", "--job", "a.b"]));
    assert_eq!(text, "default.clicks runs with parallelism 2, after a pause of 340 ms\n");
    assert_eq!(server.asked("PUT /jobs/a.b/resources")[0].json(), json!({ "parallelism": 2, "least": 1 }));
    let text = stdout(&job(&server, &["rescales", "--job", "a.b"]));
    assert_has(text.lines().nth(1).unwrap(), &["requested", "1", "2", "done", "340 ms"]);

    let (code, error) = failed(&job(&start(&reverted), &["rescale", "2", "--job", "a.b"]));
    assert_eq!(code, 3);
    assert_has(&error, &["SLOTS_MISSING", "reverted to parallelism 1", "tm-2 is gone"]);
    let (code, error) = failed(&job(&server, &["rescale", "2", "--least", "3", "--job", "a.b"]));
    assert!(code == 1 && error.contains("PARALLELISM_INVALID"), "{error}");
}

#[test]
fn what_else_there_is_to_see_is_a_table() {
    let managers = TaskManagerList {
        task_managers: vec![TaskManagerView {
            id: "tm-1".to_owned(),
            address: "10.0.0.7:6121".to_owned(),
            version: "0.1.0".to_owned(),
            slots: 2,
            tasks: vec!["0/0".to_owned(), "0/1".to_owned()],
            connected_at: 1_000,
        }],
    };
    let exceptions = Exceptions {
        exceptions: vec![ExceptionView {
            at: 1_769_853_903_000,
            failure: failure("SINK_FAILED", "no space"),
            task: Some("0/1".to_owned()),
            restarted: true,
        }],
        dropped: 4,
    };
    let subtask = SubtaskView {
        index: 1,
        attempt: 3,
        phase: SubtaskPhase::Running,
        task_manager: Some("tm-1".to_owned()),
        figures: vertex(),
    };
    let disposal = OperationView { savepoint: None, ..operation(OperationKind::Disposal, OperationState::Completed) };
    let server = Scripted::start([
        ("GET /overview", vec![says(overview(&[JOB]))]),
        ("GET /taskmanagers", vec![says(managers)]),
        ("GET /jobs/default.clicks/exceptions", vec![says(exceptions)]),
        ("GET /jobs/default.clicks/vertices/0", vec![says(VertexDetail { vertex: vertex(), subtasks: vec![subtask] })]),
        ("GET /jobs/default.clicks/resources", vec![says(BoundsView { least: 1, target: 2 })]),
        ("POST /savepoint-disposal", vec![refuses(202, json!({ "request": "r1" }))]),
        ("GET /requests/r1", vec![says(disposal)]),
    ]);
    let text = |arguments: &[&str]| stdout(&job(&server, arguments));
    assert_has(&text(&["list"]), &["default.clicks", "running", "2 TaskManagers with 2 of 4 slots in use"]);
    assert_has(&text(&["taskmanagers"]), &["tm-1", "10.0.0.7:6121", "0/0 0/1"]);
    let failures = ["2026-01-31 10:05:03, task 0/1, restarted", "[SINK_FAILED] no space", "4 failures before"];
    assert_has(&text(&["exceptions"]), &failures);
    assert_has(text(&["vertex", "0"]).lines().last().unwrap(), &["running", "tm-1", "91 %", "1 234 567"]);
    assert_has(&text(&["rescale"]), &["parallelism 2, with fewer slots down to 1"]);
    assert_has(&text(&["dispose", "friday"]), &["the savepoint is deleted"]);
    assert_eq!(server.asked("POST /savepoint-disposal")[0].json(), json!({ "savepoint": "friday" }));
}

#[test]
fn an_address_where_nobody_or_somebody_else_answers_is_said_so() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, error) = failed(&ask(&format!("http://{free}"), &["list"]));
    assert_eq!(code, 3);
    assert_has(&error, &["REST_UNREACHABLE", "nobody can be reached", &free.to_string(), "jobmanager --rest"]);

    let page = Answer::Says(200, "<html>welcome</html>".to_owned());
    let server = Scripted::start([("GET /overview", vec![page])]);
    let (code, error) = failed(&job(&server, &["list"]));
    assert_eq!(code, 3);
    assert_has(&error, &["REST_UNREACHABLE", "not as a JobManager of Streamkeeper"]);

    let (code, error) = failed(&ask("ftp://x", &["list"]));
    assert!(code == 1 && error.contains("OPTION_INVALID"), "{error}");
}

#[test]
fn a_refusal_names_its_reason_and_the_way_out() {
    let refused = Failure { fault: "user".to_owned(), ..failure("UNAUTHORIZED", "a token is missing") };
    let standby = failure("NOT_LEADING", "10.0.0.8:8081 leads the job");
    for (answer, expected, parts) in [
        (refuses(401, &refused), 1, ["UNAUTHORIZED", "a token is missing", "--token-file"]),
        (refuses(503, &standby), 3, ["NOT_LEADING", "10.0.0.8:8081 leads", "the JobManager that leads"]),
    ] {
        let server = Scripted::start([("GET /overview", vec![answer])]);
        let (code, error) = failed(&job(&server, &["status"]));
        assert_eq!(code, expected, "{error}");
        assert_has(&error, &parts);
    }
    let server = Scripted::start([("GET /overview", vec![says(overview(&["default.a", "default.b"]))])]);
    let (code, error) = failed(&job(&server, &["status"]));
    assert_eq!(code, 1);
    assert_has(&error, &["default.a, default.b", "--job"]);
}
