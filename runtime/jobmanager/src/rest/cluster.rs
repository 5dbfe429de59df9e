//! The JobManager itself: health, metrics, overview, options, TaskManagers.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use streamkeeper_protocol::rest::{ConfigView, Health, Overview, Role, TaskManagerList};

use super::{job_metrics, refusal::Refusal, routes::openapi_json, server::Shared, views};
use crate::metrics;

/// Whether the process lives, and whether it leads.
#[utoipa::path(get, path = "/healthz", tag = "process", responses((status = OK, description = "It lives.", body = Health)))]
pub(super) async fn healthz(State(shared): State<Arc<Shared>>) -> Json<Health> {
    let role = if shared.led().is_some() { Role::Leader } else { Role::Standby };
    Json(Health { role })
}

/// Metrics for Prometheus; docs/reference/metrics.md lists them.
#[utoipa::path(
    get, path = "/metrics", tag = "process",
    responses((status = OK, description = "OpenMetrics text.", body = String, content_type = metrics::CONTENT_TYPE))
)]
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let text = metrics::render(job_metrics::samples(shared.led().as_deref()));
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "process",
    responses((status = OK, description = "OpenAPI 3.1.", body = Object, content_type = "application/json"))
)]
pub(super) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

/// Jobs, TaskManagers and slots at a glance.
#[utoipa::path(get, path = "/overview", tag = "process", responses((status = OK, description = "As it is now.", body = Overview)))]
pub(super) async fn overview(State(shared): State<Arc<Shared>>) -> Result<Json<Overview>, Refusal> {
    Ok(Json(views::overview(&*shared.leading()?)))
}

/// Options in force. Secrets are never among them.
#[utoipa::path(get, path = "/config", tag = "process", responses((status = OK, description = "By name.", body = ConfigView)))]
pub(super) async fn config(State(shared): State<Arc<Shared>>) -> Result<Json<ConfigView>, Refusal> {
    Ok(Json(ConfigView { options: shared.leading()?.options.clone() }))
}

/// TaskManagers that are connected. None for a job that runs in one process.
#[utoipa::path(
    get, path = "/taskmanagers", tag = "process",
    responses((status = OK, description = "By id.", body = TaskManagerList))
)]
pub(super) async fn task_managers(State(shared): State<Arc<Shared>>) -> Result<Json<TaskManagerList>, Refusal> {
    Ok(Json(TaskManagerList { task_managers: shared.leading()?.members() }))
}
