//! Many seeds of each scenario, and each rule left out in turn.

use streamkeeper_sim::{Omission, Scenario, run_many};

fn all_hold(scenario: Scenario, seeds: u64) {
    if let Err(broken) = run_many(scenario, 0..seeds, Omission::Nothing) {
        panic!("{broken}");
    }
}

/// The simulation must notice when a rule is left out, or it proves nothing.
fn is_noticed(scenario: Scenario, omission: Omission, within: u64) {
    let noticed = run_many(scenario, 0..within, omission).is_err();
    assert!(noticed, "{omission:?} was left out for {within} seeds and nothing broke");
}

#[test]
fn the_log_keeps_its_promises_under_every_interleaving() {
    all_hold(Scenario::Log, 3_000);
}

#[test]
fn jobs_keep_their_promises_under_faults_and_finish_after_healing() {
    all_hold(Scenario::Job, 1_000);
}

#[test]
fn every_rule_of_the_log_is_missed_when_it_is_left_out() {
    for omission in Omission::OF_THE_LOG {
        is_noticed(Scenario::Log, omission, 6_000);
    }
}

#[test]
fn every_rule_of_the_job_is_missed_when_it_is_left_out() {
    for omission in Omission::OF_THE_JOB {
        is_noticed(Scenario::Job, omission, 1_000);
    }
}

#[test]
fn the_cluster_keeps_its_promises_under_faults_and_finishes_in_time_after_healing() {
    all_hold(Scenario::Cluster, 10_000);
}

#[test]
fn every_rule_of_the_cluster_is_missed_when_it_is_left_out() {
    for omission in Omission::OF_THE_CLUSTER {
        is_noticed(Scenario::Cluster, omission, 3_000);
    }
}
