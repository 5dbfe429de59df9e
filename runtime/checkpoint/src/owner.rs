//! The `owner` file: written once, so that two clusters never run one job over the same storage.

use streamkeeper_storage::{PutMode, PutOutcome, Storage, StorageError};
use streamkeeper_types::{Code, Error, Result};

const PATH: &str = "owner";
const LOCAL_PREFIX: &str = "local-";

/// Who runs the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A cluster, by the UID of its kube-system namespace.
    Cluster { uid: String },
    /// A machine without a cluster. `random` is used if nobody owns the job yet; any other machine may go on with it.
    Local { random: String },
}

/// Makes `owner` the owner if there is none.
///
/// # Errors
/// `FENCED` if the job belongs to somebody else; storage errors.
pub fn ensure(storage: &dyn Storage, owner: &Owner) -> Result<()> {
    let text = match owner {
        Owner::Cluster { uid } => uid.clone(),
        Owner::Local { random } => format!("{LOCAL_PREFIX}{random}"),
    };
    match storage.put(PATH, text.clone().into(), PutMode::Create) {
        Ok(PutOutcome::Done) => return Ok(()),
        // Whose it is tells the file.
        Ok(PutOutcome::Exists) | Err(StorageError::Unknown(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let found = storage.get(PATH)?;
    let found = String::from_utf8_lossy(&found);
    let same = match owner {
        Owner::Cluster { .. } => found == text,
        Owner::Local { .. } => found.starts_with(LOCAL_PREFIX),
    };
    if same {
        return Ok(());
    }
    Err(Error::new(Code::Fenced, format!("this job's checkpoint storage belongs to `{found}`"))
        .way_out("use another checkpoint storage, or delete the file `owner` once the other one surely is gone"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_storage::MemoryStorage;

    use super::*;

    #[test]
    fn the_first_owner_stays() {
        let local = |random: &str| Owner::Local { random: random.into() };
        let cluster = |uid: &str| Owner::Cluster { uid: uid.into() };
        for (first, second, accepted) in [
            (local("a"), local("b"), true),
            (local("a"), cluster("u"), false),
            (cluster("u"), cluster("u"), true),
            (cluster("u"), cluster("v"), false),
            (cluster("u"), local("a"), false),
        ] {
            let storage = MemoryStorage::new();
            ensure(&storage, &first).unwrap();
            let second_try = ensure(&storage, &second);
            assert_eq!(second_try.is_ok(), accepted, "{first:?}, {second:?}");
            assert!(accepted || second_try.unwrap_err().code == Code::Fenced);
        }
    }
}
