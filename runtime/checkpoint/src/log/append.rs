//! One create-if-absent whose outcome gets known in the end.

use bytes::Bytes;

use super::{Created, Reply, Request, Step};

/// Creates one object with given content, as often as needed to know whose content lies there.
///
/// After an unknown outcome the object is read back: absent means «not yet», and the *same* content is created again,
/// since the first write may still arrive.
#[derive(Debug, Clone)]
pub struct Append {
    path: String,
    bytes: Bytes,
}

/// Whose record lies at the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    Ours,
    /// Somebody was there first; these are its bytes.
    Taken(Bytes),
}

impl Append {
    #[must_use]
    pub fn new(path: String, bytes: Bytes) -> Self {
        Self { path, bytes }
    }

    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The first step, and the one to go on with after the executor gave up in between.
    #[must_use]
    pub fn begin(&self) -> Request {
        Request::Create { path: self.path.clone(), bytes: self.bytes.clone() }
    }

    /// Takes the outcome of the last step.
    #[must_use]
    pub fn on(&self, reply: Reply) -> Step<Appended> {
        match reply {
            Reply::Created(Created::Done) => Step::Done(Appended::Ours),
            Reply::Created(Created::Exists | Created::Unknown) => Step::Ask(Request::Get { path: self.path.clone() }),
            Reply::Got(Some(found)) if found == self.bytes => Step::Done(Appended::Ours),
            Reply::Got(Some(found)) => Step::Done(Appended::Taken(found)),
            // A listing is never asked for here.
            Reply::Got(None) | Reply::Listed(_) => Step::Ask(self.begin()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r24_an_unknown_outcome_is_settled_by_reading_back() {
        let bytes = Bytes::from_static(b"ours");
        let append = Append::new("log/1/2".into(), bytes.clone());
        let create = || Step::Ask(append.begin());
        let get = || Step::Ask(Request::Get { path: "log/1/2".into() });
        for (reply, step) in [
            (Reply::Created(Created::Done), Step::Done(Appended::Ours)),
            (Reply::Created(Created::Exists), get()),
            (Reply::Created(Created::Unknown), get()),
            (Reply::Got(None), create()),
            (Reply::Got(Some(bytes.clone())), Step::Done(Appended::Ours)),
            (Reply::Got(Some(Bytes::from_static(b"x"))), Step::Done(Appended::Taken(Bytes::from_static(b"x")))),
        ] {
            assert_eq!(append.on(reply.clone()), step, "{reply:?}");
        }
    }
}
