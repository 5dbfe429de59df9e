//! One number of bytes for a process, and how it is divided (decision 17).

use std::fs;

use streamkeeper_types::{Code, Error, Result, size};

/// Without a setting, a process takes a quarter of the machine, and never more than this.
const DEFAULT_MOST: u64 = 4 << 30;
/// Where the machine does not say what it has.
const UNKNOWN_MACHINE: u64 = 4 << 30;
/// Below this nothing runs well.
const LEAST: u64 = 128 << 20;

const STATE_PERCENT: u32 = 50;
const NETWORK_PERCENT: u64 = 10;

/// The division of `memory.total`. What is not named here is headroom and batches under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    pub total: u64,
    /// Caches of keyed state, and RocksDB's blocks and write buffers within them.
    pub state: u64,
    /// Rows in channels between tasks.
    pub network: u64,
}

impl MemoryPlan {
    /// `total`: `memory.total`, by default a quarter of the machine or container. `state_percent`: the
    /// StreamJob's `state.memoryPercent`.
    ///
    /// # Errors
    /// `JOB_INVALID` for a total below 128 MiB, or a share of state that leaves no room for the rest.
    pub fn new(total: Option<u64>, state_percent: Option<u32>) -> Result<Self> {
        let total =
            total.unwrap_or_else(|| (machine_memory().unwrap_or(UNKNOWN_MACHINE) / 4).clamp(LEAST, DEFAULT_MOST));
        if total < LEAST {
            return Err(Error::new(Code::JobInvalid, format!("memory.total is {}", size::display(total)))
                .way_out(format!("give at least {}", size::display(LEAST))));
        }
        let percent = state_percent.unwrap_or(STATE_PERCENT);
        if !(1..=80).contains(&percent) {
            return Err(Error::new(Code::JobInvalid, format!("state.memoryPercent is {percent}"))
                .way_out("give a number from 1 to 80"));
        }
        Ok(Self { total, state: total / 100 * u64::from(percent), network: total / 100 * NETWORK_PERCENT })
    }
}

/// Bytes of the container's limit or of the machine, whichever is less.
fn machine_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_total(&text));
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min()
}

fn meminfo_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn half_is_state_and_a_tenth_network_unless_the_job_says_otherwise() {
        let plan = MemoryPlan::new(Some(1_000_000_000), None).unwrap();
        assert_eq!((plan.state, plan.network), (500_000_000, 100_000_000));
        assert_eq!(MemoryPlan::new(Some(1_000_000_000), Some(70)).unwrap().state, 700_000_000);
        assert!(MemoryPlan::new(None, None).unwrap().total <= DEFAULT_MOST);
    }

    #[test]
    fn sizes_that_cannot_work_are_refused_with_a_way_out() {
        for (total, percent) in [(1 << 20, None), (1 << 30, Some(0)), (1 << 30, Some(95))] {
            let error = MemoryPlan::new(Some(total), percent).unwrap_err();
            assert_eq!(error.code, Code::JobInvalid);
            assert!(error.way_out.is_some());
        }
    }

    #[test]
    fn the_machines_memory_is_read_from_meminfo() {
        assert_eq!(meminfo_total("MemTotal:        2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(meminfo_total("nonsense"), None);
    }
}
