//! The REST API over a running job: each path of the OpenAPI document, and everything that is not in it.

mod hostile;
mod steering;
mod watching;

use std::{net::SocketAddr, sync::Arc};

use serde::de::DeserializeOwned;
use streamkeeper_engine::Deployment;
use streamkeeper_jobmanager::{
    rest::{Led, RestOptions, RestServer},
    rpc::Token,
    shell::{TaskManagers, VertexStatus},
};
use streamkeeper_protocol::{
    ToTask,
    rest::{Accepted, OperationState, OperationView, TaskManagerView},
};
use streamkeeper_taskmanager::local::{JobHandle, run_local};
use streamkeeper_types::{AttemptId, Error, Result};

use crate::{
    http::{Response, send},
    world::{Gate, LONG, World},
};

const JOB: &str = "/jobs/default.test";
const LOCATION: &str = "memory:///default/test";
const TOKEN: &str = "canary-token";

/// A running job with its REST API.
struct Api {
    server: RestServer,
    job: JobHandle,
    _managers: Arc<dyn TaskManagers>,
}

/// A list of TaskManagers; the tasks themselves run in this process.
struct Listed;

impl TaskManagers for Listed {
    fn slots(&self) -> u32 {
        8
    }

    fn members(&self) -> Vec<TaskManagerView> {
        vec![TaskManagerView {
            id: "tm-1".into(),
            address: "127.0.0.1:1".into(),
            version: "1".into(),
            slots: 8,
            tasks: vec!["0/0".into()],
            connected_at: 1,
        }]
    }

    fn deploy(&self, _: Deployment) -> Result<()> {
        Err(Error::internal("only a list"))
    }

    fn send(&self, _: AttemptId, _: ToTask) -> Result<()> {
        Err(Error::internal("only a list"))
    }
}

fn listen(token: Option<&str>) -> RestServer {
    let token = token.map(|token| Token::new(token.to_owned()));
    RestServer::listen(RestOptions::new("127.0.0.1:0".parse().unwrap(), token)).unwrap()
}

impl Api {
    fn of(world: &World, token: Option<&str>) -> Self {
        let mut local = world.job(2);
        local.job.program = "CREATE TABLE t (a INT) WITH ('password' = 'canary-password')".into();
        let spec = local.job.clone();
        let job = run_local(local).unwrap();
        let server = listen(token);
        let managers: Arc<dyn TaskManagers> = Arc::new(Listed);
        server.lead(Led::new(&spec, LOCATION, &managers, job.control()));
        Self { server, job, _managers: managers }
    }

    /// A job that stands still behind a third of its input, all tasks running, without periodic checkpoints.
    fn standing() -> (World, Self) {
        let mut world = World { interval: None, ..World::new(4, 300) };
        world.numbers.gate = Gate::default();
        let api = Self::of(&world, None);
        api.wait_for_records();
        (world, api)
    }

    fn wait_for_records(&self) {
        let has_read = |vertex: &VertexStatus| vertex.records_in > 0;
        let status = self
            .job
            .wait_until(LONG, |status| status.deployment_ms.is_some() && status.vertices.first().is_some_and(has_read));
        assert!(status.deployment_ms.is_some(), "{status:?}");
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    #[track_caller]
    fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let response = send(self.address(), "GET", path, &[], "");
        assert_eq!(response.status, 200, "{path}: {response:?}");
        response.json()
    }

    fn post(&self, path: &str, body: &str) -> Response {
        send(self.address(), "POST", path, &[], body)
    }

    /// How the request ended that this POST began.
    #[track_caller]
    fn outcome(&self, path: &str, body: &str) -> OperationView {
        let response = self.post(path, body);
        assert_eq!(response.status, 202, "{path}: {response:?}");
        self.end_of(&response.json::<Accepted>().request)
    }

    #[track_caller]
    fn end_of(&self, request: &str) -> OperationView {
        let view: OperationView = self.get(&format!("/requests/{request}?wait=30s"));
        assert_ne!(view.state, OperationState::InProgress, "{view:?}");
        view
    }
}
