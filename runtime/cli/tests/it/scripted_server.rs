//! A hand-written HTTP server that stands in for a JobManager: it says what a test wrote down, and notes what was asked.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use serde::Serialize;
use serde_json::Value;

/// What is said to one request.
#[derive(Clone)]
pub enum Answer {
    Says(u16, String),
    /// The connection is closed without an answer.
    HangsUp,
}

pub fn says(body: impl Serialize) -> Answer {
    Answer::Says(200, serde_json::to_string(&body).unwrap())
}

pub fn refuses(status: u16, body: impl Serialize) -> Answer {
    Answer::Says(status, serde_json::to_string(&body).unwrap())
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// As in `GET /overview`; without the query.
    pub line: String,
    /// Names in small letters.
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Answers by method and path, one after the other; the last one stays. What it does not know is 404 without a body.
pub struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    pub fn start<const N: usize>(script: [(&str, Vec<Answer>); N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut script: HashMap<String, Vec<Answer>> =
            script.into_iter().map(|(line, answers)| (line.to_owned(), answers)).collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (notes, stopped) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream.unwrap(), &mut script, &notes);
            }
        });
        Self { address, asked, stop, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests to `line` so far.
    pub fn asked(&self, line: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.line == line).cloned().collect()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread, which then looks at the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, script: &mut HashMap<String, Vec<Answer>>, notes: &Mutex<Vec<Asked>>) {
    let Some(asked) = read(&stream) else { return };
    let answer = match script.get_mut(&asked.line) {
        Some(answers) if answers.len() > 1 => answers.remove(0),
        Some(answers) => answers[0].clone(),
        None => Answer::Says(404, String::new()),
    };
    notes.lock().unwrap().push(asked);
    if let Answer::Says(status, body) = answer {
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        // Who asked may have gone.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let line = format!("{method} {}", target.split('?').next()?);
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body: String::from_utf8(body).unwrap() })
}
