//! What every process shows of itself.

use super::{
    list::{BUILD_INFO, PROCESS_MEMORY, PROCESS_THREADS, Server},
    samples::Samples,
};

/// Samples of this process, to which its server adds its own. Where the kernel does not tell, there are none.
#[must_use]
pub fn process_samples(server: Server) -> Samples {
    let mut samples = Samples::of(server);
    samples.add(&BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1_u32);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kib) = field(&status, "VmRSS:") {
        samples.add(&PROCESS_MEMORY, &[], kib.saturating_mul(1024));
    }
    if let Some(threads) = field(&status, "Threads:") {
        samples.add(&PROCESS_THREADS, &[], threads);
    }
    samples
}

/// The number behind a name in `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_kernels_status_is_found_by_its_name() {
        let status = "Name:\tx\nVmRSS:\t  1234 kB\nThreads:\t7\n";
        assert_eq!(
            (field(status, "VmRSS:"), field(status, "Threads:"), field(status, "VmHWM:")),
            (Some(1234), Some(7), None)
        );
    }
}
