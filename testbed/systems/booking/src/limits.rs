//! Whom the server books for: no client too often, and nobody once the disk is almost full.

use std::{net::IpAddr, sync::Arc};

use api_server::Slowdown;
use serve::Disk;

use crate::{options::BookingError, refusal::Refusal};

/// How often one client may book. All processes of a server count together.
#[derive(Debug, Clone)]
pub(crate) struct ClientLimit {
    slowdown: Arc<Slowdown>,
    /// Bookings before the client has to wait.
    free: u16,
}

impl ClientLimit {
    /// Counts nothing yet. Create it before the process forks.
    pub(crate) fn new(free: u16) -> Result<Self, BookingError> {
        let slowdown = Slowdown::new().map_err(|error| BookingError::Random(error.to_string()))?;
        Ok(Self { slowdown: Arc::new(slowdown), free })
    }

    /// Counts a booking of this client, or refuses it if there were too many.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), Refusal> {
        self.slowdown.act(client, self.free).map_or(Ok(()), |wait| Err(Refusal::too_often(wait)))
    }
}

/// Refuses a booking where less of the disk is left than is kept free.
pub(crate) fn check_space(disk: &Disk) -> Result<(), Refusal> {
    // A file system that does not tell may have room: the database will find out.
    if disk.has_space().unwrap_or(true) {
        return Ok(());
    }
    let refusal = Refusal::new(507, "the disk is almost full, so nothing more is booked");
    Err(refusal.hint("nothing was changed; tell the administrator"))
}
