//! Taking a request's body in: two buffers in turn, one filled from the connection, one written to the disk.

use std::sync::Arc;

use engine::{offload::Run, service::Connection};
use http_io::server::{Error, Exchange};

use super::{Begun, Uploads};
use crate::writing::refusal::Refusal;

/// Bytes gathered before they are written. Twice this is all the memory that an upload takes.
const BUFFER: usize = 64 * 1024;

impl Uploads {
    /// Takes the body in from `offset` on, and returns once all is on the disk; tells how long the upload is now, bytes.
    pub(crate) async fn receive<C: Connection>(
        self: &Arc<Self>,
        exchange: &mut Exchange<'_, C>,
        begun: &Begun,
        offset: u64,
    ) -> Result<u64, Error> {
        let most = begun.record().length.unwrap_or(self.settings.max_bytes).saturating_sub(offset);
        let mut intake = Intake { uploads: self, begun, at: offset, full: None, buffer: Vec::new() };
        let broken = loop {
            match exchange.next_piece_within(most).await {
                Ok(Some(piece)) => intake.take(piece).await?,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        // What came is worth keeping even if no more does, where it can go on.
        if broken.is_none() || begun.is_resumable() {
            intake.write().await?;
            intake.written().await?;
        }
        if let Some(error) = broken {
            // A piece still being written holds the part, which is to be gone when the client is told.
            let _ = intake.written().await;
            return Err(error);
        }
        Ok(begun.sync(self).await?)
    }
}

struct Intake<'u> {
    uploads: &'u Arc<Uploads>,
    begun: &'u Begun,
    /// Where the buffer belongs.
    at: u64,
    /// The other buffer, being written.
    full: Option<Run<Result<Vec<u8>, Refusal>>>,
    buffer: Vec<u8>,
}

impl Intake<'_> {
    async fn take(&mut self, mut piece: &[u8]) -> Result<(), Refusal> {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(BUFFER.saturating_sub(self.buffer.len())));
            self.buffer.extend_from_slice(now);
            piece = later;
            if self.buffer.len() >= BUFFER {
                self.write().await?;
            }
        }
        Ok(())
    }

    /// Has the buffer written, once the other one is, which becomes the buffer.
    async fn write(&mut self) -> Result<(), Refusal> {
        let other = self.written().await?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.buffer, other);
        let at = self.at;
        self.at += bytes.len() as u64;
        self.full = Some(self.begun.write(self.uploads, at, bytes));
        Ok(())
    }

    /// Waits until the other buffer is written.
    async fn written(&mut self) -> Result<Vec<u8>, Refusal> {
        let Some(full) = self.full.take() else { return Ok(Vec::new()) };
        let mut buffer = full.await??;
        buffer.clear();
        Ok(buffer)
    }
}
