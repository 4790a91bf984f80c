//! The state of a sweep that one thread changes and others show.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use report::live::{Doing, Known};
use sweep::progress::Event;

use crate::known;

/// The state of a sweep. Clones share it.
#[derive(Debug, Clone)]
pub struct Shared {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    /// Asks the sweep to end with what was measured.
    end: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    known: Known,
    /// How often anything changed.
    version: u64,
    /// How often the complete steps changed.
    steps_version: u64,
    outcome: Option<Outcome>,
}

/// How the sweep ended, for pages that are still open.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// With this report.
    Report(Arc<str>),
    /// Without one, for this reason.
    Failed(Arc<str>),
}

/// What is shown at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) known: Known,
    pub(crate) version: u64,
    pub(crate) steps_version: u64,
    pub(crate) outcome: Option<Outcome>,
}

impl Shared {
    /// The state of a sweep of `target` that has not begun, and ends early once `end` is set.
    #[must_use]
    pub fn new(target: &str, end: Arc<AtomicBool>) -> Self {
        let known = Known { target: target.to_owned(), ..Known::default() };
        let state = Mutex::new(State { known, ..State::default() });
        Self { inner: Arc::new(Inner { state, changed: Condvar::new(), end }) }
    }

    /// Notes an event. Returns whether it is to be said in words, because nothing else shows it.
    pub fn on(&self, event: &Event) -> bool {
        let mut state = self.state();
        state.steps_version += u64::from(matches!(event, Event::SoFar(_)));
        known::note(&mut state.known, event)
    }

    /// Notes what was said.
    pub fn say(&self, text: &str) {
        self.state().known.notes.push(text.to_owned());
    }

    /// Notes the address of the page that shows it too.
    pub fn page_at(&self, url: &str) {
        self.state().known.page = Some(url.to_owned());
    }

    /// Asks the sweep to end with what was measured.
    pub fn ask_to_end(&self) {
        self.inner.end.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes whoever waits for a change.
    pub(crate) fn wake(&self) {
        drop(self.state());
    }

    /// Says how it ended.
    pub(crate) fn end(&self, outcome: Outcome) {
        let mut state = self.state();
        state.known.doing = Doing::Over;
        state.outcome = Some(outcome);
    }

    /// What is to be shown, once something changed since `version`, or after `at_most`.
    pub(crate) fn wait(&self, version: u64, at_most: Duration) -> Seen {
        let state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = |state: &mut State| state.version == version;
        let (state, _) = self
            .inner
            .changed
            .wait_timeout_while(state, at_most, unchanged)
            .unwrap_or_else(PoisonError::into_inner);
        let mut known = state.known.clone();
        known.ending = self.inner.end.load(Ordering::Relaxed);
        let (version, steps_version) = (state.version, state.steps_version);
        Seen { known, version, steps_version, outcome: state.outcome.clone() }
    }

    /// The state, to change it: whoever waits is woken.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.version += 1;
        self.inner.changed.notify_all();
        state
    }
}
