//! Who is let in, and what is said to those who are not.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use streamkeeper_network::{
    ChannelClosed, ChannelSender, Compression, Element, Interrupt, PeerId,
    frame::{Flags, HEADER_LEN, Header, Kind, VERSION, checksum},
    tcp::{DataPlaneOptions, Peer},
};
use streamkeeper_types::{Code, Error, Generation};

use crate::{
    batches::{numbers, values},
    world::{Node, World, key, next, options, tls, until_failure},
};

/// What a dialler learns whose options differ by `change`.
fn refused(change: impl Fn(&mut DataPlaneOptions)) -> Error {
    let b = Node::start(options("b"));
    let mut other = options("a");
    change(&mut other);
    let a = Node::start(other);
    fail_of(&a, &b.peer())
}

fn fail_of(a: &Node, peer: &Peer) -> Error {
    let mut sender = a.plane.sender(peer, key(1, 0), Compression::None, Interrupt::default()).unwrap();
    assert_eq!(sender.send(Element::Idle), Err(ChannelClosed::Connection));
    a.failure().2
}

fn assert_refusal(error: &Error, cause: &str) {
    assert_eq!(error.code, Code::ConnectionRefused, "{error}");
    assert!(error.cause.contains(cause), "{error}");
    assert!(error.way_out.is_some());
}

#[test]
fn another_cluster_job_or_process_is_refused_with_the_reason() {
    assert_refusal(&refused(|options| options.identity.token = "guess".into()), "token");
    assert_refusal(&refused(|options| options.identity.job = "default/y".into()), "runs job default/x");
    let (a, b) = (Node::start(options("a")), Node::start(options("c")));
    let wrong = Peer { id: PeerId::new("b"), ..b.peer() };
    assert_refusal(&fail_of(&a, &wrong), "it is c");
}

#[test]
fn r25_a_zombie_of_a_fenced_generation_is_refused_and_its_connection_ended() {
    let world = World::new();
    let mut gate = world.gate(1, 1 << 20);
    let mut sender = world.sender(0);
    sender.send(Element::Batch(numbers(0..3))).unwrap();
    assert_eq!(values(&next(&mut gate).1), [0, 1, 2]);
    world.b.plane.fence(Generation(2));
    assert!(until_failure(&mut gate).1.cause.contains("generation 2 fences generation 1"));
    assert_eq!(world.a.failure().2.code, Code::ConnectionLost);
    assert_refusal(&fail_of(&world.a, &world.to_b), "generation 2 runs");
    let own = world.b.plane.receiver(&world.a.peer(), key(1, 0), &gate, 1).unwrap_err();
    assert_eq!(own.code, Code::Fenced);
}

#[test]
fn tls_wants_certificates_of_the_same_authority_on_both_sides() {
    let start = |id: &str, tls| {
        let mut options = options(id);
        options.tls = tls;
        options.connect_timeout = Duration::from_millis(500);
        options.handshake_timeout = Duration::from_millis(200);
        Node::start(options)
    };
    let b = start("b", Some(tls()));
    for tls in [None, Some(tls())] {
        let a = start("a", tls);
        let error = fail_of(&a, &b.peer());
        assert!(matches!(error.code, Code::ConnectionRefused | Code::ConnectionLost), "{error}");
    }
}

#[test]
fn certificates_that_are_none_are_refused_at_the_start() {
    let mut options = options("a");
    let mut broken = tls();
    broken.certificates = b"nonsense".to_vec();
    options.tls = Some(broken);
    let sink = std::sync::Arc::new(|_| {});
    let error = streamkeeper_network::tcp::DataPlane::start(options, sink).unwrap_err();
    assert_eq!(error.code, Code::OptionInvalid);
}

#[test]
fn nobody_at_the_address_is_an_error_after_the_timeout() {
    let mut options = options("a");
    options.connect_timeout = Duration::from_millis(100);
    let a = Node::start(options);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fail_of(&a, &Peer { id: PeerId::new("b"), address: port.to_string() });
    assert_eq!(error.code, Code::ConnectionLost);
}

/// What the port answers to `bytes`, until it hangs up.
fn answer(b: &Node, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(b.plane.address()).unwrap();
    // The port may hang up before it has read all of it.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn frame(kind: Kind, length: u32, body: &[u8]) -> Vec<u8> {
    let header = Header { kind, flags: Flags::NONE, channel: 0, length, sequence: 0, body_checksum: checksum(body) };
    [&header.to_bytes()[..], body].concat()
}

#[test]
fn hostile_bytes_are_hung_up_on_and_the_port_goes_on_serving() {
    let b = Node::start(options("b"));
    assert_eq!(answer(&b, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), b"");
    assert_eq!(answer(&b, &[0; 5]), b"");
    assert_eq!(answer(&b, &frame(Kind::Hello, u32::MAX, b"")), b"");
    assert_eq!(answer(&b, &frame(Kind::Batch, 1 << 20, b"")), b"");
    let refusal = answer(&b, &frame(Kind::Hello, 3, &[0xff; 3]));
    assert_eq!(refusal[3], Kind::Refusal as u8);
    let mut other_version = frame(Kind::Hello, 0, b"");
    other_version[2] = VERSION + 1;
    let own = checksum(&other_version[..28]);
    other_version[28..HEADER_LEN].copy_from_slice(&own.to_le_bytes());
    assert_eq!(answer(&b, &other_version)[3], Kind::Refusal as u8);

    let a = Node::start(options("a"));
    let world = World { to_b: b.peer(), a, b, _proxy: None };
    let mut gate = world.gate(1, 1 << 20);
    world.sender(0).send(Element::Batch(numbers(0..3))).unwrap();
    assert_eq!(values(&next(&mut gate).1), [0, 1, 2]);
}
