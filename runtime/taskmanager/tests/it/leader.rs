//! A JobManager by hand: says what a test tells it to, and keeps what it hears.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, mpsc},
};

use streamkeeper_protocol::{
    FromTask,
    control::{
        Alive, Deployment, FromTaskManager, JobProgram, Register, ToTaskManager, WatchRequest, Welcome,
        control_server::{Control, ControlServer},
        decode, encode, from_task_manager as from, to_task_manager as to,
    },
};
use tokio::{net::TcpListener, runtime::Runtime, sync::mpsc as channel};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use crate::world::LONG;

/// What comes from TaskManagers.
#[derive(Debug)]
pub enum Heard {
    Registered(Register),
    Report(FromTask),
    /// The stream is over.
    Left,
}

type Outbox = channel::Sender<Result<ToTaskManager, Status>>;

/// One TaskManager at a time.
pub struct Leader {
    pub address: SocketAddr,
    heard: mpsc::Receiver<Heard>,
    outbox: Arc<Mutex<Option<Outbox>>>,
    runtime: Runtime,
}

struct Service {
    heard: mpsc::Sender<Heard>,
    outbox: Arc<Mutex<Option<Outbox>>>,
}

impl Leader {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (told, heard) = mpsc::channel();
        let outbox = Arc::default();
        let service = Service { heard: told, outbox: Arc::clone(&outbox) };
        let server = Server::builder().add_service(ControlServer::new(service));
        runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { address, heard, outbox, runtime }
    }

    pub fn hear(&self) -> Heard {
        self.heard.recv_timeout(LONG).unwrap()
    }

    /// Waits for a TaskManager and welcomes it.
    pub fn welcome(&self) -> Register {
        let register = loop {
            if let Heard::Registered(register) = self.hear() {
                break register;
            }
        };
        let program = JobProgram { manifest: String::new(), path: String::new(), storage: String::new() };
        self.say(to::Message::Welcome(Welcome { program: encode(&program).unwrap().into() }));
        register
    }

    pub fn deploy(&self, deployment: &Deployment) {
        self.say(to::Message::Deployment(encode(deployment).unwrap().into()));
    }

    pub fn say(&self, message: to::Message) {
        let outbox = self.outbox.lock().unwrap().clone().unwrap();
        self.runtime.block_on(outbox.send(Ok(ToTaskManager { message: Some(message) }))).unwrap();
    }

    /// Ends the stream.
    pub fn hang_up(&self) {
        *self.outbox.lock().unwrap() = None;
    }
}

#[tonic::async_trait]
impl Control for Service {
    type ConnectStream = ReceiverStream<Result<ToTaskManager, Status>>;
    type WatchStream = ReceiverStream<Result<Alive, Status>>;

    async fn connect(
        &self,
        request: Request<Streaming<FromTaskManager>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let (outbox, stream) = channel::channel(64);
        *self.outbox.lock().unwrap() = Some(outbox);
        let heard = self.heard.clone();
        let mut inbound = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(FromTaskManager { message: Some(message) })) = inbound.message().await {
                let said = match message {
                    from::Message::Register(register) => Heard::Registered(register),
                    from::Message::Report(report) => Heard::Report(decode(&report).unwrap()),
                    from::Message::Alive(_) => continue,
                };
                // The test may be over.
                let _ = heard.send(said);
            }
            let _ = heard.send(Heard::Left);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("nobody watches a test"))
    }
}
