//! Replays one seed, or runs many: `streamkeeper-sim [--scenario log|job|cluster] [--seed N | --seeds N] [--omit RULE]`.

use std::env;

use anyhow::{Context, Result, bail};
use streamkeeper_sim::{Omission, Scenario, run_many};

fn main() -> Result<()> {
    let mut scenarios = Scenario::ALL.to_vec();
    let mut seeds = 0..1_000;
    let mut omission = Omission::Nothing;
    let mut arguments = env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--scenario" => {
                scenarios = vec![Scenario::from_name(&value).context("scenarios are log, job and cluster")?];
            }
            "--seed" => {
                let seed: u64 = value.parse().context("--seed takes a number")?;
                seeds = seed..seed.saturating_add(1);
            }
            "--seeds" => seeds = 0..value.parse().context("--seeds takes a number")?,
            "--omit" => omission = Omission::from_name(&value).context("no such rule; see omission.rs")?,
            _ => bail!("unknown flag {flag}; there are --scenario, --seed, --seeds and --omit"),
        }
    }
    for scenario in scenarios {
        run_many(scenario, seeds.clone(), omission).map_err(anyhow::Error::msg)?;
        println!("{scenario:?}: {} seeds, no promise broken", seeds.end - seeds.start);
    }
    Ok(())
}
