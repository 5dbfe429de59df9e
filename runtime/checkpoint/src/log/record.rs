//! Records of the log as versioned JSON.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use streamkeeper_types::{CheckpointId, Code, Error, Generation, Result};

use super::{CompletedCheckpoint, JobResult, JobState, RestoreSource};

/// Version of every record. A reader refuses any other.
pub const LOG_VERSION: u32 = 1;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// Number 0 of every generation; stays for ever.
    Claim {
        /// Counts the operator's launches of the job; a lower one than the highest claimed is refused.
        launch: u64,
        /// Unique for each claimant, so that it knows its own record again.
        instance: String,
    },
    /// The last entry of a generation; stays for ever.
    Sealed {
        by: Generation,
    },
    /// All that earlier records say.
    Base(JobState),
    Completed(Completion),
    /// From here on the job starts from `source` until a newer point completes. Points below `floor` no longer count.
    Source {
        source: RestoreSource,
        floor: CheckpointId,
    },
    /// Ids `from..to` are spent, used or not.
    Ids {
        from: CheckpointId,
        to: CheckpointId,
    },
    Result(JobResult),
}

/// A checkpoint or savepoint became visible. One record, so that all of it happens or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub checkpoint: CompletedCheckpoint,
    /// Older checkpoints that this one replaces: their files may go from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsumes: Vec<CheckpointId>,
    /// Replaced ones whose files are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collected: Vec<CheckpointId>,
}

#[derive(Serialize)]
struct Versioned<'a> {
    version: u32,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// The bytes that lie in storage.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let text = serde_json::to_vec(&Versioned { version: LOG_VERSION, record: self });
        text.expect("records have string keys only, which JSON can hold").into()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `SNAPSHOT_FOREIGN` for another version, `SNAPSHOT_CORRUPT` for anything that is no record.
    pub fn decode(path: &str, bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let corrupt = |e: serde_json::Error| {
            Error::new(Code::SnapshotCorrupt, format!("`{path}` is no record of a job log: {e}"))
                .way_out("restore the file from a copy of the checkpoint storage, or start from a savepoint")
        };
        let head: Head = serde_json::from_slice(bytes).map_err(corrupt)?;
        if head.version != LOG_VERSION {
            let cause = format!("`{path}` has version {}, and this program reads version {LOG_VERSION}", head.version);
            return Err(
                Error::new(Code::SnapshotForeign, cause).way_out("run the version that wrote it, or a newer one")
            );
        }
        serde_json::from_slice(bytes).map_err(corrupt)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};

    use super::*;

    /// Written once by version 1; every later version must read it.
    const GOLDEN: [&str; 7] = [
        r#"{"version":1,"record":"claim","launch":3,"instance":"ab"}"#,
        r#"{"version":1,"record":"sealed","by":7}"#,
        r#"{"version":1,"record":"base","completed":[{"id":4,"kind":"checkpoint","format":"native","manifest":"chk-4/_metadata","checksum":9,"size":10,"time":11}],"discards":[{"id":3,"manifest":"chk-3/_metadata"}],"next_id":1001,"floor":2,"source":{"from":"savepoint","path":"savepoints/a"}}"#,
        r#"{"version":1,"record":"completed","checkpoint":{"id":5,"kind":{"stop-savepoint":{"drain":true}},"format":"canonical","manifest":"savepoints/b/_metadata","checksum":1,"size":2,"time":3},"subsumes":[3],"collected":[2]}"#,
        r#"{"version":1,"record":"source","source":{"from":"discard"},"floor":1001}"#,
        r#"{"version":1,"record":"ids","from":1001,"to":2001}"#,
        r#"{"version":1,"record":"result","status":"finished","time":12}"#,
    ];

    #[test]
    fn version_1_reads_and_writes_the_same_bytes_for_ever() {
        for text in GOLDEN {
            let record = Record::decode("log/1/0", text.as_bytes()).unwrap();
            assert_eq!(std::str::from_utf8(&record.encode()).unwrap(), text);
        }
        let stop = Record::decode("x", GOLDEN[3].as_bytes()).unwrap();
        let Record::Completed(Completion { checkpoint, subsumes, .. }) = stop else { panic!("{stop:?}") };
        assert_eq!(checkpoint.kind, CheckpointKind::StopSavepoint { drain: true });
        assert_eq!((checkpoint.format, subsumes), (SnapshotFormat::Canonical, vec![CheckpointId(3)]));
    }

    #[test]
    fn other_versions_are_foreign_and_other_bytes_corrupt() {
        let code = |text: &str| Record::decode("log/1/0", text.as_bytes()).unwrap_err().code;
        assert_eq!(code(r#"{"version":2,"record":"claim"}"#), Code::SnapshotForeign);
        for bad in ["", "{", "[]", r#"{"version":1}"#, r#"{"version":1,"record":"clam"}"#, &GOLDEN[0][..20]] {
            assert_eq!(code(bad), Code::SnapshotCorrupt, "{bad}");
        }
    }
}
