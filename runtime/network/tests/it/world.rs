//! Two TaskManagers' data planes on the loopback, and tasks that the test plays.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use streamkeeper_network::{
    Arrival, ChannelKey, Compression, Element, InputGate, Interrupt, PeerId,
    tcp::{ChannelEnd, ChannelFailure, DataPlane, DataPlaneOptions, Identity, Peer, RemoteSender, TlsOptions},
};
use streamkeeper_types::{AttemptId, Error, Generation, SubtaskId, VertexId};

use crate::proxy::{Proxy, Script};

/// Never waited for when all is well.
pub const LONG: Duration = Duration::from_secs(30);
pub const TOKEN: &str = "token";

pub fn options(id: &str) -> DataPlaneOptions {
    let identity = Identity { id: PeerId::new(id), token: TOKEN.into(), job: "default/x".into() };
    DataPlaneOptions::new(identity, "127.0.0.1:0".parse().unwrap())
}

/// One authority and a certificate of it.
pub fn tls() -> TlsOptions {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let name = "taskmanager.streamkeeper";
    let certificate = CertificateParams::new(vec![name.into()]).unwrap().signed_by(&key, &authority).unwrap();
    TlsOptions {
        roots: authority.pem().into_bytes(),
        certificates: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        name: name.into(),
    }
}

/// Channel `input` between attempts of `generation`.
pub fn key(generation: u64, input: u32) -> ChannelKey {
    let attempt = |vertex| AttemptId {
        generation: Generation(generation),
        subtask: SubtaskId { vertex: VertexId(vertex), index: 0 },
        number: 0,
    };
    ChannelKey { producer: attempt(0), consumer: attempt(1), input }
}

/// Channel `input` the other way round.
pub fn back_key(input: u32) -> ChannelKey {
    let ChannelKey { producer, consumer, .. } = key(1, input);
    ChannelKey { producer: consumer, consumer: producer, input }
}

/// A plane and what it reports.
pub struct Node {
    pub plane: DataPlane,
    pub failures: mpsc::Receiver<ChannelFailure>,
    id: PeerId,
}

impl Node {
    pub fn start(options: DataPlaneOptions) -> Self {
        let (failed, failures) = mpsc::channel();
        let id = options.identity.id.clone();
        let sink = move |failure| {
            // The test may be over.
            let _ = failed.send(failure);
        };
        Self { plane: DataPlane::start(options, Arc::new(sink)).unwrap(), failures, id }
    }

    pub fn peer(&self) -> Peer {
        self.peer_at(self.plane.address())
    }

    /// The node behind another address, as that of a proxy.
    pub fn peer_at(&self, address: SocketAddr) -> Peer {
        Peer { id: self.id.clone(), address: address.to_string() }
    }

    /// The next failure: which end of which input, and why.
    pub fn failure(&self) -> (ChannelEnd, u32, Error) {
        let failure = self.failures.recv_timeout(LONG).unwrap();
        (failure.end, failure.channel.input, failure.error)
    }
}

/// `a` dials `b`, maybe through a proxy.
pub struct World {
    pub a: Node,
    pub b: Node,
    /// How `a` reaches `b`.
    pub to_b: Peer,
    pub _proxy: Option<Proxy>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl Fn(&mut DataPlaneOptions)) -> Self {
        let [a, b] = ["a", "b"].map(|id| {
            let mut options = options(id);
            change(&mut options);
            Node::start(options)
        });
        let to_b = b.peer();
        Self { a, b, to_b, _proxy: None }
    }

    pub fn through(script: Script, change: impl Fn(&mut DataPlaneOptions)) -> Self {
        let world = Self::with(change);
        let proxy = Proxy::start(world.b.plane.address(), script);
        let to_b = world.b.peer_at(proxy.address());
        Self { to_b, _proxy: Some(proxy), ..world }
    }

    pub fn sender(&self, input: u32) -> RemoteSender {
        self.sender_with(input, Compression::None, Interrupt::default())
    }

    pub fn sender_with(&self, input: u32, compression: Compression, interrupt: Interrupt) -> RemoteSender {
        self.a.plane.sender(&self.to_b, key(1, input), compression, interrupt).unwrap()
    }

    /// Channels 0 to `channels` from `a` to one gate at `b`.
    pub fn gate(&self, channels: u32, capacity: usize) -> InputGate {
        let gate = InputGate::new(channels as usize, capacity);
        for input in 0..channels {
            self.b.plane.receiver(&self.a.peer(), key(1, input), &gate, capacity).unwrap();
        }
        gate
    }
}

/// The next element of a gate.
pub fn next(gate: &mut InputGate) -> (usize, Element) {
    loop {
        match gate.poll(LONG) {
            Arrival::Element { channel, element, .. } => return (channel, element),
            Arrival::Opened => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Everything up to the failure.
pub fn until_failure(gate: &mut InputGate) -> (Vec<Element>, Error) {
    let mut elements = Vec::new();
    loop {
        match gate.poll(LONG) {
            Arrival::Element { element, .. } => elements.push(element),
            Arrival::Failed(error) => return (elements, error),
            Arrival::Opened => {}
            other => panic!("{other:?}"),
        }
    }
}
