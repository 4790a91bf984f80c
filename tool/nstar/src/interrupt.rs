//! SIGINT and SIGTERM: the first asks for a clean end, the second ends at once. So does SIGHUP, for what measures at a terminal.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP},
    flag,
    iterator::Signals,
    low_level,
};

/// Signals within this time of the first count as one: `timeout` and shells signal a process and also its group.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// Whether a signal has asked this process to end.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// Set by the first signal; measuring stops at the next slice.
    pub asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

/// What to do when a signal ends or stops the process.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// Before it ends at once.
    pub end: fn(),
    /// Before it is stopped.
    pub stop: fn(),
    /// Once it goes on.
    pub go_on: fn(),
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

    /// Listens the same way, and to a terminal that goes away, so that what was measured until then is kept. Under `nohup` that
    /// changes nothing.
    pub fn listen_at_terminal() -> io::Result<Self> {
        let interrupt = Self::listen()?;
        if !ignores_hangup() {
            // The kernel and the shell may both say so: the second is no wish to end at once.
            flag::register_usize(SIGHUP, interrupt.signal.clone(), SIGHUP as usize)?;
            flag::register(SIGHUP, interrupt.asked.clone())?;
        }
        Ok(interrupt)
    }

    /// Listens to SIGINT and SIGTERM, but lets a second one end the process only some time after the first, so that a farewell
    /// can be sent. Starts a thread, so it is not for processes that fork.
    pub fn listen_patiently() -> io::Result<Self> {
        Self::follow_in_thread(&[SIGINT, SIGTERM], Pauses { end: || (), stop: || (), go_on: || () })
    }

    /// Listens the same way, and to a terminal that goes away; does something before a signal ends the process at once, or stops
    /// it, and once it goes on.
    pub fn listen_with(pauses: Pauses) -> io::Result<Self> {
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        let signals: Vec<i32> = [SIGINT, SIGTERM, SIGTSTP].into_iter().chain(hangup).collect();
        Self::follow_in_thread(&signals, pauses)
    }

    fn follow_in_thread(signals: &[i32], pauses: Pauses) -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new(signals)?;
        let listening = interrupt.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || listening.follow(&mut signals, pauses))?;
        Ok(interrupt)
    }

    fn follow(&self, signals: &mut Signals, pauses: Pauses) {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                _ if signal == SIGTSTP => {
                    (pauses.stop)();
                    // Comes back once the process goes on; if it cannot be stopped, at once.
                    let _ = low_level::emulate_default_handler(SIGTSTP);
                    (pauses.go_on)();
                }
                None => {
                    first = Some(Instant::now());
                    self.signal.store(signal as usize, Ordering::Relaxed);
                    self.asked.store(true, Ordering::Relaxed);
                }
                // The kernel and the shell may both say that the terminal has gone away.
                Some(first) if first.elapsed() > ONE_REQUEST && signal != SIGHUP => {
                    (pauses.end)();
                    low_level::exit(128 + signal);
                }
                Some(_) => {}
            }
        }
    }

    /// Waits for a signal, or until `is_over`. Returns whether a signal came.
    pub fn wait_unless(&self, mut is_over: impl FnMut() -> bool) -> bool {
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

/// Whether SIGHUP is ignored, as `nohup` has it for the process that it starts.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
