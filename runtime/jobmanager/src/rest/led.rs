//! The job that this process leads, as the REST API sees it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use streamkeeper_checkpoint::CompletedCheckpoint;
use streamkeeper_protocol::rest::{SavepointResult, TaskManagerView};
use streamkeeper_storage::Storage;

use super::config::options_of;
use crate::{
    secrets,
    shell::{JobControl, JobSpec, TaskManagers},
};

/// A led job and everything that answers are made of.
pub struct Led {
    pub(super) namespace: String,
    pub(super) name: String,
    /// `<namespace>.<name>`, as it stands in paths.
    pub(super) id: String,
    /// With secret values hidden.
    pub(super) program: String,
    pub(super) options: BTreeMap<String, String>,
    pub(super) storage: Arc<dyn Storage>,
    /// URL of the job's folder.
    pub(super) location: String,
    /// Weak, since a slow caller must not keep the control plane's port from who leads next.
    managers: Weak<dyn TaskManagers>,
    pub(super) control: JobControl,
}

impl Led {
    /// `location` is the URL of the job's folder in checkpoint storage, in whose `savepoints` snapshots are found again.
    #[must_use]
    pub fn new(spec: &JobSpec, location: &str, managers: &Arc<dyn TaskManagers>, control: JobControl) -> Self {
        Self {
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
            id: format!("{}.{}", spec.namespace, spec.name),
            program: secrets::sql(&spec.program),
            options: options_of(spec),
            storage: Arc::clone(&spec.storage),
            location: secrets::address(location.trim_end_matches('/')),
            managers: Arc::downgrade(managers),
            control,
        }
    }

    /// TaskManagers that are connected.
    pub(super) fn members(&self) -> Vec<TaskManagerView> {
        self.managers.upgrade().map_or_else(Vec::new, |managers| managers.members())
    }

    /// What somebody who asked for a snapshot is told.
    pub(super) fn result(&self, completed: &CompletedCheckpoint) -> SavepointResult {
        let folder = completed.manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
        SavepointResult { id: completed.id.0, location: self.location_of(folder) }
    }

    /// URL of a folder in the job's folder.
    pub(super) fn location_of(&self, folder: &str) -> String {
        format!("{}/{folder}", self.location)
    }
}
