//! What a server looks after while it serves: SIGHUP, upon which it reads its certificate again and opens its log anew, and
//! the end of its certificate.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use engine::Counters;
use nstar::interrupt::ignores_hangup;
use signal_hook::{consts::SIGHUP, flag};
use tls::Identity;

use crate::{expiry::ExpiryWatch, log_file::LogFile, reloads::Reloads, service_manager};

/// How often the certificate is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// SIGHUP, whether it means that the terminal has gone away, and otherwise who else is told.
pub(crate) struct Hangup {
    asked: Arc<AtomicBool>,
    had_terminal: bool,
    reloads: Reloads,
}

/// What is looked after, and with what.
pub(crate) struct Upkeep {
    hangup: Hangup,
    identity: Option<Identity>,
    log: Option<LogFile>,
    counters: Arc<Counters>,
    expiry: ExpiryWatch,
    looked_at: Instant,
}

impl Hangup {
    /// Listens for SIGHUP from now on.
    ///
    /// # Errors
    /// When the system refuses that.
    pub(crate) fn listen(reloads: Reloads) -> io::Result<Self> {
        // Who ignores it outlives a terminal.
        let had_terminal = has_terminal() && !ignores_hangup();
        let asked = Arc::default();
        flag::register(SIGHUP, Arc::clone(&asked))?;
        Ok(Self { asked, had_terminal, reloads })
    }

    /// Whether the signal came since the last call.
    fn take(&self) -> bool {
        self.asked.swap(false, Relaxed)
    }

    /// Whether a terminal was there at first and is no more.
    fn lost_terminal(&self) -> bool {
        self.had_terminal && !has_terminal()
    }
}

fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

impl Upkeep {
    /// Looks after these from now on.
    pub(crate) fn new(
        hangup: Hangup,
        identity: Option<Identity>,
        log: Option<LogFile>,
        counters: Arc<Counters>,
    ) -> Self {
        let expiry = ExpiryWatch::default();
        let mut upkeep = Self { hangup, identity, log, counters, expiry, looked_at: Instant::now() };
        upkeep.look_at_certificate();
        upkeep
    }

    /// Does what there is to do now. `status` tells the manager of services about the server. Returns whether the server
    /// should end because the terminal from which it was started has gone away.
    pub(crate) fn look(&mut self, status: &str) -> bool {
        if self.hangup.take() {
            if self.hangup.lost_terminal() {
                return true;
            }
            self.reload(status);
        } else if self.looked_at.elapsed() >= LOOK_EVERY {
            self.look_at_certificate();
        }
        false
    }

    fn reload(&mut self, status: &str) {
        service_manager::reloading();
        self.hangup.reloads.ask();
        // First, so that the new log says how the rest went.
        let is_open = self.log.as_ref().is_none_or(LogFile::reopen);
        let is_read = self.identity.as_ref().is_none_or(Identity::reload);
        self.look_at_certificate();
        let failed = if is_open && is_read { "" } else { "; the last reload failed, see the log" };
        service_manager::ready(format_args!("{}{failed}", status.trim_end()));
    }

    fn look_at_certificate(&mut self) {
        self.looked_at = Instant::now();
        let Some(identity) = &self.identity else { return };
        identity.refresh();
        let Some(shown) = identity.certificate() else { return };
        if let Some(validity) = shown.validity {
            self.counters.set_certificate_expiry(validity.until);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
        if let Some(notice) = self.expiry.look(&shown, now) {
            tracing::warn!("{notice}");
        }
    }
}
