//! A body whose length is not known when it begins.

use engine::service::Connection;
use wire::write;

use super::{Error, Exchange, exchange::Progress};

/// Writes an answer's body piece by piece. [`finish`](Self::finish) completes it; dropped before that, the connection
/// is closed, so that the client can tell that the body is not complete.
#[must_use = "the body is complete only after finish"]
pub struct Chunks<'x, 'c, C> {
    exchange: &'x mut Exchange<'c, C>,
    status: u16,
    coding: Coding,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Nothing is sent: an answer to HEAD.
    Nothing,
    /// As it is, until the connection closes: HTTP/1.0 knows no chunks.
    UntilClose,
    Chunked,
}

impl<'x, 'c, C: Connection> Chunks<'x, 'c, C> {
    pub(crate) fn new(exchange: &'x mut Exchange<'c, C>, status: u16, bodyless: bool, raw: bool) -> Self {
        let coding = match (bodyless, raw) {
            (true, _) => Coding::Nothing,
            (false, true) => Coding::UntilClose,
            (false, false) => Coding::Chunked,
        };
        Self { exchange, status, coding }
    }

    /// Adds a piece; it is sent once enough has gathered.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        let out = self.exchange.connection.output();
        match self.coding {
            Coding::Nothing => return Ok(()),
            Coding::UntilClose => out.extend_from_slice(piece),
            Coding::Chunked => write::chunk(out, piece),
        }
        let gathered = out.len();
        self.exchange.body_bytes_sent += piece.len() as u64;
        if gathered >= self.exchange.options.gather_bytes { self.exchange.flush().await } else { Ok(()) }
    }

    /// Sends what has gathered, without ending the body.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.exchange.flush().await
    }

    /// Ends the body.
    pub fn finish(self) {
        if self.coding == Coding::Chunked {
            write::last_chunk(self.exchange.connection.output());
        }
        self.exchange.progress = Progress::Done(self.status);
    }
}
