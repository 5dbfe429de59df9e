//! The REST API: how people, the command line, the operator and the web UI see and steer a running job.
//!
//! ```text
//!  connection ─► listener (how many, how long idle) ─► guard (size, token, time) ─► route ─► status board
//!                                                                                     └► job's inbox, via `requests`
//! ```
//! The routes and the OpenAPI document are one list (`routes`), so that they cannot differ. Whatever goes wrong is answered
//! with a [`Failure`](streamkeeper_protocol::rest::Failure). What takes time is a request with an id; see `requests`.
//!
//! Must not know: how a job is run, how a TaskManager is reached.

mod cluster;
mod config;
mod extract;
mod guard;
mod job;
mod job_metrics;
mod led;
mod operations;
mod refusal;
mod requests;
mod routes;
mod server;
mod views;

pub use config::options_of;
pub use led::Led;
pub use routes::openapi_json;
pub use server::{RestOptions, RestServer};
