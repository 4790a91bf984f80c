//! Clients that mean harm and hardly work for it: one thread, whatever their number.
//!
//! Usage: `hostile-client KIND ADDRESS NETWORK CONNECTIONS SECONDS`. Each connection comes from an address of its own in
//! 127.NETWORK.0.0/16, and one that the server ended is replaced. For each line of its input it prints
//! `{"attempted": N, "ended": N, "statuses": {"408": N}}`: connections begun, ended by the server, and what those were told.
//! It ends with its input, or after so many seconds.

use std::{
    collections::{BTreeMap, VecDeque},
    env,
    error::Error,
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use bench::{Poller, connecting};
use rustix::{
    io::Errno,
    net::{RecvFlags, bind, recv, sockopt::set_socket_recv_buffer_size},
};

/// How often connections are begun and visited.
const TICK: Duration = Duration::from_millis(10);
/// Each connection is visited once in so many ticks: every second.
const VISIT_EVERY: usize = 100;
/// Connections begun in a tick at most, at first, and later in place of others.
const FIRST_PER_TICK: usize = 100;
const LATER_PER_TICK: usize = 10;
/// The receive buffer of a slow reader, bytes.
const READER_BUFFER: usize = 4_096;
/// Chunks of one byte that are sent in each visit.
const CHUNKS: usize = 100;
/// The token of the input.
const COMMANDS: u64 = u64::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, kind, address, network, connections, seconds] = args.as_slice() else {
        return Err("usage: hostile-client KIND ADDRESS NETWORK CONNECTIONS SECONDS".into());
    };
    let kinds = Kind::named(kind).ok_or_else(|| format!("no kind '{kind}'"))?;
    let mut attack = Attack::new(kinds, address.parse()?, network.parse()?, connections.parse()?)?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let commands = io::stdin();
    attack.poller.add(&commands, COMMANDS)?;
    let mut next = Instant::now();
    while Instant::now() < end {
        if next <= Instant::now() {
            attack.tick();
            // If it falls behind, the attack is slower, not denser.
            next = Instant::now() + TICK;
        }
        let limit = next.saturating_duration_since(Instant::now());
        let ready: Vec<u64> = attack.poller.wait_at_most(limit)?.collect();
        for token in ready {
            if token != COMMANDS {
                attack.go_on(usize::try_from(token)?);
            } else if rustix::io::read(&commands, &mut [0_u8; 64])? == 0 {
                return Ok(());
            } else {
                println!("{}", attack.report());
            }
        }
    }
    Ok(())
}

/// What a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sends one more header every second, and never the last.
    SlowHeaders,
    /// Uploads a byte every second.
    SlowBodies,
    /// Uploads in chunks of one byte.
    OneByteChunks,
    /// Asks for a large file and takes a byte every second.
    SlowReaders,
    /// Sends nothing.
    Idle,
    /// Sends the beginning of a TLS handshake, and then a byte every second.
    HalfTls,
    /// Is closed within a second, and followed by another.
    Flood,
}

/// What holds connections without TLS.
const HOLDING: [Kind; 5] =
    [Kind::SlowHeaders, Kind::SlowBodies, Kind::OneByteChunks, Kind::SlowReaders, Kind::Idle];

impl Kind {
    /// The kinds of an attack, of which the connections are in turn.
    fn named(name: &str) -> Option<&'static [Self]> {
        Some(match name {
            "slow-headers" => &[Kind::SlowHeaders],
            "slow-bodies" => &[Kind::SlowBodies],
            "one-byte-chunks" => &[Kind::OneByteChunks],
            "slow-readers" => &[Kind::SlowReaders],
            "idle" => &[Kind::Idle],
            "half-tls" => &[Kind::HalfTls],
            "flood" => &[Kind::Flood],
            "all" => &HOLDING,
            _ => return None,
        })
    }

    /// What the connection with this number sends first.
    fn opening(self, to: SocketAddr, number: usize) -> Vec<u8> {
        let upload = |framing: &str| {
            format!("PUT /files/hostile-{number} HTTP/1.1\r\nHost: {to}\r\n{framing}\r\n\r\n").into_bytes()
        };
        match self {
            Kind::SlowHeaders => format!("GET /files/1k HTTP/1.1\r\nHost: {to}\r\n").into_bytes(),
            Kind::SlowBodies => upload("Content-Length: 1000000"),
            Kind::OneByteChunks => upload("Transfer-Encoding: chunked"),
            Kind::SlowReaders => bench::request(to, "/files/large", ""),
            // The head of a handshake record of 512 bytes, and the first of its bytes: RFC 8446 section 5.1.
            Kind::HalfTls => vec![22, 3, 1, 2, 0, 1],
            Kind::Idle | Kind::Flood => Vec::new(),
        }
    }

    /// What it sends in each visit.
    fn drip(self) -> Vec<u8> {
        match self {
            Kind::SlowHeaders => b"X-More: later\r\n".to_vec(),
            Kind::SlowBodies => b"x".to_vec(),
            Kind::OneByteChunks => b"1\r\nx\r\n".repeat(CHUNKS),
            Kind::HalfTls => vec![1],
            Kind::SlowReaders | Kind::Idle | Kind::Flood => Vec::new(),
        }
    }
}

/// One connection after the other, in one place.
#[derive(Default)]
struct Place {
    stream: Option<TcpStream>,
    /// Whether it is there and the opening was sent.
    has_begun: bool,
    /// The status that the server told it.
    status: Option<u16>,
}

/// All connections.
struct Attack {
    kinds: &'static [Kind],
    to: SocketAddr,
    network: u8,
    poller: Poller,
    places: Vec<Place>,
    /// Places without a connection.
    free: VecDeque<usize>,
    /// The place that is visited next.
    visited: usize,
    /// Visits that are due, times [`VISIT_EVERY`]: fewer connections than that are not visited more often.
    due: usize,
    attempted: u32,
    ended: u64,
    statuses: BTreeMap<u16, u64>,
}

impl Attack {
    fn new(kinds: &'static [Kind], to: SocketAddr, network: u8, connections: usize) -> io::Result<Self> {
        let places = (0..connections).map(|_| Place::default()).collect();
        Ok(Attack {
            kinds,
            to,
            network,
            poller: Poller::new()?,
            places,
            free: (0..connections).collect(),
            visited: 0,
            due: 0,
            attempted: 0,
            ended: 0,
            statuses: BTreeMap::new(),
        })
    }

    fn kind(&self, place: usize) -> Kind {
        self.kinds[place % self.kinds.len()]
    }

    /// Begins connections, and visits some.
    fn tick(&mut self) {
        let at_first = (self.attempted as usize) < self.places.len();
        let most = if at_first { FIRST_PER_TICK } else { LATER_PER_TICK };
        for _ in 0..most.min(self.free.len()) {
            if let Some(place) = self.free.pop_front()
                && self.begin(place).is_err()
            {
                self.end(place);
            }
        }
        self.due += self.places.len();
        while self.due >= VISIT_EVERY {
            self.due -= VISIT_EVERY;
            self.visit(self.visited);
            self.visited = (self.visited + 1) % self.places.len();
        }
    }

    fn begin(&mut self, place: usize) -> io::Result<()> {
        self.attempted += 1;
        let [.., third, fourth] = self.attempted.to_be_bytes();
        let from = SocketAddr::from((Ipv4Addr::new(127, self.network, third, fourth), 0));
        let reads_slowly = self.kind(place) == Kind::SlowReaders;
        let stream = connecting(self.to, |socket| {
            if reads_slowly {
                set_socket_recv_buffer_size(socket, READER_BUFFER)?;
            }
            bind(socket, &from)
        })?;
        self.poller.add_both(&stream, place as u64)?;
        self.places[place] = Place { stream: Some(stream), has_begun: false, status: None };
        Ok(())
    }

    /// Takes what has happened to a connection.
    fn go_on(&mut self, place: usize) {
        let (kind, to) = (self.kind(place), self.to);
        let at = &mut self.places[place];
        let Some(stream) = &mut at.stream else { return };
        let begun = if at.has_begun { Ok(true) } else { send(stream, &kind.opening(to, place)) };
        let received = match kind {
            Kind::SlowReaders => receive_byte(stream, RecvFlags::PEEK),
            _ => receive(stream, &mut at.status),
        };
        match received.and(begun) {
            Ok(begun) => at.has_begun = begun,
            Err(_) => self.end(place),
        }
    }

    /// Does what the connection does every second.
    fn visit(&mut self, place: usize) {
        let kind = self.kind(place);
        let at = &mut self.places[place];
        let Some(stream) = at.stream.as_mut().filter(|_| at.has_begun) else { return };
        let went = match kind {
            Kind::Idle => return,
            Kind::Flood => {
                at.stream = None;
                self.free.push_back(place);
                return;
            }
            Kind::SlowReaders => receive_byte(stream, RecvFlags::empty()),
            _ => send(stream, &kind.drip()).map(drop),
        };
        if went.is_err() {
            self.end(place);
        }
    }

    /// Counts a connection that the server ended.
    fn end(&mut self, place: usize) {
        let Place { status, .. } = std::mem::take(&mut self.places[place]);
        self.ended += 1;
        if let Some(status) = status {
            *self.statuses.entry(status).or_default() += 1;
        }
        self.free.push_back(place);
    }

    fn report(&self) -> serde_json::Value {
        let Attack { attempted, ended, statuses, .. } = self;
        serde_json::json!({ "attempted": attempted, "ended": ended, "statuses": statuses })
    }
}

/// Sends a few bytes, or none. Returns false before the connection is there, and while there is no room.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<bool> {
    match stream.write(bytes) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Receives all there is, and notes the first status.
///
/// # Errors
/// The connection has ended.
fn receive(stream: &mut TcpStream, status: &mut Option<u16>) -> io::Result<()> {
    let mut buffer = [0; 1_024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => *status = status.or_else(|| status_of(&buffer[..count])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Receives a byte, or only looks for one, if there is any.
///
/// # Errors
/// The connection has ended.
fn receive_byte(stream: &TcpStream, flags: RecvFlags) -> io::Result<()> {
    match recv(stream, &mut [0_u8; 1], flags) {
        Ok((_, 0)) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn status_of(response: &[u8]) -> Option<u16> {
    std::str::from_utf8(response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_never_a_whole_request() {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        let sent = |kind: Kind| [kind.opening(to, 7), kind.drip()].concat();
        assert!(!sent(Kind::SlowHeaders).windows(4).any(|four| four == b"\r\n\r\n"));
        assert!(sent(Kind::SlowBodies).len() < 1_000);
        assert!(!sent(Kind::OneByteChunks).windows(5).any(|five| five == b"0\r\n\r\n"));
        assert!(sent(Kind::HalfTls).len() < 512);
    }

    #[test]
    fn the_status_of_a_refusal_is_read() {
        assert_eq!(status_of(b"HTTP/1.1 408 Request Timeout\r\n"), Some(408));
        assert_eq!(status_of(b"\x15\x03\x03"), None);
    }
}
