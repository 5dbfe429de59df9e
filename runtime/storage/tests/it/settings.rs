//! Wrong settings are named with their way out, secrets never; rare answers of servers have the right consequence.

use std::{path::Path, sync::Arc, time::Duration};

use streamkeeper_storage::{
    Environment, PutMode, PutOutcome, SmallObjects, Storage, StorageError, StorageOptions, open_with,
};
use streamkeeper_types::{Code, Error};

use crate::{
    kinds::{at, azure_service, s3_service, s3_url},
    scripted::{Answer, Request, Scripted},
};

const OPTIONS: StorageOptions = StorageOptions { timeout: Duration::from_secs(30), retries: 2, part_size: 8 << 20 };

fn other<T: std::fmt::Debug>(result: Result<T, StorageError>) -> Error {
    match result {
        Err(StorageError::Other(error)) => error,
        result => panic!("{result:?}"),
    }
}

#[test]
fn a_wrong_key_is_named_with_its_variable_and_never_repeated() {
    let s3 = s3_service();
    let wrong = s3.environment_with(&[("AWS_SECRET_ACCESS_KEY", "WRONG-SECRET".to_owned())]);
    let storage = at(&s3_url(s3), &wrong);
    let azure = azure_service();
    let key = "V1JPTkctU0VDUkVU".to_owned();
    let wrong_azure = azure.environment_with(&[("AZURE_STORAGE_ACCOUNT_KEY", key.clone())]);
    let on_azure = at(&format!("az://{}/a", azure.variable("AZURE_CONTAINER")), &wrong_azure);
    for (storage, variable) in [(storage, "AWS_SECRET_ACCESS_KEY"), (on_azure, "AZURE_STORAGE_ACCOUNT_KEY")] {
        for error in [
            other(storage.put("a", "x".into(), PutMode::Create)),
            other(storage.get("a")),
            other(storage.list("")),
            other(storage.delete("a")),
        ] {
            assert_eq!(error.code, Code::Storage);
            assert!(error.way_out.as_deref().is_some_and(|way_out| way_out.contains(variable)), "{error}");
            let all = format!("{error} {error:?} {storage:?} {wrong:?} {wrong_azure:?}");
            assert!(!all.contains("WRONG-SECRET") && !all.contains(&key), "{all}");
        }
    }
}

#[test]
fn a_bucket_that_does_not_exist_is_said_and_is_no_empty_one() {
    let s3 = s3_service();
    let storage = at("s3://no-such-bucket/a", &s3.environment());
    for error in
        [other(storage.put("a", "x".into(), PutMode::Create)), other(storage.get("a")), other(storage.list(""))]
    {
        assert!(error.to_string().contains("s3://no-such-bucket/a"), "{error}");
        assert!(error.way_out.as_deref().is_some_and(|way_out| way_out.contains("bucket")), "{error}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_at_the_start() {
    let open = |options: &StorageOptions, variables: &[(&str, &str)]| {
        let environment = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        open_with("s3://bucket/a", Path::new("/"), options, &environment).unwrap_err()
    };
    let hasty = StorageOptions { timeout: Duration::from_millis(10), ..OPTIONS };
    assert!(open(&hasty, &[]).cause.contains("storage.timeout"));
    let tiny = StorageOptions { part_size: 1 << 20, ..OPTIONS };
    assert!(open(&tiny, &[]).cause.contains("storage.part-size"));
    assert_eq!(open(&OPTIONS, &[("AWS_CA_BUNDLE", "/does/not/exist.pem")]).place, ["AWS_CA_BUNDLE"]);
    let hdfs = open_with("hdfs://no-such-service/a", Path::new("/"), &OPTIONS, &Environment::default());
    assert!(hdfs.unwrap_err().way_out.is_some_and(|way_out| way_out.contains("HADOOP_CONF_DIR")));
}

/// S3 as `answer` plays it.
fn s3_played(answer: impl Fn(&Request, usize) -> Answer + Send + 'static) -> (Arc<dyn Storage>, Scripted) {
    let server = Scripted::start(answer);
    let variables = [
        ("AWS_ENDPOINT_URL", server.url.as_str()),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let environment = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    (open_with("s3://bucket/a", Path::new("/"), &OPTIONS, &environment).unwrap(), server)
}

const SLOW_DOWN: &str = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";

fn tagged() -> Answer {
    (200, vec![("ETag", "\"1\"".to_owned())], "")
}

/// An object that `writer` has written.
fn written_by(writer: &str) -> Answer {
    let headers = [
        ("ETag", "\"1\""),
        ("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT"),
        ("Content-Length", "1"),
        ("x-amz-meta-skwriter", writer),
    ];
    (200, headers.map(|(name, value)| (name, value.to_owned())).to_vec(), "")
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_named_when_it_stays_so() {
    let (storage, server) = s3_played(|_, before| if before < 2 { (503, vec![], SLOW_DOWN) } else { tagged() });
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    assert_eq!(server.requests().len(), 3);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("if-none-match") == Some("*") && request.body == b"x"));
    let (storage, server) = s3_played(|_, _| (503, vec![], SLOW_DOWN));
    let error = other(storage.put("a", "x".into(), PutMode::Create));
    assert!(error.cause.contains("503 SlowDown: Please reduce your request rate."), "{error}");
    assert_eq!(server.requests().len(), 3, "two retries");
}

#[test]
fn an_error_that_may_come_after_the_write_leaves_the_outcome_unknown() {
    for status in [500, 502, 504] {
        let (storage, _server) = s3_played(move |_, _| (status, vec![], ""));
        let put = storage.put("a", "x".into(), PutMode::Create);
        assert!(matches!(put, Err(StorageError::Unknown(_))), "{status}: {put:?}");
    }
}

#[test]
fn a_refused_request_is_not_sent_again() {
    for status in [400, 403, 501] {
        let (storage, server) = s3_played(move |_, _| (status, vec![], ""));
        other(storage.put("a", "x".into(), PutMode::Create));
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn a_lost_race_may_be_answered_412_or_409_and_an_own_write_behind_them_is_recognised() {
    let (storage, server) = s3_played(|_, _| (412, vec![], ""));
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(server.requests().len(), 1);
    let (storage, _server) = s3_played(|request, _| match request.method.as_str() {
        "PUT" => (409, vec![], "<Error><Code>ConditionalRequestConflict</Code></Error>"),
        _ => written_by("somebody"),
    });
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Exists));
    // Nothing is there after a conflict: the other write failed or was deleted, and ours is made anew.
    let (storage, _server) = s3_played(|request, before| match request.method.as_str() {
        "PUT" if before == 0 => (409, vec![], ""),
        "PUT" => tagged(),
        _ => (404, vec![], ""),
    });
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    // The first try was written though its answer says 500; the second finds its own work.
    let writer = Arc::new(std::sync::Mutex::new(String::new()));
    let (storage, _server) = s3_played(move |request, before| match request.method.as_str() {
        "PUT" if before == 0 => {
            *writer.lock().unwrap() = request.header("x-amz-meta-skwriter").unwrap().to_owned();
            (500, vec![], "")
        }
        "PUT" => (412, vec![], ""),
        _ => written_by(&writer.lock().unwrap()),
    });
    assert_eq!(storage.put("a", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
}

#[test]
fn an_overwrite_or_delete_is_repeated_and_needs_no_condition() {
    let (storage, server) = s3_played(|_, before| if before == 0 { (500, vec![], "") } else { tagged() });
    assert_eq!(storage.put("a", "x".into(), PutMode::Overwrite), Ok(PutOutcome::Done));
    assert!(server.requests().iter().all(|request| request.header("if-none-match").is_none()));
    let (storage, server) = s3_played(|_, before| {
        if before == 0 {
            (500, vec![], "")
        } else {
            (200, vec![], "<DeleteResult><Deleted><Key>a/a</Key></Deleted></DeleteResult>")
        }
    });
    assert_eq!(storage.delete("a"), Ok(()));
    assert_eq!(server.requests().len(), 2);
}

/// GCS as `answer` plays it: no server speaks its XML interface with preconditions, so this is below HTTP only.
fn gcs_played(answer: impl Fn(&Request, usize) -> Answer + Send + 'static) -> (Arc<dyn Storage>, Scripted) {
    let server = Scripted::start(answer);
    let account = format!(
        r#"{{"gcs_base_url":"{}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}"#,
        server.url
    );
    let variables = [("GOOGLE_SERVICE_ACCOUNT_KEY", account), ("GOOGLE_ALLOW_HTTP", "true".to_owned())];
    let environment = variables.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    (open_with("gs://bucket/a", Path::new("/"), &OPTIONS, &environment).unwrap(), server)
}

#[test]
fn google_cloud_storage_is_asked_to_create_only_where_nothing_is() {
    let (storage, server) = gcs_played(|_, _| tagged());
    assert_eq!(storage.put("log/0", "x".into(), PutMode::Create), Ok(PutOutcome::Done));
    let request = server.requests().pop().unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/bucket/a%2Flog%2F0"));
    assert_eq!(request.header("x-goog-if-generation-match"), Some("0"));
    let (storage, _server) = gcs_played(|_, _| (412, vec![], ""));
    assert_eq!(storage.put("log/0", "x".into(), PutMode::Create), Ok(PutOutcome::Exists));
    assert_eq!(storage.small_objects(), SmallObjects::Quick);
    let (storage, _server) = gcs_played(|_, _| (500, vec![], ""));
    assert!(matches!(storage.put("a", "x".into(), PutMode::Create), Err(StorageError::Unknown(_))));
}
