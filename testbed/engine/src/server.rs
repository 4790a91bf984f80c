//! A running server, from outside.

use std::{net::SocketAddr, sync::Arc, thread::JoinHandle, time::Duration};

use crate::{control::Control, counters::Counters};

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    pub(crate) local: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    pub(crate) control: Arc<Control>,
    pub(crate) threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What it counts.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Stops accepting, ends idle connections, and gives the others until `deadline` to finish before closing them.
    /// Returns at once; [`join`](Self::join) waits.
    pub fn drain(&self, deadline: Duration) {
        self.control.drain(deadline);
    }

    /// Whether it has stopped serving, because it was drained or because it failed, even if only one of its loops did: the
    /// others serve on until they are drained, with fewer of them than were asked for. A failure is in the log.
    pub fn is_finished(&self) -> bool {
        self.control.has_failed() || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the server has stopped, which takes for ever unless it is drained.
    pub fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            // Panics of a service are contained; any other panic was reported by its own thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.control.drain(Duration::ZERO);
            self.wait();
        }
    }
}
