//! A panic in an operator or connector fails its task, not the process.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use streamkeeper_types::{Error, Result};

/// Runs `call`; a panic inside becomes an `INTERNAL` error that names `what`. Nothing that `call` borrowed is used
/// again after a panic, except to be dropped.
pub(super) fn caught<T>(what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        Err(Error::internal(format!("{what} panicked: {}", text(panic.as_ref())))
            .way_out("report this as a bug; the job restarts from its latest checkpoint"))
    })
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use streamkeeper_types::Code;

    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_message() {
        let error = caught("the task", || -> Result<()> { panic!("no such group: {}", 7) }).expect_err("panicked");
        assert_eq!(error.code, Code::Internal);
        assert_eq!(error.cause, "the task panicked: no such group: 7");
    }
}
