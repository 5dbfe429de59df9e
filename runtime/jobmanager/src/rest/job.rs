//! A job and its tasks, read only.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use streamkeeper_protocol::rest::{
    BoundsView, CheckpointList, CheckpointView, Exceptions, JobList, JobView, PlanView, RescaleList, StatusView,
    VertexDetail,
};
use streamkeeper_types::VertexId;
use tokio::time::{Instant, timeout_at};

use super::{
    Led,
    extract::{Segments, Wait},
    refusal::Refusal,
    server::Shared,
    views,
};

type Answer<T> = Result<Json<T>, Refusal>;

/// All jobs: one, since a JobManager leads one.
#[utoipa::path(get, path = "/jobs", tag = "job", responses((status = OK, description = "All of them.", body = JobList)))]
pub(super) async fn jobs(State(shared): State<Arc<Shared>>) -> Answer<JobList> {
    Ok(Json(JobList { jobs: vec![views::summary(&*shared.leading()?)] }))
}

/// Everything about a job and its vertices at one moment.
#[utoipa::path(
    get, path = "/jobs/{job}", tag = "job",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "As it is now.", body = JobView))
)]
pub(super) async fn job(State(shared): State<Arc<Shared>>, Segments(job): Segments<String>) -> Answer<JobView> {
    Ok(Json(views::job(&*shared.job(&job)?)))
}

/// The dataflow as it is deployed.
#[utoipa::path(
    get, path = "/jobs/{job}/plan", tag = "job",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "Vertices, edges and the program.", body = PlanView))
)]
pub(super) async fn plan(State(shared): State<Arc<Shared>>, Segments(job): Segments<String>) -> Answer<PlanView> {
    Ok(Json(views::plan(&*shared.job(&job)?)))
}

/// Where a job stands, for those who ask again and again: `?wait=30s&after=<revision>` answers when there is news.
#[utoipa::path(
    get, path = "/jobs/{job}/status", tag = "job",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("wait" = Option<String>, Query, description = "Wait so long for news, at most 30s; as in `10s`"),
        ("after" = Option<u64>, Query, description = "The revision that the caller has seen"),
    ),
    responses((status = OK, description = "As it is now.", body = StatusView))
)]
pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
    wait: Wait,
) -> Answer<StatusView> {
    let led = shared.job(&job)?;
    if let (Some(within), Some(after)) = (wait.within, wait.after) {
        wait_for_news(&led, after, within).await;
    }
    Ok(Json(views::status(&led)))
}

async fn wait_for_news(led: &Led, after: u64, within: Duration) {
    let deadline = Instant::now() + within;
    let mut revisions = led.control.board().revisions();
    let news = revisions.wait_for(|revision| *revision != after);
    // A lower one is another reign's, which is news as well. If there is none, time is up or the job is gone.
    let _ = timeout_at(deadline, news).await;
}

/// Failures of a job, newest first, each with the task that failed first.
#[utoipa::path(
    get, path = "/jobs/{job}/exceptions", tag = "job",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "The latest 32.", body = Exceptions))
)]
pub(super) async fn exceptions(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
) -> Answer<Exceptions> {
    Ok(Json(views::exceptions(&*shared.job(&job)?)))
}

/// One chain of operators with each of its subtasks.
#[utoipa::path(
    get, path = "/jobs/{job}/vertices/{vertex}", tag = "job",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("vertex" = u32, Path, description = "Its number in the plan"),
    ),
    responses((status = OK, description = "As it is now.", body = VertexDetail))
)]
pub(super) async fn vertex(
    State(shared): State<Arc<Shared>>,
    Segments((job, vertex)): Segments<(String, u32)>,
) -> Answer<VertexDetail> {
    let led = shared.job(&job)?;
    let detail = views::vertex(&led, VertexId(vertex));
    detail.map(Json).ok_or_else(|| Refusal::not_found(format!("the job has no vertex {vertex}; its plan lists them")))
}

/// Changes of the parallelism, newest first.
#[utoipa::path(
    get, path = "/jobs/{job}/rescales", tag = "job",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "The latest that are kept.", body = RescaleList))
)]
pub(super) async fn rescales(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
) -> Answer<RescaleList> {
    Ok(Json(views::rescales(&*shared.job(&job)?)))
}

/// Between which parallelisms a job may run.
#[utoipa::path(
    get, path = "/jobs/{job}/resources", tag = "job",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "As it is now.", body = BoundsView))
)]
pub(super) async fn resources(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
) -> Answer<BoundsView> {
    Ok(Json(views::bounds(&*shared.job(&job)?)))
}

/// Checkpoints and savepoints of this reign, newest first.
#[utoipa::path(
    get, path = "/jobs/{job}/checkpoints", tag = "snapshots",
    params(("job" = String, Path, description = "`<namespace>.<name>`")),
    responses((status = OK, description = "The latest that are kept.", body = CheckpointList))
)]
pub(super) async fn checkpoints(
    State(shared): State<Arc<Shared>>,
    Segments(job): Segments<String>,
) -> Answer<CheckpointList> {
    Ok(Json(views::checkpoints(&*shared.job(&job)?)))
}

/// One checkpoint or savepoint, with the tasks' parts of the latest few.
#[utoipa::path(
    get, path = "/jobs/{job}/checkpoints/{id}", tag = "snapshots",
    params(
        ("job" = String, Path, description = "`<namespace>.<name>`"),
        ("id" = u64, Path, description = "Of the checkpoint"),
    ),
    responses((status = OK, description = "As it is remembered.", body = CheckpointView))
)]
pub(super) async fn checkpoint(
    State(shared): State<Arc<Shared>>,
    Segments((job, id)): Segments<(String, u64)>,
) -> Answer<CheckpointView> {
    let led = shared.job(&job)?;
    let view = views::checkpoint(&led, id);
    view.map(Json).ok_or_else(|| Refusal::not_found(format!("checkpoint {id} is not among those remembered")))
}
