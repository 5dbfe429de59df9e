//! `cargo run -p streamkeeper-fuzz -- TARGET [--seconds N] [--seed N]`: runs one target for a while.
//! `cargo run -p streamkeeper-fuzz -- TARGET --replay FILE`: runs one input, without catching its panic.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use streamkeeper_fuzz::{TARGETS, target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let number = |name: &str, default: u64| option(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let Some(target) = arguments.first().and_then(|name| target(name)) else {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        eprintln!("usage: streamkeeper-fuzz TARGET [--seconds N] [--seed N] | TARGET --replay FILE");
        eprintln!("targets: {}", names.join(", "));
        return ExitCode::from(2);
    };
    if let Some(file) = option("--replay") {
        match std::fs::read(file) {
            Ok(input) => (target.run)(&input),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        }
        println!("{}: no panic on {file}", target.name);
        return ExitCode::SUCCESS;
    }
    let seed = number("--seed", u64::from(std::process::id()));
    let end = Instant::now() + Duration::from_secs(number("--seconds", 60));
    match target.explore(seed, |_| Instant::now() < end) {
        Ok(inputs) => {
            println!("{}: {inputs} inputs of seed {seed}, no failure", target.name);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
