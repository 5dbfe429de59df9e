//! `streamkeeper jobmanager`: leads a job whose tasks run elsewhere.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_jobmanager::{
    engine::Bounds,
    rest::{Led, RestOptions, RestServer},
    rpc::{self, ControlOptions, RemoteTaskManagers, Token, Watched},
    shell::{self, Inbox, JobOutcome, JobSpec, JobStatus, Phase, RestoreChoice, TaskManagers},
};
use streamkeeper_protocol::control::{JobProgram, TlsIdentity};
use streamkeeper_types::{Code, Error, Result};

use super::{
    run::{End, finish, finished_program},
    stop,
};
use crate::{
    args::{Global, JobManager},
    import,
    job_file::{JobFile, read_text},
    launch::{Launch, job_location, local_job, storage_url},
};

/// Between two looks at the job.
const TICK: Duration = Duration::from_millis(200);

/// How long the end of the process waits for those who asked for it over REST and have not learnt how it went.
const LINGER: Duration = Duration::from_secs(5);

/// Silence after which a leader counts as gone (`liveness.timeout`).
const SILENCE: Duration = Duration::from_secs(2);

pub fn execute(arguments: &JobManager, global: &Global) -> Result<()> {
    let file = JobFile::read(&arguments.job)?;
    let plan = file.plan()?;
    let target = arguments.parallelism.unwrap_or(file.job.parallelism);
    let least = arguments.least_parallelism.unwrap_or(target);
    if least > target {
        return Err(Error::new(Code::ParallelismInvalid, format!("--least-parallelism {least} exceeds {target}"))
            .way_out("give at most the parallelism"));
    }
    let dropped = arguments.allow_dropped_state || file.job.allow_dropped_state;
    let launch = Launch {
        parallelism: target,
        backend: file.job.state.backend,
        storage: arguments.storage.clone(),
        memory: None,
        restore: if arguments.discard_state { RestoreChoice::Discard } else { RestoreChoice::Auto },
        dropped_state: if dropped { DroppedState::Allow } else { DroppedState::Refuse },
    };
    let mut spec = local_job(&file, plan.graph, &launch)?.job;
    spec.bounds = Bounds { least, target };
    // Several JobManagers may wait on one machine; the log decides who leads.
    spec.lock = None;
    if let Some(snapshot) = &arguments.restore {
        spec.restore = RestoreChoice::From(import::into_job(snapshot, &file.base_dir(), spec.storage.as_ref())?);
    }
    let token = arguments.token_file.as_deref().map(read_token).transpose()?;
    let tls = arguments.tls.read()?;
    let finished_program = finished_program(spec.storage.as_ref());
    let program = program(&file, &launch)?;
    let stop = stop::signal()?;
    let rest = arguments.rest.map(|listen| rest(listen, token.as_deref())).transpose()?;
    let rest = rest.as_ref().map(|server| Rest { server, location: job_location(&file, arguments.storage.as_deref()) });
    loop {
        if let Some(rest) = &rest {
            rest.server.stand_by(shell::leader(spec.storage.as_ref())?);
        }
        match wait_for_leader(arguments, &spec, token.as_deref().unwrap_or_default(), tls.as_ref(), &stop)? {
            Watched::Stopped => return Ok(()),
            Watched::Absent => {}
            Watched::Gone => {
                if let Some(outcome) = shell::ended(spec.storage.as_ref())? {
                    let end = End::new(&file, arguments.storage.as_deref(), finished_program.as_deref());
                    return finish(&outcome, &JobStatus::default(), &file, &end, global);
                }
                // What was asked for at the start has been done by the one that led.
                spec.restore = RestoreChoice::Auto;
            }
        }
        let options = ControlOptions {
            token: token.clone().map(Token::new),
            tls: tls.clone(),
            ..ControlOptions::new(arguments.listen)
        };
        let (outcome, status) =
            lead(options, arguments.advertise.as_deref(), &program, spec.clone(), rest.as_ref(), &stop)?;
        match outcome {
            Err(error) if error.code == Code::Fenced => eprintln!("another JobManager leads the job; standing by"),
            outcome => {
                if let Some(rest) = &rest {
                    rest.server.let_outcomes_be_fetched(LINGER);
                }
                let end = End::new(&file, arguments.storage.as_deref(), finished_program.as_deref());
                return finish(&outcome?, &status, &file, &end, global);
            }
        }
        // As above: by us, or by whoever leads.
        spec.restore = RestoreChoice::Auto;
    }
}

/// Stands by as long as somebody else leads.
fn wait_for_leader(
    arguments: &JobManager,
    spec: &JobSpec,
    token: &str,
    tls: Option<&TlsIdentity>,
    stop: &AtomicBool,
) -> Result<Watched> {
    let Some(leader) = shell::leader(spec.storage.as_ref())? else { return Ok(Watched::Absent) };
    if leader == own_address(arguments.listen, arguments.advertise.as_deref()) {
        return Ok(Watched::Absent);
    }
    rpc::watch(&leader, token, tls, SILENCE, stop, || {
        eprintln!("standing by: the JobManager at {leader} leads the job");
    })
}

/// The REST API of this process, while it leads and while it stands by.
struct Rest<'a> {
    server: &'a RestServer,
    /// URL of the job's folder.
    location: String,
}

fn rest(listen: SocketAddr, token: Option<&str>) -> Result<RestServer> {
    let token = token.map(|token| Token::new(token.to_owned()));
    let server = RestServer::listen(RestOptions::new(listen, token))?;
    eprintln!("REST API at http://{}", server.address());
    Ok(server)
}

/// Leads until the job ends, or somebody else leads.
fn lead(
    options: ControlOptions,
    advertise: Option<&str>,
    program: &JobProgram,
    mut spec: JobSpec,
    rest: Option<&Rest<'_>>,
    stop: &AtomicBool,
) -> Result<(Result<JobOutcome>, JobStatus)> {
    let (inbox, mail) = Inbox::new();
    let managers = Arc::new(RemoteTaskManagers::listen(options, program, &inbox)?);
    let address = own_address(managers.address(), advertise);
    eprintln!("TaskManagers connect to {address}");
    spec.address = Some(address);
    let transport: Arc<dyn TaskManagers> = Arc::clone(&managers) as _;
    let led_spec = rest.map(|_| spec.clone());
    let handle = match shell::start(spec, Arc::clone(&transport), inbox, mail, || {}) {
        Ok(handle) => handle,
        Err(error) => return Ok((Err(error), JobStatus::default())),
    };
    if let (Some(Rest { server, location }), Some(spec)) = (rest, led_spec) {
        server.lead(Led::new(&spec, location, &transport, handle.control()));
    }
    let board = handle.board().clone();
    while handle.wait_until(TICK, |status| status.phase == Phase::Ended).phase != Phase::Ended {
        if stop.load(Ordering::SeqCst) {
            // Whoever leads next goes on; a stop or an end is asked for over REST.
            handle.abandon();
            return Ok((Ok(JobOutcome::Cancelled), board.read()));
        }
    }
    Ok((handle.join(), board.read()))
}

fn own_address(listen: SocketAddr, advertise: Option<&str>) -> String {
    advertise.map_or_else(|| listen.to_string(), |host| format!("{host}:{}", listen.port()))
}

/// What TaskManagers plan the job from.
fn program(file: &JobFile, launch: &Launch) -> Result<JobProgram> {
    let path = std::path::absolute(&file.path).map_err(|e| Error::io(Code::FileUnreadable, file.path.display(), &e))?;
    let storage = storage_url(file, launch.storage.as_deref()).to_owned();
    Ok(JobProgram { manifest: file.text.clone(), path: path.display().to_string(), storage })
}

/// The secret in a file, without the line end that editors add.
pub(super) fn read_token(path: &Path) -> Result<String> {
    let token = read_text(path)?.trim_end().to_owned();
    if token.is_empty() {
        return Err(Error::new(Code::OptionInvalid, format!("{} holds no secret", path.display()))
            .way_out("write at least one character into it, or leave --token-file out"));
    }
    Ok(token)
}
