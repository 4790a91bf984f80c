//! Ordinary clients at a moderate rate, half of which keep their connection while the others open one for each request.
//!
//! Usage: `steady-client ADDRESS PATH USERS`, with this many users of either kind. For each line of its input it prints
//! `KEPT NEW`, the requests that either kind has completed so far. It ends with its input.

use std::{
    env,
    error::Error,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use bench::{HEAD_END, Poller, connecting, request};

/// Between a response and the next request of the same user.
const THINK: Duration = Duration::from_millis(10);
/// The longest wait while all users wait for responses.
const PATIENCE: Duration = Duration::from_millis(100);
/// The token of the input.
const COMMANDS: u64 = u64::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, address, path, users] = args.as_slice() else {
        return Err("usage: steady-client ADDRESS PATH USERS".into());
    };
    let target = Target::new(address.parse()?, path);
    let users: usize = users.parse()?;
    let mut crowd: Vec<User> = (0..2 * users).map(|number| User::new(number % 2 == 0)).collect();
    let mut poller = Poller::new()?;
    let commands = io::stdin();
    poller.add(&commands, COMMANDS)?;
    // Requests completed on new connections and on kept ones.
    let mut completed = [0_u64; 2];
    loop {
        for (user, token) in crowd.iter_mut().zip(0..) {
            if user.is_due() && user.begin(&target, &poller, token).is_err() {
                user.start_over();
            }
        }
        let next = crowd.iter().filter_map(|user| user.due).min();
        let limit = next.map_or(PATIENCE, |due| due.saturating_duration_since(Instant::now()));
        let ready: Vec<u64> = poller.wait_at_most(limit)?.collect();
        for token in ready {
            if token == COMMANDS {
                if rustix::io::read(&commands, &mut [0_u8; 64])? == 0 {
                    return Ok(());
                }
                println!("{} {}", completed[1], completed[0]);
            } else {
                let user = &mut crowd[usize::try_from(token)?];
                completed[usize::from(user.keeps)] += u64::from(user.go_on(&target));
            }
        }
    }
}

/// What is asked for.
struct Target {
    address: SocketAddr,
    closing: Vec<u8>,
    keeping: Vec<u8>,
}

impl Target {
    fn new(address: SocketAddr, path: &str) -> Self {
        let closing = request(address, path, "Connection: close");
        Target { address, closing, keeping: request(address, path, "") }
    }
}

/// A user: it thinks, or waits for a response.
struct User {
    keeps: bool,
    stream: Option<TcpStream>,
    is_sent: bool,
    received: Vec<u8>,
    /// When it asks next; `None` while it waits.
    due: Option<Instant>,
}

impl User {
    fn new(keeps: bool) -> Self {
        User { keeps, stream: None, is_sent: false, received: Vec::new(), due: Some(Instant::now()) }
    }

    fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Begins a request, on a new connection unless there is one. An event follows in either case.
    fn begin(&mut self, target: &Target, poller: &Poller, token: u64) -> io::Result<()> {
        (self.due, self.is_sent) = (None, false);
        self.received.clear();
        if self.stream.is_none() {
            let stream = connecting(target.address, |_| Ok(()))?;
            poller.add_both(&stream, token)?;
            self.stream = Some(stream);
        }
        self.send(target)
    }

    /// Sends the request, once the connection is there.
    fn send(&mut self, target: &Target) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let request = if self.keeps { &target.keeping } else { &target.closing };
        match stream.write(request) {
            Ok(_) => self.is_sent = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes what has happened. Returns whether that completes a response.
    fn go_on(&mut self, target: &Target) -> bool {
        if self.due.is_some() {
            // It thinks, and the server may close a connection meanwhile.
            if self.receive().is_err() {
                self.stream = None;
            }
            return false;
        }
        let sent = if self.is_sent { Ok(()) } else { self.send(target) };
        // The end may come with the last response.
        let is_open = sent.and_then(|()| self.receive()).is_ok();
        let completed = ResponseHead::of(&self.received).filter(|head| self.received.len() >= head.length);
        if completed.is_none() && !is_open {
            // It asks again after a while, as after a response.
            self.start_over();
        }
        let Some(head) = completed else { return false };
        if head.closes || !is_open || !self.keeps {
            self.stream = None;
        }
        self.due = Some(Instant::now() + THINK);
        head.status == 200
    }

    /// Receives all there is.
    ///
    /// # Errors
    /// The connection has ended.
    fn receive(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut buffer = [0; 4_096];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn start_over(&mut self) {
        (self.stream, self.due) = (None, Some(Instant::now() + THINK));
    }
}

/// What the head of a response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResponseHead {
    status: u16,
    /// Bytes of the whole response.
    length: usize,
    /// Whether it is the last on its connection.
    closes: bool,
}

impl ResponseHead {
    /// Reads the head at the beginning of what was received; `None` unless it is whole and has a length.
    fn of(received: &[u8]) -> Option<Self> {
        let end = received.windows(HEAD_END.len()).position(|window| window == HEAD_END)? + HEAD_END.len();
        let text = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let body: usize = field("content-length:")?.parse().ok()?;
        Some(ResponseHead {
            status: text.get(9..12)?.parse().ok()?,
            length: end + body,
            closes: field("connection:") == Some("close"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let whole = b"HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 7\r\n\r\nno room";
        let (head, body) = (whole.len() - 7, 7);
        assert_eq!(ResponseHead::of(&whole[..head - 1]), None);
        let read = ResponseHead { status: 503, length: head + body, closes: true };
        assert_eq!(ResponseHead::of(&whole[..head]), Some(read));
        assert_eq!(ResponseHead::of(whole), Some(read));
        let kept = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let read = ResponseHead { status: 200, length: kept.len(), closes: false };
        assert_eq!(ResponseHead::of(kept), Some(read));
        assert_eq!(ResponseHead::of(b"HTTP/1.1 200 OK\r\n\r\n"), None, "without a length it cannot end");
    }
}
