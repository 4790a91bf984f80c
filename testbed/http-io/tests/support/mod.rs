//! A connection that follows a script, so that tests are exact and never wait.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    cell::RefCell,
    collections::VecDeque,
    fs::File,
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::FileExt,
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use engine::service::{Connection, Pace, Waiting};

/// What the peer does next, as seen by `fill`.
#[derive(Clone)]
pub(crate) enum Step {
    /// These bytes arrive.
    Bytes(Vec<u8>),
    /// Nothing arrives until the deadline has passed.
    Stall,
    /// The peer has closed its side. It stays so.
    Eof,
    /// The peer has reset the connection.
    Reset,
    /// The peer must have received this by now.
    Received(&'static str),
}

/// What the peer saw, shared between the test and the connection.
#[derive(Default)]
pub(crate) struct Peer {
    pub(crate) received: Vec<u8>,
    pub(crate) flushes: usize,
    /// How long it takes over the bytes of one flush. No time passes: it only comes off the deadline.
    pub(crate) takes: Duration,
    pub(crate) write_closed: bool,
    pub(crate) closed: bool,
    pub(crate) gone: bool,
}

/// What happens when a connection to an upstream server is opened.
pub(crate) enum Opening {
    Accepted(Fake),
    Refused,
    Unanswered,
}

pub(crate) struct Fake {
    steps: VecDeque<Step>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// The time left.
    deadline: Option<Duration>,
    pace: Option<Pace>,
    /// Bytes sent since the pace began or was kept.
    sent: u64,
    pub(crate) peer: Rc<RefCell<Peer>>,
    pub(crate) draining: bool,
    /// Between requests: something was sent since the last input, or there was no input yet.
    answered: bool,
    pub(crate) stale: bool,
    pub(crate) openings: Rc<RefCell<VecDeque<Opening>>>,
}

impl Fake {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            input: Vec::new(),
            output: Vec::new(),
            deadline: None,
            pace: None,
            sent: 0,
            peer: Rc::default(),
            draining: false,
            answered: true,
            stale: false,
            openings: Rc::default(),
        }
    }

    /// Lets the time pass that the peer takes over the output.
    fn spend_time(&mut self) -> io::Result<()> {
        let takes = self.peer.borrow().takes;
        if self.output.is_empty() || takes.is_zero() {
            return Ok(());
        }
        let left = self.deadline.and_then(|left| left.checked_sub(takes)).ok_or(io::ErrorKind::TimedOut)?;
        self.deadline = Some(left);
        self.sent += self.output.len() as u64;
        if let Some(pace) = self.pace.filter(|pace| self.sent >= pace.bytes) {
            self.set_pace(pace);
        }
        Ok(())
    }

    fn next_bytes(&mut self) -> io::Result<usize> {
        loop {
            match self.steps.pop_front() {
                Some(Step::Bytes(bytes)) => {
                    self.input.extend_from_slice(&bytes);
                    return Ok(bytes.len());
                }
                Some(Step::Received(text)) => {
                    let received = String::from_utf8_lossy(&self.peer.borrow().received).into_owned();
                    assert!(received.contains(text), "the peer has not received {text:?} but {received:?}");
                }
                Some(Step::Stall) => {
                    assert!(self.deadline.is_some(), "waits for ever");
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Some(Step::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
                Some(Step::Eof) | None => return Ok(0),
            }
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.peer.borrow_mut().closed = true;
    }
}

impl Connection for Fake {
    fn peer(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 9))
    }

    fn input(&self) -> &[u8] {
        &self.input
    }

    fn consume(&mut self, count: usize) {
        self.input.drain(..count);
    }

    async fn fill(&mut self) -> io::Result<usize> {
        assert!(self.output.is_empty(), "waits for the peer with an answer unsent");
        if self.draining && self.answered && self.input.is_empty() {
            return Ok(0);
        }
        let came = self.next_bytes()?;
        self.answered &= came == 0;
        Ok(came)
    }

    fn awaits(&mut self, what: Waiting) {
        self.answered = what != Waiting::Within;
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.spend_time()?;
        let mut peer = self.peer.borrow_mut();
        if peer.gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        assert!(!peer.write_closed, "writes after its own half-close");
        self.answered |= !self.output.is_empty();
        peer.received.append(&mut self.output);
        peer.flushes += 1;
        Ok(())
    }

    async fn send_file(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        self.flush().await?;
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, offset)?;
        self.peer.borrow_mut().received.append(&mut bytes);
        Ok(())
    }

    /// The script decides how much arrives at once.
    fn read_at_most(&mut self, _bytes: usize) {}

    fn set_deadline(&mut self, after: Option<Duration>) {
        (self.deadline, self.pace) = (after, None);
    }

    fn set_pace(&mut self, pace: Pace) {
        (self.deadline, self.pace, self.sent) = (Some(pace.within), Some(pace), 0);
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.peer.borrow_mut().write_closed = true;
        Ok(())
    }

    fn draining(&self) -> bool {
        self.draining
    }

    async fn connect(&self, _to: SocketAddr) -> io::Result<Self> {
        let opening = self.openings.borrow_mut().pop_front();
        match opening {
            Some(Opening::Accepted(fake)) => Ok(fake),
            Some(Opening::Refused) => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Opening::Unanswered) => std::future::pending().await,
            None => panic!("opened more connections than the script has"),
        }
    }

    async fn sleep(&self, _how_long: Duration) {}

    fn is_stale(&mut self) -> bool {
        self.stale
    }
}

/// Runs a future that is never pending.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("waits for something nobody will do"),
    }
}

pub(crate) fn bytes(text: &str) -> Step {
    Step::Bytes(text.as_bytes().to_vec())
}
