//! Who is let in by the control plane, over the wire.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};

use streamkeeper_jobmanager::{
    rpc::{ControlOptions, RemoteTaskManagers, Token, Watched, watch},
    shell::{Inbox, Mail, TaskManagers},
};
use streamkeeper_protocol::control::{
    FromTaskManager, JobProgram, PROTOCOL, Register, control_client::ControlClient, decode, from_task_manager as from,
    to_task_manager as to,
};
use streamkeeper_types::{Code, Error};
use tokio::{runtime::Runtime, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Endpoint};

/// Never waited for when all is well.
const LONG: Duration = Duration::from_secs(30);

struct World {
    managers: RemoteTaskManagers,
    runtime: Runtime,
    _mail: Mail,
}

/// A connection of a TaskManager.
struct Connection {
    outbox: mpsc::Sender<FromTaskManager>,
    inbound: Streaming<streamkeeper_protocol::control::ToTaskManager>,
}

impl World {
    fn new() -> Self {
        let program = JobProgram { manifest: "kind: StreamJob".into(), path: "/job.yaml".into(), storage: "s".into() };
        let (inbox, mail) = Inbox::new();
        let options = ControlOptions {
            token: Some(Token::new("right".into())),
            ..ControlOptions::new("127.0.0.1:0".parse().unwrap())
        };
        let managers = RemoteTaskManagers::listen(options, &program, &inbox).unwrap();
        Self {
            managers,
            runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
            _mail: mail,
        }
    }

    fn say(&self, first: from::Message) -> Result<Connection, Status> {
        self.runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.managers.address())).unwrap();
            let mut client = ControlClient::new(endpoint.connect().await.unwrap());
            let (outbox, messages) = mpsc::channel(8);
            outbox.send(FromTaskManager { message: Some(first) }).await.unwrap();
            let inbound = client.connect(ReceiverStream::new(messages)).await?.into_inner();
            Ok(Connection { outbox, inbound })
        })
    }

    fn hear(&self, connection: &mut Connection) -> Option<to::Message> {
        self.runtime.block_on(async { connection.inbound.message().await.unwrap() }).and_then(|message| message.message)
    }

    fn refusal(&self, register: Register) -> Error {
        let mut connection = self.say(from::Message::Register(register)).unwrap();
        let Some(to::Message::Refused(error)) = self.hear(&mut connection) else { panic!("it was not refused") };
        assert_eq!(self.hear(&mut connection), None, "nothing follows a refusal");
        decode(&error).unwrap()
    }

    fn slots_become(&self, expected: u32) {
        let begun = std::time::Instant::now();
        while self.managers.slots() != expected {
            assert!(begun.elapsed() < LONG, "{} slots instead of {expected}", self.managers.slots());
            thread::yield_now();
        }
    }
}

fn register() -> Register {
    Register {
        protocol: PROTOCOL,
        version: "9.9.9".into(),
        task_manager: "one".into(),
        token: "right".into(),
        slots: 2,
        data_address: "127.0.0.1:1".into(),
    }
}

#[test]
fn another_protocol_is_refused_with_both_numbers_and_what_to_do() {
    let world = World::new();
    let error = world.refusal(Register { protocol: PROTOCOL + 1, ..register() });
    assert_eq!(error.code, Code::PeerRefused);
    let told = error.to_string();
    for part in
        ["9.9.9", &format!("speaks protocol {}", PROTOCOL + 1), &format!("speaks {PROTOCOL}"), "the same version"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(world.managers.slots(), 0);
}

#[test]
fn a_wrong_token_and_an_offer_of_nothing_are_refused() {
    let world = World::new();
    for token in ["wrong", "righ", "rightt", ""] {
        let error = world.refusal(Register { token: token.into(), ..register() });
        assert!(error.code == Code::PeerRefused && error.cause.contains("token"), "{token}: {error}");
    }
    assert_eq!(world.refusal(Register { slots: 0, ..register() }).code, Code::PeerRefused);
    assert_eq!(world.managers.slots(), 0);
}

#[test]
fn who_does_not_say_who_it_is_gets_no_stream() {
    let world = World::new();
    let refused = world.say(from::Message::Report(Vec::new().into())).err().unwrap();
    assert!(refused.message().contains("registration"), "{refused}");
}

#[test]
fn slots_count_from_the_welcome_to_the_end_of_the_stream() {
    let world = World::new();
    let mut connection = world.say(from::Message::Register(register())).unwrap();
    let Some(to::Message::Welcome(welcome)) = world.hear(&mut connection) else { panic!("no welcome") };
    assert_eq!(decode::<JobProgram>(&welcome.program).unwrap().manifest, "kind: StreamJob");
    world.slots_become(2);
    // The same process again: its first stream counts no more.
    let again = world.say(from::Message::Register(Register { slots: 3, ..register() })).unwrap();
    world.slots_become(3);
    drop(connection);
    world.slots_become(3);
    drop(again);
    world.slots_become(0);
}

#[test]
fn a_message_that_cannot_be_read_ends_the_stream() {
    let world = World::new();
    let mut connection = world.say(from::Message::Register(register())).unwrap();
    world.hear(&mut connection);
    let garbage = FromTaskManager { message: Some(from::Message::Report(b"{".to_vec().into())) };
    connection.outbox.try_send(garbage).unwrap();
    while world.hear(&mut connection).is_some() {}
    world.slots_become(0);
}

#[test]
fn a_standby_watches_until_the_leader_is_gone_and_never_disturbs_one_that_does_not_know_it() {
    let world = World::new();
    let address = world.managers.address().to_string();
    let stop = AtomicBool::new(false);
    let error = watch(&address, "wrong", None, LONG, &stop, || {}).unwrap_err();
    assert!(error.code == Code::PeerRefused && error.cause.contains("token"), "{error}");
    thread::scope(|scope| {
        let (answered, answers) = channel();
        let watching = scope.spawn(|| watch(&address, "right", None, LONG, &stop, move || answered.send(()).unwrap()));
        answers.recv().unwrap();
        drop(world);
        assert_eq!(watching.join().unwrap().unwrap(), Watched::Gone);
    });
    assert_eq!(watch(&address, "right", None, LONG, &stop, || {}).unwrap(), Watched::Absent, "refused at once");
    let world = World::new();
    stop.store(true, Ordering::SeqCst);
    let address = world.managers.address().to_string();
    assert_eq!(watch(&address, "right", None, LONG, &stop, || {}).unwrap(), Watched::Stopped);
}
