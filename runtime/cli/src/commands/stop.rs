//! How a person or a supervisor stops a command.

use std::sync::{Arc, atomic::AtomicBool};

use signal_hook::consts::{SIGINT, SIGTERM};
use streamkeeper_types::{Code, Result, ResultExt};

/// Set by Ctrl-C or SIGTERM; a second one ends the process at once, which loses nothing but the savepoint.
pub(super) fn signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the first signal finds the flag unset and only sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .or_code(Code::Internal, || "watching for signals".to_owned())?;
    }
    Ok(stop)
}
