//! One request from connect to its end.
//!
//! Nothing here waits. Each step goes as far as the kernel allows and leaves the user in the phase from which the next
//! event or alarm continues.

use std::collections::VecDeque;

use analysis::ticks::ErrorKind;
use wire::Limits;

use super::target::Targets;
use super::timers::{Alarm, Due, Timers};
use super::user::{Phase, User};
use crate::clock::now_ns;
use crate::error::LoadError;
use crate::plan::Connections;
use crate::requests::Scratch;
use crate::requests::response::Completed;
use crate::ticks::recorder::Recorder;
use crate::ticks::totals::RequestTotal;
use crate::transport::poller::{Poller, Readiness};
use crate::transport::socket::error_kind;
use crate::transport::stream::{Received, Stream};

/// Room for one read. Only the beginning is ever written to, and so takes memory, unless a kernel copies what it was told
/// to discard.
const BUFFER_BYTES: usize = 1 << 20;

/// Size of the first read of a response: enough for most in one go, but little to copy of a body that could be discarded.
const READ_BYTES: usize = 16 * 1024;

/// Size of a read of a body that has to be inspected.
const BODY_READ_BYTES: usize = 256 * 1024;

/// Reads of one user before it is the next user's turn.
const READS_PER_TURN: usize = 16;

/// Sends of one user before it is the next user's turn.
const SENDS_PER_TURN: usize = 4;

/// When the kernel first repeats a handshake that nobody answers. Each further time takes twice as long as the one before
/// (RFC 6298 sections 2 and 5.5).
const FIRST_RETRY_NS: u64 = 1_000_000_000;

/// The requests that a thread's users have under way.
pub(super) struct Exchanges {
    pub(super) poller: Poller,
    pub(super) timers: Timers,
    pub(super) recorder: Recorder,
    pub(super) totals: Vec<RequestTotal>,
    /// Users with more to read or send than their turn allowed.
    pub(super) unfinished: VecDeque<usize>,
    /// When the last wait ended; events handled later than this lagged.
    pub(super) woke_ns: u64,
    connections: Connections,
    timeout_ns: u64,
    limits: Limits,
    buffer: Vec<u8>,
    scratch: Scratch,
}

/// The end of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) at_ns: u64,
    /// Whether the request failed without a response, and its connection with it.
    pub(super) failed: bool,
}

/// The outcome of one read.
enum Read {
    /// There may be more to read.
    More,
    /// There is nothing to read until the next event.
    Blocked,
    /// The request has ended.
    Ended(Ended),
}

/// The outcome of an attempt to send more.
enum Sent {
    /// The whole request has been sent.
    Whole,
    /// The kernel accepts no more until the next event.
    Blocked,
    /// It is the next user's turn.
    TurnOver,
}

impl Exchanges {
    pub(super) fn new(targets: &Targets, now_ns: u64) -> Result<Self, LoadError> {
        Ok(Exchanges {
            poller: Poller::new().map_err(LoadError::system("make an epoll descriptor"))?,
            timers: Timers::default(),
            recorder: Recorder::new(now_ns).with_kinds(targets.totals.len()),
            totals: targets.totals.clone(),
            unfinished: VecDeque::new(),
            woke_ns: now_ns,
            connections: targets.connections,
            timeout_ns: targets.timeout_ns,
            limits: Limits { body_bytes: u64::MAX, ..Limits::default() },
            buffer: vec![0; BUFFER_BYTES],
            scratch: Scratch::default(),
        })
    }

    /// Begins a request whose response time counts from `started_ns`. Returns its end if it fails at once.
    #[inline]
    pub(super) fn begin(&mut self, user: &mut User, started_ns: u64, now_ns: u64) -> Option<Ended> {
        user.started_ns = started_ns;
        self.choose(user);
        user.response.reset();
        (user.counted_bytes, user.paused_ns) = (0, 0);
        self.set_deadline(user, now_ns);
        if user.stream.is_none() { self.connect(user) } else { self.send(user) }
    }

    /// Chooses the user's next request.
    #[inline]
    fn choose(&mut self, user: &mut User) {
        let choice = user.target.program.pick(&mut user.values);
        user.request = choice.request;
        if let Some(total) = self.totals.get_mut(choice.request) {
            total.begun += 1;
        }
        if let Some(total) = choice.instead_of.and_then(|request| self.totals.get_mut(request)) {
            total.replaced += 1;
        }
    }

    /// Sets when the request times out.
    #[inline]
    fn set_deadline(&mut self, user: &mut User, now_ns: u64) {
        user.deadline_ns = now_ns.saturating_add(self.timeout_ns);
        if !user.timeout_set {
            user.timeout_set = true;
            self.timers.set(Due { at_ns: user.deadline_ns, slot: user.slot, alarm: Alarm::Timeout });
        }
    }

    fn connect(&mut self, user: &mut User) -> Option<Ended> {
        self.recorder.connecting();
        user.connecting_ns = now_ns();
        user.connection = user.connection.wrapping_add(1);
        match user.target.connect(self.connections) {
            Ok(stream) => user.stream = Some(stream),
            Err(kind) => return Some(self.fail(user, kind)),
        }
        user.phase = Phase::Connecting;
        // On loopback the connection is often established before connect() returns, and going on at once saves an event.
        // Elsewhere the kernel reports that it is not established yet, and an event follows.
        self.on_connecting(user).or_else(|| self.register(user))
    }

    /// Gives up a connection whose handshake the kernel has begun anew because the server did not answer. Nothing of its
    /// request was sent. Returns false where there is no such connection.
    pub(super) fn give_up_retried_connect(&mut self, user: &mut User, now_ns: u64) -> bool {
        let is_connecting = user.phase.is_busy() && user.connecting_ns > 0;
        let is_retried = is_connecting && now_ns >= user.connecting_ns + FIRST_RETRY_NS;
        if is_retried {
            user.close();
            user.connecting_ns = 0;
            if let Some(total) = self.totals.get_mut(user.request) {
                total.begun = total.begun.saturating_sub(1);
            }
        }
        is_retried
    }

    /// Registers a connection for events, after the first attempt to send: epoll reports what is ready by then.
    fn register(&mut self, user: &mut User) -> Option<Ended> {
        let registered = self.poller.add(user.stream.as_ref()?, user.token());
        registered.err().map(|error| self.fail(user, error_kind(error)))
    }

    fn on_connecting(&mut self, user: &mut User) -> Option<Ended> {
        match user.stream.as_mut()?.handshake() {
            Ok(true) => self.send(user),
            Ok(false) => None,
            Err(kind) => Some(self.fail(user, kind)),
        }
    }

    /// Takes a user one step further after an event of its connection. Returns the end of its request, if this was it.
    #[inline]
    pub(super) fn on_event(&mut self, user: &mut User, readiness: Readiness) -> Option<Ended> {
        user.stream.as_mut()?.ready(readiness.closed);
        match user.phase {
            Phase::Connecting if readiness.writable || readiness.readable => self.on_connecting(user),
            Phase::Sending if readiness.writable => self.on_writable(user, readiness.readable),
            Phase::Receiving | Phase::Sending if readiness.readable => self.on_readable(user),
            Phase::Idle | Phase::Pausing if readiness.readable => {
                self.on_unexpected(user);
                None
            }
            _ => None,
        }
    }

    /// Continues a request whose turn was over, unless an event has ended it meanwhile.
    pub(super) fn on_next_turn(&mut self, user: &mut User) -> Option<Ended> {
        match user.phase {
            Phase::Sending => self.on_writable(user, true),
            Phase::Receiving => self.on_readable(user),
            _ => None,
        }
    }

    /// Handles a time-out alarm, which may have been set for an earlier request.
    pub(super) fn on_timeout(&mut self, user: &mut User, now_ns: u64) -> Option<Ended> {
        user.timeout_set = false;
        if !user.phase.is_busy() {
            return None;
        }
        if now_ns >= user.deadline_ns {
            return Some(self.fail(user, ErrorKind::TimedOut));
        }
        user.timeout_set = true;
        self.timers.set(Due { at_ns: user.deadline_ns, slot: user.slot, alarm: Alarm::Timeout });
        None
    }

    /// Renders the request and sends what the kernel accepts.
    #[inline]
    fn send(&mut self, user: &mut User) -> Option<Ended> {
        let stream = user.stream.as_mut()?;
        let rendered = user.target.program.render(user.request, &mut user.values, &mut self.scratch);
        user.outgoing.begin(&rendered);
        let bytes = rendered.bytes;
        let sent = match stream.send(bytes, user.outgoing.more_after(bytes.len())) {
            Ok(sent) => sent,
            Err(kind) => return Some(self.fail(user, kind)),
        };
        connected(&mut self.recorder, &mut user.connecting_ns, sent);
        self.recorder.sent(user.outgoing.advance(sent));
        if user.outgoing.is_whole() && stream.is_flushed() {
            user.phase = Phase::Receiving;
            return None;
        }
        user.phase = Phase::Sending;
        if sent < bytes.len() && !rendered.fixed {
            user.outgoing.keep_unsent(bytes);
        }
        if sent == bytes.len() {
            // An error is met again on the user's next turn, where the response is read before the request fails.
            let outcome = self.send_turn(user).unwrap_or(Sent::TurnOver);
            self.after_sending(user, outcome);
        }
        None
    }

    fn send_turn(&mut self, user: &mut User) -> Result<Sent, ErrorKind> {
        let Some(stream) = &mut user.stream else { return Ok(Sent::Blocked) };
        for _ in 0..SENDS_PER_TURN {
            let next = user.outgoing.next(&user.target.program, user.request);
            if next.is_empty() {
                return Ok(if stream.flush()? { Sent::Whole } else { Sent::Blocked });
            }
            match stream.send(next, user.outgoing.more_after(next.len()))? {
                0 => return Ok(Sent::Blocked),
                sent => {
                    connected(&mut self.recorder, &mut user.connecting_ns, sent);
                    self.recorder.sent(user.outgoing.advance(sent));
                }
            }
        }
        Ok(Sent::TurnOver)
    }

    fn after_sending(&mut self, user: &mut User, outcome: Sent) {
        match outcome {
            Sent::Whole => {
                user.phase = Phase::Receiving;
                user.outgoing.forget_unsent();
            }
            Sent::Blocked => {}
            // There was room, so no event will report it.
            Sent::TurnOver => self.unfinished.push_back(user.slot),
        }
    }

    /// Sends more of a request that did not leave in one go. Reads too, because a server may answer early.
    fn on_writable(&mut self, user: &mut User, readable: bool) -> Option<Ended> {
        match self.send_turn(user) {
            Ok(outcome) => self.after_sending(user, outcome),
            Err(kind) => return Some(self.on_send_error(user, kind)),
        }
        if readable { self.on_readable(user) } else { None }
    }

    /// Ends a request that the server stopped accepting. A response that it sent before says more than the error.
    fn on_send_error(&mut self, user: &mut User, kind: ErrorKind) -> Ended {
        if let Some(stream) = &mut user.stream {
            stream.ready(false);
        }
        for _ in 0..READS_PER_TURN {
            match self.read(user) {
                Ok(Read::More) => {}
                Ok(Read::Ended(ended)) => return ended,
                Ok(Read::Blocked) | Err(_) => break,
            }
        }
        self.fail(user, kind)
    }

    /// Reads until the response is complete or the socket is empty.
    #[inline]
    fn on_readable(&mut self, user: &mut User) -> Option<Ended> {
        for _ in 0..READS_PER_TURN {
            match self.read(user) {
                Ok(Read::More) => {}
                Ok(Read::Blocked) => {
                    // The rest of a response that has begun: a long silence before it is worth telling.
                    if user.response.status().is_some() {
                        user.paused_ns = now_ns();
                    }
                    return None;
                }
                Ok(Read::Ended(ended)) => return Some(ended),
                Err(kind) => return Some(self.fail(user, kind)),
            }
        }
        // No event will report what has already arrived.
        self.unfinished.push_back(user.slot);
        None
    }

    #[inline]
    fn read(&mut self, user: &mut User) -> Result<Read, ErrorKind> {
        let Some(stream) = &mut user.stream else { return Ok(Read::Blocked) };
        let Some(asked) = user.target.program.requests.get(user.request) else { return Ok(Read::Blocked) };
        let discardable = if stream.can_discard() { user.response.discardable(asked) } else { 0 };
        let completed = if discardable > 0 {
            let most = usize::try_from(discardable).unwrap_or(usize::MAX).min(self.buffer.len());
            match stream.discard(self.buffer.get_mut(..most).unwrap_or_default())? {
                Received::Bytes(count) => user.response.discarded(count as u64, asked),
                Received::End => Some(user.response.end(asked)?),
                Received::Blocked => return Ok(Read::Blocked),
            }
        } else {
            let most = if user.response.status().is_none() { READ_BYTES } else { BODY_READ_BYTES };
            match stream.recv(self.buffer.get_mut(..most).unwrap_or_default())? {
                Received::Bytes(count) => {
                    let received = self.buffer.get(..count).unwrap_or_default();
                    user.response.feed(received, asked, &self.limits)?
                }
                Received::End => Some(user.response.end(asked)?),
                Received::Blocked => return Ok(Read::Blocked),
            }
        };
        let Some(completed) = completed else {
            // The bytes of a long body count in the slice in which they arrive, not all at the end.
            let so_far = user.response.body_bytes();
            self.recorder.received(so_far - user.counted_bytes);
            user.counted_bytes = so_far;
            return Ok(Read::More);
        };
        Ok(Read::Ended(self.complete(user, completed)))
    }

    /// Records a complete response.
    ///
    /// The clock is read here, once per request: after the last byte has arrived and before the next request is sent. It is
    /// the end of the first and the start of the second; between them lie parsing and rendering, well under a
    /// microsecond. One reading per batch of events would be cheaper, but would charge the last user of a batch with
    /// the time spent on all users before it.
    #[inline]
    fn complete(&mut self, user: &mut User, completed: Completed) -> Ended {
        let now_ns = now_ns();
        self.recorder.roll(now_ns);
        self.recorder.lagged(now_ns.saturating_sub(self.woke_ns));
        self.recorder.received(completed.body_bytes - user.counted_bytes);
        user.failures = 0;
        self.record(user, &completed, now_ns);
        let reusable = completed.keep_alive
            && user.phase == Phase::Receiving
            && self.connections == Connections::Kept
            && !user.stream.as_ref().is_some_and(Stream::is_closed);
        if !reusable {
            user.close();
        }
        Ended { at_ns: now_ns, failed: false }
    }

    /// Counts a response as success or error, and captures its value.
    #[inline]
    fn record(&mut self, user: &mut User, completed: &Completed, now_ns: u64) {
        let Some(asked) = user.target.program.requests.get(user.request) else { return };
        let Some(total) = self.totals.get_mut(user.request) else { return };
        if !asked.expect.contains(completed.status) {
            let kind = if completed.retry_later { ErrorKind::Unavailable } else { ErrorKind::Status };
            *total.unexpected_statuses.entry(completed.status).or_default() += 1;
            self.recorder.unexpected_status(completed.status, kind);
        } else if !completed.as_expected {
            self.recorder.failed(ErrorKind::WrongBody);
        } else if !user.capture(completed.status) {
            total.nothing_to_keep += 1;
            self.recorder.failed(ErrorKind::NothingToKeep);
        } else {
            total.completed += 1;
            self.recorder.completed(user.request, now_ns.saturating_sub(user.started_ns));
            if user.paused_ns > 0 {
                self.recorder.paused(now_ns.saturating_sub(user.paused_ns));
            }
        }
    }

    /// Counts a request that failed, and closes its connection.
    fn fail(&mut self, user: &mut User, kind: ErrorKind) -> Ended {
        let now_ns = now_ns();
        self.recorder.roll(now_ns);
        match kind {
            ErrorKind::TimedOut => {
                self.recorder.timed_out(user.request, now_ns.saturating_sub(user.started_ns));
            }
            _ => self.recorder.failed(kind),
        }
        user.close();
        user.failures = user.failures.saturating_add(1);
        Ended { at_ns: now_ns, failed: true }
    }

    /// Handles input on a connection without a request: its end, or bytes that nobody asked for.
    fn on_unexpected(&mut self, user: &mut User) {
        let Some(stream) = &mut user.stream else { return };
        match stream.recv(self.buffer.get_mut(..READ_BYTES).unwrap_or_default()) {
            Ok(Received::Blocked) => return,
            Ok(Received::Bytes(_)) => self.recorder.failed(ErrorKind::Malformed),
            // A server may close an idle connection (RFC 9112 section 9.5).
            Ok(Received::End) | Err(_) => {}
        }
        user.close();
    }
}

/// Counts a new connection with the time that it took, once the kernel has taken the first bytes to send: until its
/// handshakes are over it takes none.
#[inline]
fn connected(recorder: &mut Recorder, since_ns: &mut u64, sent: usize) {
    if *since_ns > 0 && sent > 0 {
        recorder.connected(now_ns().saturating_sub(*since_ns));
        *since_ns = 0;
    }
}
