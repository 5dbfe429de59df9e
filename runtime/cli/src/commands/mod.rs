//! One module a command.

mod job;
mod jobmanager;
mod plan;
mod run;
mod state;
mod stop;
mod taskmanager;
mod test;

use streamkeeper_types::Result;

use crate::args::{Arguments, Command};

/// Runs what was asked for.
///
/// # Errors
/// The one error that ends the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Run(run) => run::execute(run, global),
        Command::Plan(plan) => plan::execute(plan, global),
        Command::Test(test) => test::execute(test, global),
        Command::State(state) => state::execute(state, global),
        Command::JobManager(manager) => jobmanager::execute(manager, global),
        Command::TaskManager(manager) => taskmanager::execute(manager),
        Command::Job(job) => job::execute(job, global),
    }
}
