//! Rules that a run can leave out. A simulation that does not notice is worth nothing.

/// One rule that whoever executes the deciding code's wishes does not keep. The deciding code itself stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    Nothing,
    /// Seals are only pretended.
    Seals,
    /// After a seal nobody looks whether it is the highest number.
    SealCheck,
    /// The collector deletes claims too.
    KeepingClaims,
    /// The collector deletes seals too.
    KeepingSeals,
    /// A write of unknown outcome is taken for done.
    ReadingBack,
    /// A fenced append is taken for done.
    Fencing,
    /// Tasks are told of a checkpoint when its manifest is written, not when the log has it.
    PublishBeforeNotify,
    /// Replaced checkpoints lose their files before the record that replaces them.
    PublishBeforeDelete,
    /// Shared files are acknowledged as if one checkpoint alone used them, so nobody registers their further use.
    Registration,
    /// The sink does not commit again what a restored snapshot holds.
    RecommitOnRestore,
    /// The sink commits exactly the id it is told, not everything at or below.
    CommitAllBelow,
    /// Tasks are told of intermediate savepoints too.
    SavepointsCommitNothing,
    /// Events to readers pass between the coordinator's cut and the readers'.
    HoldingEvents,
    /// A job is deployed from the checkpoint before the newest.
    NewestCheckpoint,
    /// Reports count for the newest attempt and the checkpoint under way, whichever they are of.
    LateReports,
    /// Elements count for the newest attempt, whichever they were sent to.
    Frames,
    /// A TaskManager runs what a leader deploys that was replaced.
    Deployments,
    /// Tasks go on when their TaskManager has lost its JobManager.
    EndingTasks,
    /// A connection between TaskManagers that breaks is opened anew, and the tasks go on.
    BrokenChannels,
    /// The engine is not told what ran on a TaskManager that is gone.
    LostTasks,
    /// A leader that gets nowhere does not ask whether it still leads.
    CheckingTheReign,
}

impl Omission {
    /// Those that [`crate::log_world`] must notice.
    pub const OF_THE_LOG: [Self; 5] =
        [Self::Seals, Self::SealCheck, Self::KeepingClaims, Self::KeepingSeals, Self::ReadingBack];

    /// Those that [`crate::job_world`] must notice.
    pub const OF_THE_JOB: [Self; 9] = [
        Self::Fencing,
        Self::PublishBeforeNotify,
        Self::PublishBeforeDelete,
        Self::Registration,
        Self::RecommitOnRestore,
        Self::CommitAllBelow,
        Self::SavepointsCommitNothing,
        Self::HoldingEvents,
        Self::NewestCheckpoint,
    ];

    /// Those that [`crate::cluster_world`] must notice.
    pub const OF_THE_CLUSTER: [Self; 12] = [
        Self::LateReports,
        Self::Frames,
        Self::Deployments,
        Self::EndingTasks,
        Self::BrokenChannels,
        Self::LostTasks,
        Self::CheckingTheReign,
        Self::Fencing,
        Self::PublishBeforeNotify,
        Self::RecommitOnRestore,
        Self::CommitAllBelow,
        Self::NewestCheckpoint,
    ];

    /// By the name that `--omit` takes.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all =
            Self::OF_THE_LOG.into_iter().chain(Self::OF_THE_JOB).chain(Self::OF_THE_CLUSTER).chain([Self::Nothing]);
        all.into_iter().find(|omission| format!("{omission:?}").eq_ignore_ascii_case(name))
    }
}
