//! `cargo run -p streamkeeper-fuzz -- TARGET [--seconds N] [--seed N]`: runs one target for a while.

use std::{
    panic::catch_unwind,
    time::{Duration, Instant},
};

use streamkeeper_fuzz::{Mutator, TARGETS};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: u64| {
        arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)?.parse().ok()).unwrap_or(default)
    };
    let Some(target) = arguments.first().and_then(|name| TARGETS.iter().find(|t| t.name == name)) else {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        eprintln!("usage: streamkeeper-fuzz TARGET [--seconds N] [--seed N]\ntargets: {}", names.join(", "));
        std::process::exit(2);
    };
    let seed = option("--seed", u64::from(std::process::id()));
    let end = Instant::now() + Duration::from_secs(option("--seconds", 60));
    let mut mutator = Mutator::new(seed, target.seeds, target.tokens);
    let mut inputs = 0u64;
    while Instant::now() < end {
        let input = mutator.next_input();
        inputs += 1;
        if catch_unwind(|| (target.run)(&input)).is_err() {
            eprintln!(
                "{} fails after {inputs} inputs of seed {seed} on:\n{:?}",
                target.name,
                String::from_utf8_lossy(&input)
            );
            std::process::exit(1);
        }
    }
    println!("{}: {inputs} inputs of seed {seed}, no failure", target.name);
}
