//! One request's way: connect, send, receive, complete or fail.
//!
//! Nothing here waits. Each step goes as far as the kernel lets it and leaves the user in the phase
//! from which the next event or alarm goes on.

use analysis::sample::ErrorKind;

use super::Core;
use super::target::Target;
use super::timers::{Alarm, Due};
use super::user::{Phase, User};
use crate::clock::now_ns;
use crate::plan::Connections;
use crate::response::Completed;
use crate::transport::poller::Readiness;
use crate::transport::socket::{Socket, error_kind};
use crate::transport::stream::{Received, Stream};

/// First read of a response: enough for most in one go, little enough to copy what could be discarded.
const READ_BYTES: usize = 16 * 1024;

/// A read of the body that is to be looked at.
const BODY_READ_BYTES: usize = 256 * 1024;

/// Reads of one user before others get their turn.
const READS_PER_TURN: usize = 16;

/// Requests up to this many bytes leave in one segment, so the kernel never holds back their tail.
const ONE_SEGMENT: u64 = 1_200;

/// How far one read took a response.
enum Step {
    /// There may be more to read.
    Again,
    /// Nothing to read until the next event.
    Blocked,
    /// The response is over, one way or the other.
    Over,
}

impl Core {
    /// Begins a request whose response time counts from `started_ns`.
    #[inline]
    pub(super) fn begin(&mut self, user: &mut User, started_ns: u64, now_ns: u64) {
        user.started_ns = started_ns;
        self.choose(user);
        user.response.reset();
        user.recorded_bytes = 0;
        self.set_deadline(user, now_ns);
        if user.stream.is_none() {
            self.connect(user);
        } else {
            self.send(user);
        }
    }

    /// Chooses what the user requests next.
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

    /// Takes a user one step further after an event of its connection.
    #[inline]
    pub(super) fn on_event(&mut self, user: &mut User, readiness: Readiness) {
        let Some(stream) = &mut user.stream else { return };
        stream.ready(readiness.closed);
        match user.phase {
            Phase::Connecting if readiness.writable || readiness.readable => self.on_connecting(user),
            Phase::Sending if readiness.writable => self.on_writable(user, readiness.readable),
            Phase::Receiving | Phase::Sending if readiness.readable => self.on_readable(user),
            Phase::Idle | Phase::Pausing if readiness.readable => self.on_unasked(user),
            _ => {}
        }
    }

    fn connect(&mut self, user: &mut User) {
        self.recorder.connecting();
        user.connection = user.connection.wrapping_add(1);
        match self.open(&user.target) {
            Ok(stream) => user.stream = Some(stream),
            Err(kind) => return self.fail(user, kind),
        }
        user.phase = Phase::Connecting;
        // On loopback the connection is often made before connect() has returned: to go on at once
        // saves an event. Elsewhere the kernel says that it is not there yet, and an event will come.
        self.on_connecting(user);
        self.register(user);
    }

    /// Watches a connection, from after the first attempt to send: what is ready by then is told too.
    fn register(&mut self, user: &mut User) {
        let Some(stream) = &user.stream else { return };
        if let Err(error) = self.poller.add(stream, user.token()) {
            self.fail(user, error_kind(error));
        }
    }

    fn open(&self, target: &Target) -> Result<Stream, ErrorKind> {
        let socket = Socket::connect(&target.address).map_err(error_kind)?;
        let tls = match &target.tls {
            Some(tls) => Some(tls.connection().ok_or(ErrorKind::Tls)?),
            None => None,
        };
        // One request is one write, so this matters only where a request is longer than a segment: its
        // last part would wait for an acknowledgement. It costs a call, which a connection of one short
        // request is better without. A TLS handshake ends with several writes that no answer follows.
        let one_write = tls.is_none() && target.program.longest() <= ONE_SEGMENT;
        if self.connections == Connections::Kept || !one_write {
            socket.set_nodelay().map_err(error_kind)?;
        }
        Ok(Stream::new(socket, tls))
    }

    fn on_connecting(&mut self, user: &mut User) {
        let Some(stream) = &mut user.stream else { return };
        match stream.handshake() {
            Ok(true) => self.send(user),
            Ok(false) => {}
            Err(kind) => self.fail(user, kind),
        }
    }

    /// Sends more of a request that did not leave in one go; reads too, for a server may answer early.
    fn on_writable(&mut self, user: &mut User, readable: bool) {
        self.send_more(user);
        if readable {
            self.on_turn_to_read(user);
        }
    }

    /// The server takes no more of a request. What it said before tells more than that.
    pub(super) fn on_refusal(&mut self, user: &mut User, kind: ErrorKind) {
        if let Some(stream) = &mut user.stream {
            stream.ready(false);
        }
        for _ in 0..READS_PER_TURN {
            match self.read(user) {
                Ok(Step::Again) => {}
                Ok(Step::Over) => return,
                Ok(Step::Blocked) | Err(_) => break,
            }
        }
        self.fail(user, kind);
    }

    /// Reads until the response is over or the socket is empty.
    #[inline]
    fn on_readable(&mut self, user: &mut User) {
        for _ in 0..READS_PER_TURN {
            match self.read(user) {
                Ok(Step::Again) => {}
                Ok(Step::Blocked | Step::Over) => return,
                Err(kind) => return self.fail(user, kind),
            }
        }
        // No further event will come for what is there already.
        self.unfinished.push_back(user.slot);
    }

    /// Others had their turn: goes on, unless an event has led further meanwhile.
    pub(super) fn on_turn_again(&mut self, user: &mut User) {
        match user.phase {
            Phase::Sending => self.on_writable(user, true),
            Phase::Receiving => self.on_readable(user),
            _ => {}
        }
    }

    /// Reads, unless the request is over by now.
    fn on_turn_to_read(&mut self, user: &mut User) {
        if matches!(user.phase, Phase::Receiving | Phase::Sending) {
            self.on_readable(user);
        }
    }

    #[inline]
    fn read(&mut self, user: &mut User) -> Result<Step, ErrorKind> {
        let Some(stream) = &mut user.stream else { return Ok(Step::Over) };
        let Some(asked) = user.target.program.requests.get(user.request) else { return Ok(Step::Over) };
        let discardable = if stream.can_discard() { user.response.discardable(asked) } else { 0 };
        let completed = if discardable > 0 {
            let most = usize::try_from(discardable).unwrap_or(usize::MAX).min(self.buffer.len());
            match stream.discard(self.buffer.get_mut(..most).unwrap_or_default())? {
                Received::Bytes(count) => user.response.discarded(count as u64, asked),
                Received::End => Some(user.response.end(asked)?),
                Received::Blocked => return Ok(Step::Blocked),
            }
        } else {
            let most = if user.response.status().is_none() { READ_BYTES } else { BODY_READ_BYTES };
            match stream.recv(self.buffer.get_mut(..most).unwrap_or_default())? {
                Received::Bytes(count) => {
                    let received = self.buffer.get(..count).unwrap_or_default();
                    user.response.feed(received, asked, &self.limits)?
                }
                Received::End => Some(user.response.end(asked)?),
                Received::Blocked => return Ok(Step::Blocked),
            }
        };
        let Some(completed) = completed else {
            // Long bodies count in the slice in which they come, not all at their end.
            let so_far = user.response.body_bytes();
            self.recorder.received(so_far - user.recorded_bytes);
            user.recorded_bytes = so_far;
            return Ok(Step::Again);
        };
        self.complete(user, completed);
        Ok(Step::Over)
    }

    /// Records a complete response and goes on to what the user does next.
    ///
    /// The clock is read here, once per request: after the last byte came and before the next request
    /// is sent. For the first it is the end and for the second the start; what lies between is parsing
    /// and rendering, well under a microsecond. One reading for a whole batch of events would be
    /// cheaper still, but would give the last user of a batch the time spent on all before it.
    #[inline]
    fn complete(&mut self, user: &mut User, completed: Completed) {
        let now_ns = now_ns();
        self.recorder.roll(now_ns);
        self.recorder.lagged(now_ns.saturating_sub(self.woke_ns));
        self.recorder.received(completed.body_bytes - user.recorded_bytes);
        self.opened(user);
        user.failures = 0;
        self.record(user, &completed, now_ns);
        let reusable = completed.keep_alive
            && user.phase == Phase::Receiving
            && self.connections == Connections::Kept
            && !user.stream.as_ref().is_some_and(Stream::is_closed);
        if !reusable {
            close(user);
        }
        self.after_request(user, now_ns);
    }

    /// Counts a response as what it is, and keeps of it what is to be kept.
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
        } else if !user.keep(completed.status) {
            total.nothing_to_keep += 1;
            self.recorder.failed(ErrorKind::NothingToKeep);
        } else {
            total.completed += 1;
            self.recorder.completed(now_ns.saturating_sub(user.started_ns));
        }
    }

    /// Counts a request that failed with its connection, and backs off before the next one.
    pub(super) fn fail(&mut self, user: &mut User, kind: ErrorKind) {
        let now_ns = now_ns();
        self.recorder.roll(now_ns);
        self.recorder.failed(kind);
        close(user);
        self.opened(user);
        user.failures = user.failures.saturating_add(1);
        self.after_failure(user, now_ns);
    }

    /// Something came on a connection with no request under way: its end, or bytes nobody asked for.
    fn on_unasked(&mut self, user: &mut User) {
        let Some(stream) = &mut user.stream else { return };
        match stream.recv(self.buffer.get_mut(..READ_BYTES).unwrap_or_default()) {
            Ok(Received::Blocked) => return,
            Ok(Received::Bytes(_)) => self.recorder.failed(ErrorKind::Malformed),
            // A server may close a connection that is not in use (RFC 9112 section 9.5).
            Ok(Received::End) | Err(_) => {}
        }
        close(user);
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

    /// A time-out alarm went off: the request it was set for may be over long since.
    pub(super) fn on_timeout(&mut self, user: &mut User, now_ns: u64) {
        user.timeout_set = false;
        if !user.phase.is_busy() {
            return;
        }
        if now_ns >= user.deadline_ns {
            return self.fail(user, ErrorKind::TimedOut);
        }
        user.timeout_set = true;
        self.timers.set(Due { at_ns: user.deadline_ns, slot: user.slot, alarm: Alarm::Timeout });
    }
}

/// Ends a user's connection, if it has one.
pub(super) fn close(user: &mut User) {
    user.outgoing.clear();
    if let Some(stream) = user.stream.take() {
        stream.close();
    }
}
