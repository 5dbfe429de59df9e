//! What changes a job.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use chrono::DateTime;
use serde::Serialize;
use streamkeeper_checkpoint::files;
use streamkeeper_engine::{Clock, SystemClock};
use streamkeeper_protocol::{
    CheckpointKind, SnapshotFormat,
    rest::{
        Accepted, BoundsView, DisposalRequest, OperationKind, OperationView, RescaleRequest, SavepointFormat,
        SavepointRequest, SavepointResult, StopRequest,
    },
};
use streamkeeper_storage::Storage;
use streamkeeper_types::{Code, Error, Result};
use tokio::task::spawn_blocking;

use super::{
    Led,
    extract::{Body, Segments, Wait},
    refusal::Refusal,
    requests::{Begun, Wish},
    server::Shared,
};
use crate::{engine::Bounds, shell::Phase};

type Begin = Result<(StatusCode, Json<Accepted>), Refusal>;

/// Characters of a savepoint's name at most.
const NAME_LIMIT: usize = 128;

/// Takes a checkpoint now. It has no body.
#[utoipa::path(
    post, path = "/jobs/{job}/checkpoints", tag = "control",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same request"),
    ),
    responses((status = ACCEPTED, description = "It was begun.", body = Accepted))
)]
pub(super) async fn checkpoint(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    headers: HeaderMap,
) -> Begin {
    let led = shared.job(&job)?;
    let wish = wish(OperationKind::Checkpoint, &headers, &())?;
    begin(&shared, wish, move || snapshot(led, CheckpointKind::Checkpoint, SnapshotFormat::Native, None))
}

/// Takes a savepoint; the job goes on.
#[utoipa::path(
    post, path = "/jobs/{job}/savepoints", tag = "control",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same request"),
    ),
    request_body(content = Option<SavepointRequest>, description = "Nothing: a canonical one, named after the time"),
    responses(
        (status = ACCEPTED, description = "It was begun.", body = Accepted),
        (status = CONFLICT, description = "There is a savepoint with this name.", body = streamkeeper_protocol::rest::Failure)
    )
)]
pub(super) async fn savepoint(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    headers: HeaderMap,
    Body(request): Body<SavepointRequest>,
) -> Begin {
    let led = shared.job(&job)?;
    let wish = wish(OperationKind::Savepoint, &headers, &request)?;
    let folder = folder_of(request.name, "savepoint")?;
    begin_writing(&shared, led, wish, folder, CheckpointKind::Savepoint, request.format).await
}

/// Stops a job by a savepoint from which it can go on.
#[utoipa::path(
    post, path = "/jobs/{job}/stop", tag = "control",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same request"),
    ),
    request_body(content = Option<StopRequest>, description = "Nothing: a canonical one, named after the time"),
    responses(
        (status = ACCEPTED, description = "It was begun.", body = Accepted),
        (status = CONFLICT, description = "There is a savepoint with this name.", body = streamkeeper_protocol::rest::Failure)
    )
)]
pub(super) async fn stop(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    headers: HeaderMap,
    Body(request): Body<StopRequest>,
) -> Begin {
    let led = shared.job(&job)?;
    let wish = wish(OperationKind::Stop, &headers, &request)?;
    let folder = folder_of(request.name, "stop")?;
    let kind = CheckpointKind::StopSavepoint { drain: request.drain };
    begin_writing(&shared, led, wish, folder, kind, request.format).await
}

/// Stops a job's tasks without a snapshot; it goes on from its latest checkpoint when it is started again. No body.
#[utoipa::path(
    post, path = "/jobs/{job}/cancel", tag = "control",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same request"),
    ),
    responses((status = ACCEPTED, description = "It was begun; its request completes when the tasks have ended.", body = Accepted))
)]
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    headers: HeaderMap,
) -> Begin {
    let led = shared.job(&job)?;
    let wish = wish(OperationKind::Cancel, &headers, &())?;
    begin(&shared, wish, move || async move {
        let board = led.control.board();
        let mut revisions = board.revisions();
        led.control.cancel();
        while board.read().phase != Phase::Ended {
            // The board lives as long as `led`.
            if revisions.changed().await.is_err() {
                break;
            }
        }
        Ok(None)
    })
}

/// Has a job run between other parallelisms: a checkpoint, then its tasks in the new shape. `/rescales` shows how it goes.
#[utoipa::path(
    put, path = "/jobs/{job}/resources", tag = "control",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    request_body = RescaleRequest,
    responses((status = OK, description = "The bounds from now on.", body = BoundsView))
)]
pub(super) async fn rescale(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    Body(request): Body<RescaleRequest>,
) -> Result<Json<BoundsView>, Refusal> {
    let led = shared.job(&job)?;
    let RescaleRequest { parallelism: target, least } = request;
    let least = least.unwrap_or(target);
    let most = led.control.board().details(|details| details.max_parallelism);
    if least == 0 || least > target || target > most {
        let cause = format!("a job with {most} key groups does not run between parallelism {least} and {target}");
        let way_out = format!("choose 1 ≤ least ≤ parallelism ≤ {most}");
        return Err(Error::new(Code::ParallelismInvalid, cause).way_out(way_out).into());
    }
    if led.control.board().read().phase == Phase::Ended {
        return Err(Error::new(Code::Conflict, "the job has ended").into());
    }
    led.control.rescale(Bounds { least, target });
    Ok(Json(BoundsView { least, target }))
}

/// Removes a savepoint of this job that nothing needs any more.
#[utoipa::path(
    post, path = "/savepoint-disposal", tag = "control",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same request")),
    request_body = DisposalRequest,
    responses((status = ACCEPTED, description = "It was begun.", body = Accepted))
)]
pub(super) async fn dispose(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Body(request): Body<DisposalRequest>,
) -> Begin {
    let led = shared.leading()?;
    let folder = folder_named(&request.savepoint, &led)?;
    let wish = Wish { folder: Some(folder.clone()), ..wish(OperationKind::Disposal, &headers, &request)? };
    begin(&shared, wish, move || async move {
        led.control.may_dispose(folder.clone()).await?;
        let storage = Arc::clone(&led.storage);
        off_thread(move || remove(storage.as_ref(), &folder)).await?;
        Ok(None)
    })
}

/// Where a request stands; `?wait=10s` answers when it has ended.
#[utoipa::path(
    get, path = "/requests/{request}", tag = "control",
    params(
        ("request" = String, Path, description = "From the answer to the POST"),
        ("wait" = Option<String>, Query, description = "Wait so long for its end, at most 30s; as in `10s`"),
    ),
    responses((status = OK, description = "As it is now.", body = OperationView))
)]
pub(super) async fn request(
    State(shared): State<Arc<Shared>>,
    Segments(request): Segments<String>,
    wait: Wait,
) -> Result<Json<OperationView>, Refusal> {
    let view = match wait.within {
        Some(within) => shared.requests.wait(&request, within).await,
        None => shared.requests.look(&request),
    };
    view.map(Json).ok_or_else(|| {
        Refusal::not_found(format!("there is no request `{request}`; outcomes are kept for five minutes"))
    })
}

fn wish(kind: OperationKind, headers: &HeaderMap, body: &impl Serialize) -> Result<Wish, Refusal> {
    let text = serde_json::to_string(body).map_err(|error| Refusal::invalid(error.to_string()))?;
    let Some(key) = headers.get("idempotency-key") else { return Ok(Wish { kind, key: None, text, folder: None }) };
    match key.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Wish { kind, key: Some(key.to_owned()), text, folder: None }),
        _ => Err(Refusal::invalid("Idempotency-Key has 1 to 255 visible ASCII characters")),
    }
}

/// Begins a request, and goes on with it in the background.
fn begin<F>(shared: &Arc<Shared>, wish: Wish, work: impl FnOnce() -> F) -> Begin
where
    F: Future<Output = Result<Option<SavepointResult>>> + Send + 'static,
{
    let request = match shared.requests.begin(wish)? {
        Begun::Earlier(request) => request,
        Begun::Now(request) => {
            let (shared, work, id) = (Arc::clone(shared), work(), request.clone());
            tokio::spawn(async move {
                let outcome = work.await;
                shared.requests.end(&id, outcome);
            });
            request
        }
    };
    Ok((StatusCode::ACCEPTED, Json(Accepted { request })))
}

/// As [`begin`], of a savepoint into `folder`, which must not be there yet.
async fn begin_writing(
    shared: &Arc<Shared>,
    led: Arc<Led>,
    wish: Wish,
    folder: String,
    kind: CheckpointKind,
    format: SavepointFormat,
) -> Begin {
    if let Some(request) = shared.requests.repeated(&wish)? {
        return Ok((StatusCode::ACCEPTED, Json(Accepted { request })));
    }
    let (storage, manifest) = (Arc::clone(&led.storage), files::manifest_path(&folder));
    if off_thread(move || Ok(storage.head(&manifest)?)).await?.is_some() {
        return Err(Error::new(Code::Conflict, format!("the job has a savepoint in `{folder}` already"))
            .way_out("choose another name, or dispose of that savepoint")
            .into());
    }
    let format = match format {
        SavepointFormat::Canonical => SnapshotFormat::Canonical,
        SavepointFormat::Native => SnapshotFormat::Native,
    };
    let wish = Wish { folder: Some(folder.clone()), ..wish };
    begin(shared, wish, move || snapshot(led, kind, format, Some(folder)))
}

async fn snapshot(
    led: Arc<Led>,
    kind: CheckpointKind,
    format: SnapshotFormat,
    target: Option<String>,
) -> Result<Option<SavepointResult>> {
    let completed = led.control.snapshot(kind, format, target).await?;
    Ok(Some(led.result(&completed)))
}

/// Storage blocks.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(Error::internal("a storage call of the REST API panicked")))
}

/// The manifest goes last: a removal that was interrupted can be repeated (B99).
fn remove(storage: &dyn Storage, folder: &str) -> Result<()> {
    let manifest = files::manifest_path(folder);
    let found = storage.list(folder)?.into_iter().map(|object| object.path);
    let others: Vec<String> = found.filter(|path| *path != manifest).collect();
    storage.delete_all(&others)?;
    Ok(storage.delete(&manifest)?)
}

/// The folder of a savepoint with this name; of one without, a name with the time in it.
fn folder_of(name: Option<String>, what: &str) -> Result<String> {
    let name = name.unwrap_or_else(|| {
        let time = DateTime::from_timestamp_millis(SystemClock.now()).unwrap_or_default();
        format!("{what}-{}", time.format("%Y%m%d-%H%M%S%.3f"))
    });
    checked(&name)
}

/// The folder of an existing savepoint, given by its name, its folder or its location.
fn folder_named(savepoint: &str, led: &Led) -> Result<String> {
    let below = savepoint.strip_prefix(led.location.as_str()).map(|below| below.trim_start_matches('/'));
    let folder = below.unwrap_or(savepoint).trim_end_matches('/');
    let prefix = format!("{}/", files::SAVEPOINTS);
    checked(folder.strip_prefix(&prefix).unwrap_or(folder))
}

/// A name is one folder, whatever the storage.
fn checked(name: &str) -> Result<String> {
    let is_name = name.len() <= NAME_LIMIT
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_name {
        return Ok(format!("{}/{name}", files::SAVEPOINTS));
    }
    let shown: String = name.chars().take(NAME_LIMIT).collect();
    Err(Error::new(Code::RequestInvalid, format!("`{}` is no savepoint's name", shown.escape_debug())).way_out(format!(
        "a name has letters, digits, `-`, `_` and `.`, begins with a letter or digit, and is at most {NAME_LIMIT} long"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_savepoint_name_is_one_folder() {
        for name in ["friday", "v1.2", "2026-01-01_a"] {
            assert_eq!(checked(name), Ok(format!("savepoints/{name}")));
        }
        let long = "x".repeat(NAME_LIMIT + 1);
        for name in ["", "a/b", "..", "../x", ".hidden", "x y", "x\0", "ä", long.as_str()] {
            assert_eq!(checked(name).map_err(|error| error.code), Err(Code::RequestInvalid), "{name}");
        }
    }
}
