//! The first frames of a connection, and who is let in.

use std::io::{IoSlice, Read};

use streamkeeper_types::Generation;

use super::{
    options::Identity,
    socket::{Halves, WriteHalf},
};
use crate::frame::{self, Fault, Flags, HEADER_LEN, Header, Hello, Kind, PeerId, Refusal, VERSION, Welcome};

/// Greets an acceptor; its answer.
///
/// # Errors
/// A refusal, or anything that is no answer.
pub(super) fn greet(halves: &mut Halves, hello: &Hello) -> Result<Welcome, Fault> {
    say(&mut halves.write, Kind::Hello, &frame::encode(hello))?;
    let (kind, body) = hear(&mut halves.read)?;
    match kind {
        Kind::Welcome => {
            let welcome: Welcome = frame::decode(&body)?;
            if welcome.from == hello.to {
                return Ok(welcome);
            }
            Err(Fault::Refused(Refusal::Peer { ours: welcome.from }))
        }
        Kind::Refusal => Err(Fault::Refused(frame::decode(&body)?)),
        other => Err(Fault::Unexpected(other)),
    }
}

/// Reads a dialler's greeting. What cannot be read is refused before the error comes back.
///
/// # Errors
/// Anything that is no greeting.
pub(super) fn hear_hello(halves: &mut Halves) -> Result<Hello, Fault> {
    let heard = hear(&mut halves.read).and_then(|(kind, body)| match kind {
        Kind::Hello => frame::decode(&body),
        other => Err(Fault::Unexpected(other)),
    });
    if let Err(fault) = &heard {
        let refusal = match fault {
            Fault::Version { .. } => Some(Refusal::Version { ours: VERSION }),
            Fault::Malformed(_) | Fault::Unexpected(_) => Some(Refusal::Malformed),
            _ => None,
        };
        if let Some(refusal) = refusal {
            refuse(halves, &refusal)?;
        }
    }
    heard
}

/// # Errors
/// Those of the stream.
pub(super) fn welcome(halves: &mut Halves, welcome: &Welcome) -> Result<(), Fault> {
    say(&mut halves.write, Kind::Welcome, &frame::encode(welcome))
}

/// # Errors
/// Those of the stream.
pub(super) fn refuse(halves: &mut Halves, refusal: &Refusal) -> Result<(), Fault> {
    say(&mut halves.write, Kind::Refusal, &frame::encode(refusal))
}

/// Whether a dialler is let in. `lowest`: generations below are fenced.
///
/// # Errors
/// The first reason against it.
pub(super) fn judge(hello: &Hello, identity: &Identity, lowest: Generation) -> Result<(), Refusal> {
    if !same_secret(&hello.token, &identity.token) {
        return Err(Refusal::Token);
    }
    if hello.job != identity.job {
        return Err(Refusal::Job { ours: identity.job.clone() });
    }
    if hello.to != identity.id || !dials(&hello.from, &identity.id) {
        return Err(Refusal::Peer { ours: identity.id.clone() });
    }
    if hello.generation < lowest {
        return Err(Refusal::StaleGeneration { lowest });
    }
    Ok(())
}

/// Whether `one` is the side that dials `other`.
pub(super) fn dials(one: &PeerId, other: &PeerId) -> bool {
    one < other
}

/// Compares in a time that does not tell how much is equal.
fn same_secret(given: &str, own: &str) -> bool {
    let different = given.bytes().zip(own.bytes()).fold(0, |different, (a, b)| different | (a ^ b));
    given.len() == own.len() && different == 0
}

fn say(write: &mut WriteHalf, kind: Kind, body: &[u8]) -> Result<(), Fault> {
    let limit = u64::from(kind.limit(0));
    let length = body.len() as u64;
    let fits = u32::try_from(body.len()).ok().filter(|_| length <= limit);
    let length = fits.ok_or(Fault::TooLarge { kind, length, limit })?;
    let body_checksum = frame::checksum(body);
    let header = Header { kind, flags: Flags::NONE, channel: 0, length, sequence: 0, body_checksum };
    Ok(write.write_parts(&mut [IoSlice::new(&header.to_bytes()), IoSlice::new(body)])?)
}

fn hear(read: &mut impl Read) -> Result<(Kind, Vec<u8>), Fault> {
    let mut bytes = [0; HEADER_LEN];
    read.read_exact(&mut bytes)?;
    // No batch comes before the greeting is over.
    let header = Header::parse(&bytes, 0)?;
    let mut body = vec![0; header.length as usize];
    read.read_exact(&mut body)?;
    header.verify(&body)?;
    if header.sequence != 0 {
        return Err(Fault::OutOfOrder { expected: 0, found: header.sequence });
    }
    Ok((header.kind, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { id: PeerId::new("b"), token: "secret".into(), job: "default/x".into() }
    }

    fn hello() -> Hello {
        Hello {
            token: "secret".into(),
            job: "default/x".into(),
            generation: Generation(4),
            from: PeerId::new("a"),
            to: PeerId::new("b"),
            largest_batch: 1,
        }
    }

    fn check(change: impl FnOnce(&mut Hello), expected: Result<(), Refusal>) {
        let mut hello = hello();
        change(&mut hello);
        assert_eq!(judge(&hello, &identity(), Generation(4)), expected);
    }

    #[test]
    fn only_the_right_token_job_peer_and_generation_are_let_in() {
        let wrong_peer = || Err(Refusal::Peer { ours: PeerId::new("b") });
        check(|_| {}, Ok(()));
        check(|hello| hello.generation = Generation(5), Ok(()));
        check(|hello| hello.token = "secreT".into(), Err(Refusal::Token));
        check(|hello| hello.token.push('x'), Err(Refusal::Token));
        check(|hello| hello.token.clear(), Err(Refusal::Token));
        check(|hello| hello.job.push('x'), Err(Refusal::Job { ours: "default/x".into() }));
        check(|hello| hello.to = PeerId::new("c"), wrong_peer());
        check(|hello| hello.from = PeerId::new("b"), wrong_peer());
        check(|hello| hello.from = PeerId::new("z"), wrong_peer());
    }

    #[test]
    fn r25_a_zombie_of_an_older_generation_is_refused() {
        let stale = Err(Refusal::StaleGeneration { lowest: Generation(4) });
        check(|hello| hello.generation = Generation(3), stale);
    }
}
