//! The `streamkeeper` binary: parses the command line, runs one command, reports one error.

use std::process::ExitCode;

use clap::Parser;
use streamkeeper_cli::{args::Arguments, commands, report};

/// jemalloc for both sides: RocksDB's C++ uses the same allocator through the unprefixed symbols.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    report::start_logging(&arguments.global);
    match commands::execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error, arguments.global.output);
            report::exit_code(&error)
        }
    }
}
