//! A TCP stream, with or without TLS, that one thread reads and another writes.

use std::{
    io::{self, IoSlice, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;
use rustls::Connection as Session;

use crate::frame::Fault;

/// Ciphertext read at once.
const CIPHER_BYTES: usize = 64 << 10;

/// A stream whose reads and writes end at a deadline, as long as one is set: a greeting that trickles ends too.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    deadline: Option<Instant>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, deadline: Some(deadline) })
    }

    fn time_left(&self) -> io::Result<Option<std::time::Duration>> {
        let Some(deadline) = self.deadline else { return Ok(None) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the greeting takes too long"));
        }
        Ok(Some(left))
    }

    fn clear_deadline(&mut self) -> io::Result<()> {
        self.deadline = None;
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, deadline: self.deadline })
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.time_left()? {
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(buf)
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.time_left()? {
            self.stream.set_write_timeout(Some(left))?;
        }
        self.stream.write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Some(left) = self.time_left()? {
            self.stream.set_write_timeout(Some(left))?;
        }
        self.stream.write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both directions and a way to end them from outside.
#[derive(Debug)]
pub(super) struct Halves {
    pub read: ReadHalf,
    pub write: WriteHalf,
    /// To be shut down by whoever finds that the connection is over.
    pub stream: TcpStream,
}

impl Halves {
    /// Shakes hands, if `session` is there.
    ///
    /// # Errors
    /// Those of the stream and of TLS.
    pub(super) fn new(mut socket: Socket, session: Option<Session>) -> Result<Self, Fault> {
        let stream = socket.stream.try_clone()?;
        let Some(mut session) = session else {
            let write = WriteHalf { socket: socket.try_clone()?, session: None, cipher: Vec::new() };
            return Ok(Self { read: ReadHalf { socket, tls: None }, write, stream });
        };
        session.set_buffer_limit(None);
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        let session = Arc::new(Mutex::new(session));
        let write = WriteHalf { socket: socket.try_clone()?, session: Some(Arc::clone(&session)), cipher: Vec::new() };
        let tls = TlsRead { session, cipher: vec![0; CIPHER_BYTES], at: 0, end: 0 };
        Ok(Self { read: ReadHalf { socket, tls: Some(tls) }, write, stream })
    }

    /// The greeting is over: from now on the link watches the time.
    pub(super) fn clear_deadline(&mut self) -> io::Result<()> {
        self.write.socket.clear_deadline()?;
        self.read.socket.clear_deadline()
    }
}

#[derive(Debug)]
pub(super) struct ReadHalf {
    socket: Socket,
    tls: Option<TlsRead>,
}

#[derive(Debug)]
struct TlsRead {
    session: Arc<Mutex<Session>>,
    cipher: Vec<u8>,
    at: usize,
    end: usize,
}

impl Read for ReadHalf {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buf) };
        loop {
            if let Some(read) = tls.read_plain(buf)? {
                return Ok(read);
            }
            tls.at = 0;
            tls.end = self.socket.read(&mut tls.cipher)?;
            if tls.end == 0 {
                return Ok(0);
            }
        }
    }
}

impl TlsRead {
    /// Bytes that are already here, deciphered; `None`: read more from the socket.
    fn read_plain(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let mut session = self.session.lock();
        loop {
            match session.reader().read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other.map(Some),
            }
            if self.at == self.end {
                return Ok(None);
            }
            let mut left = &self.cipher[self.at..self.end];
            session.read_tls(&mut left)?;
            self.at = self.end - left.len();
            let state = session.process_new_packets();
            state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

#[derive(Debug)]
pub(super) struct WriteHalf {
    socket: Socket,
    session: Option<Arc<Mutex<Session>>>,
    /// Ciphertext of one call.
    cipher: Vec<u8>,
}

impl WriteHalf {
    /// Writes all parts, in order, with as few calls as the machine allows.
    pub(super) fn write_parts(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let Some(session) = &self.session else { return write_all(&mut self.socket, parts) };
        self.cipher.clear();
        {
            let mut session = session.lock();
            for part in parts.iter() {
                session.writer().write_all(part)?;
            }
            while session.wants_write() {
                session.write_tls(&mut self.cipher)?;
            }
        }
        self.socket.write_all(&self.cipher)
    }
}

fn write_all(socket: &mut Socket, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match socket.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
