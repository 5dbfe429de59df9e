//! JobManager after JobManager.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use streamkeeper_jobmanager::metrics::MetricsServer;
use streamkeeper_network::{
    PeerId,
    tcp::{DataPlane, DataPlaneOptions, Identity, TlsOptions},
};
use streamkeeper_protocol::control::TlsIdentity;
use streamkeeper_types::{Code, Error, Fault, Result, ResultExt};

use super::{
    Prepare, RemoteOptions,
    broken::BrokenChannels,
    reports::Reports,
    session::{Outcome, Session},
};

/// Runs tasks for whoever leads the job, until `stop` is set. When a JobManager is lost, its tasks are cancelled, and
/// the next one is looked for.
///
/// # Errors
/// When the data port or the one of the metrics cannot be listened on, or a JobManager refuses this process: another
/// version or token.
pub fn serve(options: &RemoteOptions, prepare: &Prepare, stop: &Arc<AtomicBool>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
        .or_code(Code::Internal, || "starting the control plane's threads".into())?;
    let name = format!("{:016x}", rand::random::<u64>());
    let identity = Identity { id: PeerId::new(&name), token: options.token.clone(), job: String::new() };
    let reports = Reports::default();
    let (figures, slots) = (reports.figures().clone(), options.slots);
    let take = Arc::new(move || figures.samples(slots));
    let _metrics = options.metrics.map(|listen| MetricsServer::listen(listen, take)).transpose()?;
    let broken = BrokenChannels::default();
    let breaking = broken.clone();
    let tls = options.tls.clone().map(|TlsIdentity { roots, certificates, key, name }| TlsOptions {
        roots,
        certificates,
        key,
        name,
    });
    let listen = DataPlaneOptions { tls, ..DataPlaneOptions::new(identity, options.data_listen) };
    let plane = Arc::new(DataPlane::start(listen, Arc::new(move |failure| breaking.on_failure(failure)))?);
    let (plane, reports, broken, name) = (&plane, &reports, &broken, &name);
    let session = |address| Session { options, prepare, plane, reports, broken, name, address, stop };
    let mut told: HashMap<&String, Error> = HashMap::new();
    let mut in_vain = 0;
    // Where one is lost, the next in the list is the likelier to lead.
    for address in options.job_managers.iter().cycle() {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        match runtime.block_on(session(address).run()) {
            Ok(Outcome::Stopped) => break,
            Ok(Outcome::Lost(why)) => {
                tracing::info!(address, why, "the JobManager is gone; looking for the next");
                in_vain = 0;
                told.clear();
                continue;
            }
            Err(error) if !is_temporary(&error) => return Err(error),
            // A standby does not listen, and may lead later: only a lasting failure is worth a line.
            Err(error) if told.get(address) != Some(&error) => {
                tracing::warn!(address, %error, "no JobManager yet");
                told.insert(address, error);
            }
            Err(_) => {}
        }
        in_vain += 1;
        if in_vain % options.job_managers.len() == 0 {
            runtime.block_on(async { tokio::time::sleep(options.retry).await });
        }
    }
    Ok(())
}

/// Whether another attempt may end otherwise. What a JobManager says about version, token or program holds.
fn is_temporary(error: &Error) -> bool {
    error.fault() == Fault::External && error.code != Code::PeerRefused
}
