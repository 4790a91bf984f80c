//! Shared by the baselines: an epoll instance, a plain blocking exchange, work that takes a known time, and the bookings to
//! make.

use std::{
    hint::black_box,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt::set_tcp_nodelay},
    time::{ClockId, clock_gettime},
};

/// The end of a response's head.
pub const HEAD_END: &[u8] = b"\r\n\r\n";

/// An epoll instance, with room for the events of one wait.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    /// Creates a poller that takes up to 512 events at a time.
    pub fn new() -> io::Result<Self> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(512) })
    }

    /// Watches a descriptor for input, edge-triggered; [`Self::wait`] returns it as `token`.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        self.watch(fd, token, EventFlags::IN)
    }

    /// Watches a socket for input and for room to send, as once it is connected, edge-triggered.
    pub fn add_both(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        self.watch(fd, token, EventFlags::IN | EventFlags::OUT)
    }

    fn watch(&self, fd: impl AsFd, token: u64, what: EventFlags) -> io::Result<()> {
        let flags = what | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags)?)
    }

    /// Returns the tokens of the descriptors that became ready, after a tenth of a second at most.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = u64> + use<'_>> {
        self.wait_at_most(Duration::from_millis(100))
    }

    /// As [`Self::wait`], for another time at most.
    pub fn wait_at_most(&mut self, limit: Duration) -> io::Result<impl Iterator<Item = u64> + use<'_>> {
        self.events.clear();
        let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64()))
    }
}

/// Renders a GET of the path that keeps the connection, with one more header line unless that is empty.
pub fn request(address: SocketAddr, path: &str, header: &str) -> Vec<u8> {
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}\r\n").into_bytes()
}

/// Returns the length of the whole response to a request, by asking once.
pub fn response_length(address: SocketAddr, request: &[u8]) -> io::Result<u64> {
    ask(address, request).map(|(_, head, body)| head + body)
}

/// Sends a request on a connection of its own and reads the head of the response. Returns the connection, the length of
/// the head, and the length of the body that is still to be read.
pub fn ask(address: SocketAddr, request: &[u8]) -> io::Result<(TcpStream, u64, u64)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(request)?;
    let mut head = Vec::new();
    while !head.ends_with(HEAD_END) {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<u64>().ok());
    let length = length.ok_or_else(|| io::Error::other("the response has no Content-Length"))?;
    Ok((stream, head.len() as u64, length))
}

/// Begins a connection over IPv4 and does not wait for it. `prepare` is given the socket before.
pub fn connecting(
    to: SocketAddr,
    prepare: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    set_tcp_nodelay(&socket, true)?;
    prepare(&socket)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until something listens at an address.
///
/// # Errors
/// Nothing did within ten seconds.
pub fn wait_for(address: SocketAddr) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpStream::connect(address) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Computes for a time in proportion to `steps`: each of them needs the one before.
#[inline(never)]
pub fn work(steps: u64) {
    /// Of a generator of random numbers (Knuth, MMIX): odd, so that no bit is lost.
    const FACTOR: u64 = 6_364_136_223_846_793_005;
    black_box((0..steps).fold(1_u64, |state, step| (state ^ step).wrapping_mul(FACTOR)));
}

/// Returns how many steps of [`work`] a microsecond of processor time is good for here, by the thread's CPU clock. The fastest
/// of several tries counts: others can only slow it down.
pub fn steps_per_us() -> f64 {
    const STEPS: u64 = 10_000_000;
    let tries = (0..5).map(|_| {
        let before_us = thread_cpu_us();
        work(STEPS);
        thread_cpu_us() - before_us
    });
    STEPS as f64 / tries.fold(f64::INFINITY, f64::min)
}

/// CPU time of this thread so far, microseconds.
fn thread_cpu_us() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// Rooms that each user books in turn, when there are as many users as a turn may have; fewer users book more each. Times
/// the days, this is how many bookings a user makes before it would repeat one.
pub const ROOMS_PER_USER: u32 = 4;
/// Days that are booked in turn; a prime number.
pub const DAYS: usize = 1_801;

/// The days from tomorrow on, as a booking names them.
pub fn days() -> Vec<String> {
    let today = jiff::Zoned::now().date();
    let day = |ahead: i32| today.saturating_add(jiff::Span::new().days(ahead)).to_string();
    (1..).map(day).take(DAYS).collect()
}
