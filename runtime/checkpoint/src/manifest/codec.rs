//! Bytes of a manifest: one line that says version, length and checksum, then the body as JSON.
//!
//! The reader is strict. What it accepts is whole, of a known version and consistent in itself; so nobody behind it
//! checks again.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use streamkeeper_types::{Code, Error, Result, key_group};

use super::{Manifest, ManifestOperator};

/// Version of the manifest's bytes. A reader refuses any other.
pub const MANIFEST_VERSION: u32 = 1;

/// Tells a manifest from any other JSON.
const MAGIC: &str = "streamkeeper-manifest";

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    /// Bytes of the body.
    length: u64,
    /// XXH3-64 of the body as 16 hex digits.
    checksum: String,
}

/// XXH3-64: what log records and file references hold.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

impl Manifest {
    /// The bytes that lie in storage.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let as_json = "a manifest has string keys only, which JSON can hold";
        let body = serde_json::to_vec_pretty(self).expect(as_json);
        let head = Head {
            format: MAGIC.to_owned(),
            version: MANIFEST_VERSION,
            length: body.len() as u64,
            checksum: format!("{:016x}", checksum(&body)),
        };
        let mut bytes = serde_json::to_vec(&head).expect(as_json);
        bytes.push(b'\n');
        bytes.extend_from_slice(&body);
        bytes.into()
    }

    /// Reads the manifest at `path` (which errors name).
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` if it is torn, changed or contradicts itself; `SNAPSHOT_FOREIGN` if it is no manifest or of a
    /// version or hash version that this program does not know.
    pub fn decode(path: &str, bytes: &[u8]) -> Result<Self> {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Some(head) = serde_json::from_slice::<Head>(line).ok().filter(|head| head.format == MAGIC) else {
            return Err(no_manifest(path, bytes));
        };
        if head.version != MANIFEST_VERSION {
            return Err(foreign(
                path,
                &format!("has version {}, and this program reads {MANIFEST_VERSION}", head.version),
            ));
        }
        let body = bytes.get(line.len() + 1..).unwrap_or_default();
        if body.len() as u64 != head.length {
            return Err(corrupt(path, &format!("has {} of {} bytes", body.len(), head.length)));
        }
        if format!("{:016x}", checksum(body)) != head.checksum {
            return Err(corrupt(path, "does not have the content that was written: its checksum differs"));
        }
        let manifest: Self = serde_json::from_slice(body).map_err(|e| corrupt(path, &format!("is malformed: {e}")))?;
        manifest.check(path)?;
        Ok(manifest)
    }

    fn check(&self, path: &str) -> Result<()> {
        if self.hash_version != key_group::HASH_VERSION {
            return Err(foreign(path, &format!("uses key hash version {}, unknown here", self.hash_version)));
        }
        let max = self.max_parallelism;
        if max == 0 || max > key_group::MAX_PARALLELISM_LIMIT {
            return Err(corrupt(path, &format!("says a max parallelism of {max}")));
        }
        let mut ids: Vec<_> = self.operators.iter().map(|operator| operator.id).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(corrupt(path, "has one operator twice"));
        }
        self.operators.iter().try_for_each(|operator| check_operator(path, operator, max))
    }
}

fn check_operator(path: &str, operator: &ManifestOperator, max_parallelism: u32) -> Result<()> {
    let fault = |what: &str| corrupt(path, &format!("operator `{}`: {what}", operator.name));
    if operator.subtasks.is_empty() || operator.subtasks.len() as u64 > u64::from(max_parallelism) {
        return Err(fault(&format!("{} subtasks", operator.subtasks.len())));
    }
    for keyed in operator.subtasks.iter().filter_map(|subtask| subtask.keyed.as_ref()) {
        let visible = keyed.tables.iter().flat_map(|table| &table.base).map(|base| base.visible);
        for range in visible.chain([keyed.range]) {
            if range.end() < u32::from(range.start()) || range.end() > max_parallelism {
                return Err(fault("key groups outside the job's"));
            }
        }
    }
    Ok(())
}

/// A file that was cut off in its first line is torn; anything else was never a manifest.
fn no_manifest(path: &str, bytes: &[u8]) -> Error {
    let begin = format!("{{\"format\":\"{MAGIC}\"");
    let common = begin.len().min(bytes.len());
    if begin.as_bytes()[..common] == bytes[..common] {
        return corrupt(path, "is cut off");
    }
    foreign(path, "is no manifest of Streamkeeper")
}

fn corrupt(path: &str, what: &str) -> Error {
    Error::new(Code::SnapshotCorrupt, format!("the manifest `{path}` {what}")).way_out(
        "restore the file from a copy, or name another snapshot with --restore; nothing older is taken by itself",
    )
}

fn foreign(path: &str, what: &str) -> Error {
    Error::new(Code::SnapshotForeign, format!("the manifest `{path}` {what}"))
        .way_out("name a snapshot of this job, or run the version that wrote it")
}
