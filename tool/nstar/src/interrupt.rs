//! SIGINT and SIGTERM: the first asks for a clean end, the second ends at once.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
    iterator::Signals,
    low_level,
};

/// Signals that come within so long of the first are one wish: `timeout` and shells signal a process and its group too.
const ONE_WISH: Duration = Duration::from_millis(500);

/// Whether a signal has asked this process to end.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// Set by the first signal; measuring stops at the next slice.
    pub asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for SIGINT and SIGTERM from now on.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // Order matters: a signal that finds the flag already set ends the process there and then.
            flag::register_conditional_shutdown(signal, 128 + signal, interrupt.asked.clone())?;
            flag::register_usize(signal, interrupt.signal.clone(), signal as usize)?;
            flag::register(signal, interrupt.asked.clone())?;
        }
        Ok(interrupt)
    }

    /// The same where somebody is to be told before the end: it takes a second signal for one only some time after the
    /// first. A thread listens, so that this is not for processes that fork.
    pub fn listen_patiently() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let listening = interrupt.clone();
        thread::Builder::new().name("signals".into()).spawn(move || listening.follow(&mut signals))?;
        Ok(interrupt)
    }

    fn follow(&self, signals: &mut Signals) {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                None => {
                    first = Some(Instant::now());
                    self.signal.store(signal as usize, Ordering::Relaxed);
                    self.asked.store(true, Ordering::Relaxed);
                }
                Some(first) if first.elapsed() > ONE_WISH => low_level::exit(128 + signal),
                Some(_) => {}
            }
        }
    }

    /// Waits until a signal asks to end, or there is nothing more to wait for; whether a signal did.
    pub fn wait_unless(&self, is_over: impl Fn() -> bool) -> bool {
        loop {
            if self.asked.load(Ordering::Relaxed) {
                return true;
            }
            if is_over() {
                return false;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}
