//! SIGINT and SIGTERM: the first asks for a clean end, the second ends at once.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

/// Whether a signal has asked this process to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    /// Set by the first signal; measuring stops at the next slice.
    pub asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for SIGINT and SIGTERM from now on.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // Order matters: a signal that finds the flag already set ends the process there and then.
            flag::register_conditional_shutdown(signal, 128 + signal, interrupt.asked.clone())?;
            flag::register_usize(signal, interrupt.signal.clone(), signal as usize)?;
            flag::register(signal, interrupt.asked.clone())?;
        }
        Ok(interrupt)
    }

    /// Waits until a signal asks to end, or there is nothing more to wait for; whether a signal did.
    pub(crate) fn wait_unless(&self, is_over: impl Fn() -> bool) -> bool {
        loop {
            if self.asked.load(Ordering::Relaxed) {
                return true;
            }
            if is_over() {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}
