//! JobManagers and TaskManagers as processes over TCP: what one kill, one freeze or one wrong secret does.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::processes::{Cluster, Role, Shape};

/// Rows per second at which the log once takes a few seconds.
const SLOW: u32 = 5_000;

#[test]
fn a_job_spread_over_two_task_managers_counts_like_one_process() {
    Cluster::start(2, 1_000_000, Shape::new(1, 2)).finish();
}

#[test]
fn the_tasks_of_a_killed_task_manager_go_on_in_a_spare_slot() {
    let mut cluster = Cluster::start(2, SLOW, Shape::new(1, 3));
    cluster.next_checkpoint();
    // Two of three have tasks.
    cluster.kill(Role::TaskManager(0));
    cluster.kill(Role::TaskManager(1));
    cluster.next_checkpoint();
    cluster.restart(Role::TaskManager(0));
    cluster.finish();
}

#[test]
fn a_standby_leads_when_the_leader_is_killed() {
    let mut cluster = Cluster::start(2, SLOW, Shape::new(2, 2));
    cluster.next_checkpoint();
    let leader = leader(&mut cluster);
    cluster.kill(leader);
    cluster.next_checkpoint();
    cluster.restart(leader);
    cluster.finish();
}

#[test]
fn killing_every_process_at_once_costs_no_row() {
    let mut cluster = Cluster::start(2, SLOW, Shape::new(1, 2));
    cluster.next_checkpoint();
    for role in [Role::JobManager(0), Role::TaskManager(0), Role::TaskManager(1)] {
        cluster.kill(role);
    }
    for role in [Role::TaskManager(0), Role::TaskManager(1), Role::JobManager(0)] {
        cluster.restart(role);
    }
    cluster.finish();
}

#[test]
fn b91_a_leader_that_thaws_after_its_successor_began_steps_down() {
    let mut cluster = Cluster::start(3, SLOW, Shape::new(2, 2));
    cluster.next_checkpoint();
    let leader = leader(&mut cluster);
    let generation = cluster.generation();
    cluster.freeze(leader);
    cluster.wait_for("a successor", |cluster| (cluster.generation() > generation).then_some(()));
    cluster.next_checkpoint();
    cluster.thaw(leader);
    cluster.wait_for("the old leader", |cluster| cluster.log(leader).contains("standing by").then_some(()));
    cluster.next_checkpoint();
    cluster.finish();
}

#[test]
fn a_task_manager_that_is_stopped_leaves_nothing_behind_and_one_that_is_killed_leaves_it_to_the_next() {
    let mut cluster = Cluster::start(2, SLOW, Shape::new(1, 2));
    cluster.next_checkpoint();
    cluster.restart(Role::TaskManager(0));
    cluster.next_checkpoint();
    let folder = cluster.example.folder.path().join(".streamkeeper/.work/default.api-hits");
    let count = || fs::read_dir(&folder).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(count(), 2, "of the two that live");
    for index in 0..2 {
        cluster.terminate(Role::TaskManager(index));
        assert!(cluster.end_of(Role::TaskManager(index)).success());
    }
    assert_eq!(count(), 0);
}

#[test]
fn a_task_manager_with_another_token_is_refused_and_says_why() {
    let secrets = tempfile::tempdir().unwrap();
    let (right, wrong) = (secrets.path().join("right"), secrets.path().join("wrong"));
    fs::write(&right, "correct-7c1f\n").unwrap();
    fs::write(&wrong, "mistaken-7c1f\n").unwrap();
    let token = |file: &Path| vec!["--token-file".to_owned(), file.display().to_string()];
    let mut cluster = Cluster::start(1, SLOW, Shape { arguments: token(&right), ..Shape::new(1, 2) });
    cluster.next_checkpoint();
    cluster.set_arguments(token(&wrong));
    cluster.restart(Role::TaskManager(0));
    assert!(!cluster.end_of(Role::TaskManager(0)).success());
    let log = cluster.log(Role::TaskManager(0));
    assert!(log.contains("PEER_REFUSED") && log.contains("the token is not the JobManager's"), "{log}");
    assert!(!log.contains("7c1f"), "a secret is shown: {log}");
    cluster.set_arguments(token(&right));
    cluster.restart(Role::TaskManager(0));
    cluster.finish();
}

#[test]
fn with_tls_everything_runs_and_a_process_without_certificate_is_not_let_in() {
    let files = certificates();
    let path = |name: &str| files.path().join(name).display().to_string();
    let arguments = ["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem"), "--tls-ca", &path("ca.pem")];
    let arguments: Vec<String> = arguments.map(str::to_owned).into();
    let mut cluster = Cluster::start(2, SLOW, Shape { arguments: arguments.clone(), ..Shape::new(1, 3) });
    cluster.next_checkpoint();
    cluster.set_arguments(Vec::new());
    cluster.restart(Role::TaskManager(0));
    cluster
        .wait_for("a refusal", |cluster| cluster.log(Role::TaskManager(0)).contains("no JobManager yet").then_some(()));
    cluster.set_arguments(arguments);
    cluster.finish();
}

/// The process that leads, among two JobManagers.
fn leader(cluster: &mut Cluster) -> Role {
    cluster.wait_for("a leader", |cluster| {
        let leads = |role: &Role| {
            !cluster.log(*role).contains("standing by") && cluster.log(*role).contains("TaskManager came")
        };
        [Role::JobManager(0), Role::JobManager(1)].into_iter().find(leads)
    })
}

/// A root, and one certificate of it with the name of every process.
fn certificates() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["streamkeeper".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    fs::write(folder.path().join("cert.pem"), certificate.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
    folder
}
