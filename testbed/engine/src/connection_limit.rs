//! The limit on how many connections a server holds at once.

use std::{io, net::SocketAddr, sync::Arc};

use crate::{
    clients::{ClientPlace, Clients},
    control::Control,
    counters::Counters,
    options::Options,
};

/// Admits a limited number of connections at a time, also across the processes forked after it was made.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: u64,
    /// Limits each client; `None`: it may have as many as there are.
    clients: Option<Clients>,
    counters: Arc<Counters>,
    control: Arc<Control>,
}

impl ConnectionLimit {
    pub(crate) fn new(options: &Options, control: Arc<Control>) -> Self {
        Self {
            max: options.max_connections.max(1) as u64,
            clients: options.max_connections_per_client.map(Clients::new),
            counters: Arc::clone(&options.counters),
            control,
        }
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Takes a place for one more connection. If there is none, the caller's notifier is signalled when one may be
    /// free.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<Permit> {
        self.try_acquire().or_else(|| {
            self.control.await_place();
            let permit = self.try_acquire();
            if permit.is_none() {
                self.counters.count_limit_pause();
            }
            permit
        })
    }

    /// Frees a place: that of a permit, or of a process that ended while it held one.
    pub(crate) fn release(&self) {
        self.counters.remove_active();
        self.control.place_is_free();
    }

    fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        self.counters.add_active(self.max).then(|| Permit { limit: Some(Arc::clone(self)), client: None })
    }
}

/// One connection's place among the open ones. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None` where another process frees the place.
    limit: Option<Arc<ConnectionLimit>>,
    /// The count of the client that holds the connection.
    client: Option<ClientPlace>,
}

impl Permit {
    /// Counts the accepted connection that takes the place.
    ///
    /// # Errors
    /// When its client has as many connections as it may. The place is still free.
    pub(crate) fn count_accepted(&mut self, peer: SocketAddr) -> io::Result<()> {
        let Some(limit) = &self.limit else { return Ok(()) };
        if let Some(clients) = &limit.clients {
            let place = clients.enter(peer.ip());
            let crowded =
                || io::Error::other(format!("{} has as many connections as one client may", peer.ip()));
            self.client = Some(place.ok_or_else(crowded)?);
        }
        limit.counters.count_accepted();
        Ok(())
    }

    /// A permit for a place that another process holds and will free.
    pub(crate) const fn held_elsewhere() -> Self {
        Self { limit: None, client: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(limit) = &self.limit else { return };
        if let (Some(clients), Some(place)) = (&limit.clients, &self.client) {
            clients.leave(place);
        }
        limit.release();
    }
}
