//! The null server: answers every request with the same bytes and does nothing else, so that a load on it shows what the
//! generator can do on this host.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::JoinHandle;

use rustix::io::Errno;
use slab::Slab;

use crate::error::LoadError;
use crate::generator::threads::pin;
use crate::transport::poller::{Poller, Readiness, WAKE, Waker};
use crate::transport::socket::{MoreToSend, Socket};

/// The token of the listener, which no connection has.
const LISTENER: u64 = WAKE - 1;

/// The end of a request. The null server answers requests without a body only.
const END: &[u8] = b"\r\n\r\n";

/// A running null server: one thread on a free port of 127.0.0.1, which ends when this is dropped.
pub struct NullServer {
    address: SocketAddr,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl NullServer {
    /// Starts a server that sends bodies of `body_bytes`, pinned to processor `cpu` if given.
    ///
    /// # Errors
    /// The operating system provides no port, thread or descriptor, or has no such processor.
    pub fn start(body_bytes: usize, cpu: Option<usize>) -> Result<Self, LoadError> {
        let listen = |source| LoadError::System { action: "listen on a port of 127.0.0.1", source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let poller = Poller::new().map_err(LoadError::system("make an epoll descriptor"))?;
        poller.add(&listener, LISTENER).map_err(LoadError::system("watch a port"))?;
        let waker = poller.waker().map_err(LoadError::system("duplicate an event descriptor"))?;
        let responder = Responder {
            listener,
            poller,
            connections: Slab::new(),
            response: response(body_bytes),
            buffer: vec![0; 64 * 1024],
        };
        let (started, ready) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            let pinned = cpu.map_or(Ok(()), pin);
            let may_run = pinned.is_ok();
            let _ = started.send(pinned);
            if may_run {
                responder.run();
            }
        };
        let thread = std::thread::Builder::new()
            .name("null-server".into())
            .spawn(run)
            .map_err(|source| LoadError::System { action: "start the null server", source })?;
        ready.recv().map_err(|_| LoadError::ThreadLost)??;
        Ok(NullServer { address, waker, thread: Some(thread) })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Responder {
    listener: TcpListener,
    poller: Poller,
    connections: Slab<Connection>,
    response: Vec<u8>,
    buffer: Vec<u8>,
}

struct Connection {
    socket: Socket,
    /// Number of bytes of [`END`] that the last bytes received match.
    matched: usize,
    /// Response bytes that the kernel has not accepted yet.
    owed: usize,
}

impl Responder {
    fn run(mut self) {
        while !self.poller.take_wake() && self.poller.wait(1_000_000_000).is_ok() {
            for index in 0..self.poller.len() {
                match self.poller.event(index) {
                    Some(event) if event.token == WAKE => self.poller.acknowledge_wake(),
                    Some(event) if event.token == LISTENER => self.accept(),
                    Some(event) => self.serve(event),
                    None => {}
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(socket) = Socket::accept(&self.listener) {
            let entry = self.connections.vacant_entry();
            let watched = socket.set_nodelay().and_then(|()| self.poller.add(&socket, entry.key() as u64));
            if watched.is_ok() {
                entry.insert(Connection { socket, matched: 0, owed: 0 });
            }
        }
    }

    fn serve(&mut self, event: Readiness) {
        let key = event.token as usize;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let served = connection.serve(event, &self.response, &mut self.buffer);
        if !served {
            self.connections.remove(key);
        }
    }
}

impl Connection {
    /// Reads and answers requests. Returns whether the connection stays open.
    fn serve(&mut self, event: Readiness, response: &[u8], buffer: &mut [u8]) -> bool {
        loop {
            let count = match self.socket.recv(buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(Errno::AGAIN) => return self.answer(response),
                Err(_) => return false,
            };
            self.owed += response.len() * self.requests(buffer.get(..count).unwrap_or_default());
            if !self.answer(response) {
                return false;
            }
            if count < buffer.len() && !event.closed {
                return true;
            }
        }
    }

    /// Returns the number of requests that end in `bytes`.
    fn requests(&mut self, bytes: &[u8]) -> usize {
        let mut ended = 0;
        for byte in bytes {
            self.matched = match END.get(self.matched) {
                Some(next) if next == byte => self.matched + 1,
                _ => usize::from(*byte == b'\r'),
            };
            if self.matched == END.len() {
                self.matched = 0;
                ended += 1;
            }
        }
        ended
    }

    /// Sends the owed bytes, as far as the kernel accepts them. Returns whether the connection stays open.
    fn answer(&mut self, response: &[u8]) -> bool {
        while self.owed > 0 {
            let whole = self.owed.div_ceil(response.len()) * response.len();
            let rest = response.get(whole - self.owed..).unwrap_or_default();
            match self.socket.send(rest, MoreToSend::No) {
                Ok(sent) => self.owed -= sent,
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

fn response(body_bytes: usize) -> Vec<u8> {
    let mut response = format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n").into_bytes();
    response.resize(response.len() + body_bytes, b'x');
    response
}
