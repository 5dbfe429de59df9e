//! A TCP proxy that does to the bytes what networks do.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;

/// What happens to the first connection's bytes on the way to the acceptor. Later connections are left alone.
#[derive(Debug, Clone, Copy)]
pub enum Script {
    /// Hang up, both ways, after so many bytes.
    CutAfter(usize),
    /// Invert one bit of that byte.
    Corrupt(usize),
    /// Say nothing more in either direction after so many bytes, and keep the line open.
    MuteAfter(usize),
    /// A few bytes at a time.
    Dribble,
}

pub struct Proxy {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    pub fn start(target: SocketAddr, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (stop, opened) = (Arc::clone(&stopping), Arc::clone(&streams));
        let accept = thread::spawn(move || {
            let mut script = Some(script);
            let mut pumps = Vec::new();
            while let Ok((near, _)) = listener.accept() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(far) = TcpStream::connect(target) else { continue };
                for stream in [&near, &far] {
                    stream.set_nodelay(true).unwrap();
                    opened.lock().push(stream.try_clone().unwrap());
                }
                let script = script.take();
                let muted = Arc::new(AtomicBool::new(false));
                let (from, to, mute) = (near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&muted));
                pumps.push(thread::spawn(move || pump(&from, &to, script, &mute)));
                pumps.push(thread::spawn(move || pump(&far, &near, None, &muted)));
            }
            pumps.into_iter().for_each(|pump| pump.join().unwrap());
        });
        Self { address, stopping, streams, threads: vec![accept] }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for stream in self.streams.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Copies until either side ends.
fn pump(mut from: &TcpStream, mut to: &TcpStream, script: Option<Script>, muted: &AtomicBool) {
    let mut buffer = vec![0; if matches!(script, Some(Script::Dribble)) { 7 } else { 8 << 10 }];
    let mut passed = 0;
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        let mut end = read;
        match script {
            Some(Script::CutAfter(bytes)) => end = read.min(bytes.saturating_sub(passed)),
            Some(Script::MuteAfter(bytes)) if passed + read > bytes => muted.store(true, Ordering::SeqCst),
            Some(Script::Corrupt(at)) if (passed..passed + read).contains(&at) => buffer[at - passed] ^= 0x10,
            _ => {}
        }
        if !muted.load(Ordering::SeqCst) && to.write_all(&buffer[..end]).is_err() {
            break;
        }
        passed += read;
        if end < read {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
