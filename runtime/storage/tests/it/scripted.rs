//! An HTTP server that answers what a test tells it: for answers that real servers give rarely, and for Google Cloud
//! Storage, of which there is no server here.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// With what follows `?`.
    pub path: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Status, headers and body.
pub type Answer = (u16, Vec<(&'static str, String)>, &'static str);

pub struct Scripted {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    /// Answers each request by `answer`, which gets the request and how many came before it.
    pub fn start(answer: impl Fn(&Request, usize) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        // It waits in `accept` until the process ends.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read(&stream) else { continue };
                // The sweep of abandoned uploads runs beside the test: it finds none.
                if request.path.contains(".tmp") {
                    write(stream, &request, (200, vec![], "<ListBucketResult/>"));
                    continue;
                }
                let before = seen.lock().unwrap().len();
                seen.lock().unwrap().push(request.clone());
                write(stream, &request, answer(&request, before));
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        line.clear();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length").map_or(0, |length| length.parse().unwrap())];
    lines.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn write(mut stream: TcpStream, request: &Request, (status, headers, body): Answer) {
    let mut text = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Content-Length") {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    if request.method != "HEAD" {
        text += body;
    }
    let _ = stream.write_all(text.as_bytes());
}
