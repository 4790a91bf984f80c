//! A stream of bytes over the bus: two blocking ends, and what carries the frames between them and the bus.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::connection::Bus;
use crate::flow::{Broken, Flow, HEADER_BYTES, Kind, PAYLOAD_BYTES_MAX};
use crate::message::{self, shown};

/// Time between signs of life.
const BEAT_PERIOD: Duration = Duration::from_secs(1);

/// How long the last frame may take to leave this process.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// The longest last words of a member.
const SAID_CHARS_MAX: usize = 1024;

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The other end was done, and said so.
    Farewell(Farewell),
    /// It could not go on.
    Broken(Broken),
}

/// The last words of whatever was at the other end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// Its exit code, if it has one.
    pub code: Option<i32>,
    /// Its last lines on stderr, in one.
    pub said: String,
}

/// What comes from the other end.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    /// What is left of the last frame.
    rest: VecDeque<u8>,
    _bus: Bus,
}

/// What goes to the other end.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    bytes_max: usize,
    _bus: Bus,
}

/// Where a stream goes.
pub(crate) struct Way {
    /// What comes from the other end.
    pub(crate) from: Subscriber,
    /// The subject to send on.
    pub(crate) to: String,
    /// Changes where the connection breaks, from before the other end was told of the stream.
    pub(crate) breaks: watch::Receiver<u64>,
}

/// Makes a stream of two subjects.
pub(crate) fn open(bus: &Bus, way: Way) -> (Reader, Writer) {
    let shared = Arc::new(Shared::default());
    let client = bus.client();
    let bytes_max = client.max_payload().saturating_sub(HEADER_BYTES).clamp(1, PAYLOAD_BYTES_MAX);
    bus.spawn(carry(client, way, Arc::clone(&shared)));
    let reader = Reader { shared: Arc::clone(&shared), rest: VecDeque::new(), _bus: bus.clone() };
    (reader, Writer { shared, bytes_max, _bus: bus.clone() })
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For the blocking ends.
    changed: Condvar,
    /// For what carries.
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    flow: Flow,
    /// Data to be sent.
    leaving: VecDeque<Vec<u8>>,
    /// Data to be read.
    arrived: VecDeque<VecDeque<u8>>,
    /// What the other end is to be told besides, in this order.
    tell: VecDeque<(Kind, Vec<u8>)>,
    /// Whether the other end sends no more data.
    input_ended: bool,
    ending: Option<Ending>,
    /// Whether this end said goodbye.
    has_left: bool,
    /// Whether nothing is carried any more.
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that both the blocking ends and what carries have to know.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        self.wake.notify_one();
        changed
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_while(self.lock(), |state| condition(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_closed(&self) {
        let waiting = |state: &mut State| !state.is_closed;
        drop(self.changed.wait_timeout_while(self.lock(), LAST_PATIENCE, waiting));
    }
}

impl State {
    fn break_off(&mut self, broken: Broken) {
        if self.ending.is_none() {
            // Where the other end gave up it knows; where the bus is gone it cannot be told.
            if !matches!(broken, Broken::GivenUp(_) | Broken::BusGone) {
                self.tell.push_back((Kind::Break, broken.to_string().into_bytes()));
            }
            self.leaving.clear();
            self.ending = Some(Ending::Broken(broken));
        }
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let frame = self.flow.receive(bytes)?;
        match frame.kind {
            Kind::Data if self.input_ended => return Err(Broken::Malformed),
            Kind::Data => self.arrived.push_back(frame.payload.iter().copied().collect()),
            Kind::Beat => {}
            Kind::End => self.input_ended = true,
            Kind::Bye => {
                self.input_ended = true;
                let farewell: Farewell = message::read(frame.payload).unwrap_or_default();
                let said = farewell.said.chars().filter(|c| !c.is_control()).take(SAID_CHARS_MAX).collect();
                self.ending = self.ending.take().or(Some(Ending::Farewell(Farewell { said, ..farewell })));
            }
            Kind::Break => {
                return Err(Broken::GivenUp(shown(&String::from_utf8_lossy(frame.payload))));
            }
        }
        Ok(())
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        if let Some(data) = self.leaving.pop_front() {
            return Some(self.flow.frame(Kind::Data, &data));
        }
        let (kind, payload) = self.tell.pop_front()?;
        self.has_left |= kind == Kind::Bye;
        Some(self.flow.frame(kind, &payload))
    }
}

/// Carries frames both ways until one end is done or nothing can go on.
async fn carry(client: Client, mut way: Way, shared: Arc<Shared>) {
    let _closing = Closing(Arc::clone(&shared));
    let mut beats = interval(BEAT_PERIOD);
    // A process that was stopped for a while counts one beat for it.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = way.from.next() => shared.change(|state| {
                let heard = message.map_or(Err(Broken::BusGone), |message| state.hear(&message.payload));
                heard.unwrap_or_else(|broken| state.break_off(broken));
            }),
            () = shared.wake.notified() => {}
            _ = beats.tick() => shared.change(|state| {
                state.flow.beat().unwrap_or_else(|broken| state.break_off(broken));
                state.tell.push_front((Kind::Beat, Vec::new()));
            }),
            _ = way.breaks.changed() => shared.change(|state| state.break_off(Broken::BusGone)),
        }
        if send(&client, &way.to, &shared).await {
            // Whoever ends the process has waited long enough.
            let _ = timeout(LAST_PATIENCE, client.flush()).await;
            return;
        }
    }
}

/// Sends what waits. Returns whether that was all for ever.
async fn send(client: &Client, to: &str, shared: &Shared) -> bool {
    loop {
        let (frame, is_over) = {
            let mut state = shared.lock();
            (state.next_frame(), state.ending.is_some() || state.has_left)
        };
        let Some(frame) = frame else { return is_over };
        if client.publish(to.to_owned(), frame.into()).await.is_err() {
            shared.change(|state| state.break_off(Broken::BusGone));
        }
    }
}

/// Tells both ends, however carrying ends, that it has.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.is_closed = true;
            state.input_ended |= state.has_left;
            if !state.has_left {
                state.break_off(Broken::BusGone);
            }
        });
    }
}

impl Reader {
    /// How the stream ended, once it has.
    pub fn ending(&self) -> impl Fn() -> Option<Ending> + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.lock().ending.clone()
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let waiting =
                |state: &State| state.arrived.is_empty() && !state.input_ended && state.ending.is_none();
            let mut state = self.shared.wait_while(waiting);
            let Some(next) = state.arrived.pop_front() else {
                return match &state.ending {
                    Some(Ending::Broken(broken)) if !state.input_ended => {
                        Err(io::Error::other(broken.clone()))
                    }
                    _ => Ok(0),
                };
            };
            self.rest = next;
            if state.flow.take() {
                state.tell.push_back((Kind::Beat, Vec::new()));
                self.shared.wake.notify_one();
            }
        }
        self.rest.read(buffer)
    }
}

/// Whoever stops reading before the end ends the stream.
impl Drop for Reader {
    fn drop(&mut self) {
        let is_over = self.shared.change(|state| {
            if !state.input_ended && !state.has_left {
                state.break_off(Broken::Unwanted);
            }
            state.is_closed
        });
        if !is_over && self.shared.lock().ending.is_some() {
            self.shared.wait_until_closed();
        }
    }
}

impl Writer {
    /// Says goodbye: this end is done, with both ways. Waits until that has left, for a second at most.
    pub fn say_goodbye(self, farewell: &Farewell) {
        let said = farewell.said.chars().take(SAID_CHARS_MAX).collect();
        let farewell = Farewell { said, code: farewell.code };
        self.shared.change(|state| state.tell.push_back((Kind::Bye, message::written(&farewell))));
        self.shared.wait_until_closed();
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = |state: &State| state.ending.is_none() && !state.flow.may_send(state.leaving.len());
        let mut state = self.shared.wait_while(full);
        if state.ending.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = bytes.get(..self.bytes_max).unwrap_or(bytes);
        state.leaving.push_back(written.to_vec());
        drop(state);
        self.shared.wake.notify_one();
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.change(|state| {
            if state.ending.is_none() && !state.has_left {
                state.tell.push_back((Kind::End, Vec::new()));
            }
        });
    }
}
