//! `streamkeeper job`: asks a JobManager over REST, and tells it what to do. One file a group of commands.

mod checkpoints;
mod exceptions;
mod figures;
mod operations;
mod overview;
mod patience;
mod rescale;
mod status;
mod top;
mod vertex;

use streamkeeper_protocol::rest::{SavepointRequest, StopRequest};
use streamkeeper_types::Result;

use crate::{
    args::{Global, Job, JobCommand},
    rest::{Client, read_token},
};

pub fn execute(arguments: &Job, global: &Global) -> Result<()> {
    let connection = &arguments.connection;
    let token = connection.token_file.as_deref().map(read_token).transpose()?;
    let client = Client::new(&connection.rest, token, connection.timeout)?;
    let job = || client.job(connection.job.as_deref());
    let output = global.output;
    match &arguments.command {
        JobCommand::List => overview::jobs(&client, output),
        JobCommand::TaskManagers => overview::task_managers(&client, output),
        JobCommand::Status(watch) => status::show(&client, &job()?, watch, output),
        JobCommand::Top(watch) => top::show(&client, &job()?, watch, output),
        JobCommand::Vertex { vertex } => vertex::show(&client, &job()?, *vertex, output),
        JobCommand::Checkpoints(watch) => checkpoints::list(&client, &job()?, watch, output),
        JobCommand::Checkpoint { id: Some(id), .. } => checkpoints::one(&client, &job()?, *id, output),
        JobCommand::Checkpoint { id: None, waiting, .. } => operations::checkpoint(&client, &job()?, waiting, output),
        JobCommand::Savepoint { name, format, waiting } => {
            let request = SavepointRequest { name: name.clone(), format: (*format).into() };
            operations::savepoint(&client, &job()?, &request, waiting, output)
        }
        JobCommand::Stop { savepoint, format, drain, waiting } => {
            let request = StopRequest { name: savepoint.clone(), format: (*format).into(), drain: *drain };
            operations::stop(&client, &job()?, &request, waiting, output)
        }
        JobCommand::Cancel { waiting } => operations::cancel(&client, &job()?, waiting, output),
        JobCommand::Dispose { savepoint, waiting } => operations::dispose(&client, savepoint, waiting, output),
        JobCommand::Request { request, waiting } => operations::request(&client, request, waiting, output),
        JobCommand::Rescale { parallelism: None, .. } => rescale::bounds(&client, &job()?, output),
        JobCommand::Rescale { parallelism: Some(parallelism), least, waiting } => {
            rescale::rescale(&client, &job()?, (*parallelism, *least), waiting, output)
        }
        JobCommand::Rescales => rescale::history(&client, &job()?, output),
        JobCommand::Exceptions => exceptions::show(&client, &job()?, output),
    }
}
