//! What every storage promises, checked on each kind; those over a network against real servers on this machine, which
//! the tests start (`e2e/services`; `e2e/services/services prepare s3 azure hdfs toxiproxy` builds them beforehand).
#![allow(clippy::unwrap_used)]

mod contract;
mod crash;
mod faults_hdfs;
mod faults_s3;
mod faulty;
mod file;
mod kinds;
mod processes;
mod promises;
mod scripted;
mod service;
mod settings;
mod toxiproxy;
