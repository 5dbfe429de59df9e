//! JobManager after JobManager.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use streamkeeper_jobmanager::metrics::MetricsServer;
use streamkeeper_network::{
    PeerId,
    tcp::{ChannelEnd, ChannelFailure, DataPlane, DataPlaneOptions, Identity},
};
use streamkeeper_protocol::{FromTask, TaskReport, TaskState};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::{
    Prepare, RemoteOptions,
    reports::Reports,
    session::{Outcome, Session},
};

/// Runs tasks for whoever leads the job, until `stop` is set. When a JobManager is lost, its tasks are cancelled, and
/// the next one is looked for.
///
/// # Errors
/// When the data port or the one of the metrics cannot be listened on, or a JobManager refuses this process: another version or token.
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
    let told = reports.clone();
    // A task that waits for something else would notice late that its channel is broken.
    let failures = move |failure: ChannelFailure| {
        let ChannelFailure { channel, end, error, .. } = failure;
        let attempt = match end {
            ChannelEnd::Producer => channel.producer,
            ChannelEnd::Consumer => channel.consumer,
        };
        told.send(&FromTask { attempt, report: TaskReport::State(TaskState::Failed(error)) });
    };
    let plane = DataPlane::start(DataPlaneOptions::new(identity, options.data_listen), Arc::new(failures))?;
    let plane = Arc::new(plane);
    let mut last_refusal: Option<Error> = None;
    while !stop.load(Ordering::SeqCst) {
        for address in &options.job_managers {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let session = Session { options, prepare, plane: &plane, reports: &reports, name: &name, address, stop };
            match runtime.block_on(session.run()) {
                Ok(Outcome::Lost(why)) => tracing::info!(address, why, "the JobManager is gone; looking for the next"),
                Ok(Outcome::Stopped) => return Ok(()),
                // A standby refuses too, and may lead later: only a lasting refusal is worth a line.
                Err(error) if last_refusal.as_ref() != Some(&error) => {
                    tracing::warn!(address, %error, "no JobManager yet");
                    last_refusal = Some(error);
                }
                Err(_) => {}
            }
        }
        runtime.block_on(tokio::time::sleep(options.retry));
    }
    Ok(())
}
