//! The list of routes, from which both router and OpenAPI document are made.

use std::sync::Arc;

use axum::{Router, extract::DefaultBodyLimit, http::StatusCode, middleware, response::IntoResponse};
use streamkeeper_protocol::rest::Failure;
use streamkeeper_types::{Code, Error};
use utoipa::{
    Modify, OpenApi, PartialSchema, ToSchema,
    openapi::{
        self, Content, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    cluster,
    extract::BODY_LIMIT,
    guard::{guard, is_open},
    job, operations,
    refusal::Refusal,
    server::Shared,
};

/// The head of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Streamkeeper JobManager",
        description = "See and steer a running job. Ids of jobs are `<namespace>.<name>`. Times are milliseconds since 1970 \
                       (UTC), durations milliseconds unless the name says otherwise, sizes bytes. A POST that takes time is \
                       answered with a request's id, whose outcome GET /requests/{request} tells for five minutes; repeated \
                       with the same `Idempotency-Key` header it is the same request.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "process", description = "The JobManager itself"),
        (name = "job", description = "A job and its tasks"),
        (name = "snapshots", description = "Checkpoints and savepoints"),
        (name = "control", description = "What changes a job"),
    ),
    modifiers(&Common)
)]
struct Document;

/// What every operation has in common: said once, here.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.schemas.insert(Failure::name().into_owned(), Failure::schema());
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The JobManager's token, if it was started with --token-file."))
            .build();
        components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(bearer));
    }
}

fn documented() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(cluster::healthz))
        .routes(routes!(cluster::metrics))
        .routes(routes!(cluster::document))
        .routes(routes!(cluster::overview))
        .routes(routes!(cluster::config))
        .routes(routes!(cluster::task_managers))
        .routes(routes!(job::jobs))
        .routes(routes!(job::job))
        .routes(routes!(job::plan))
        .routes(routes!(job::status))
        .routes(routes!(job::exceptions))
        .routes(routes!(job::vertex))
        .routes(routes!(job::rescales))
        .routes(routes!(job::resources, operations::rescale))
        .routes(routes!(job::checkpoints, operations::checkpoint))
        .routes(routes!(job::checkpoint))
        .routes(routes!(operations::savepoint))
        .routes(routes!(operations::stop))
        .routes(routes!(operations::cancel))
        .routes(routes!(operations::dispose))
        .routes(routes!(operations::request))
}

/// Everything that is served.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let (router, _) = documented().split_for_parts();
    router
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// The OpenAPI document: of this version's API, whatever job is led.
#[must_use]
pub fn openapi_json() -> String {
    let (_, mut document) = documented().split_for_parts();
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            complete(path, operation);
        }
    }
    let text = serde_json::to_string_pretty(&document);
    text.expect("the document has string keys only, which JSON can hold") + "\n"
}

/// Adds what is the same for every operation: how failures look, and the token.
fn complete(path: &str, operation: &mut Operation) {
    let failure = Content::new(Some(RefOr::Ref(Ref::from_schema_name(Failure::name()))));
    let default = ResponseBuilder::new()
        .description(
            "Anything else: 4xx if the caller can mend it, 5xx if not, 503 while this JobManager does not lead.",
        )
        .content("application/json", failure);
    operation.responses.responses.insert("default".to_owned(), RefOr::T(default.build()));
    if !is_open(path) {
        let token = SecurityRequirement::new("token", Vec::<String>::new());
        operation.security = Some(vec![SecurityRequirement::default(), token]);
    }
}

async fn unknown() -> Refusal {
    Refusal::not_found("there is nothing under this path; GET /openapi.json lists all")
}

async fn wrong_method() -> impl IntoResponse {
    let error = Error::new(Code::RequestInvalid, "this path does not take this method")
        .way_out("the Allow header says which it takes");
    Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, error)
}
