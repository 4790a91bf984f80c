//! Receives the body of a request with two buffers: while one is filled from the connection, the other is written to the
//! disk.

use std::sync::Arc;

use engine::{offload::Run, service::Connection};
use http_io::server::{Error, Exchange};

use crate::{
    refusal::Refusal,
    writing::{upload::Upload, uploads::Uploads},
};

/// Size of a buffer. An upload takes twice this much memory.
const BUFFER: usize = 64 * 1024;

/// Receives a body that belongs at `offset` and returns once all of it is on the disk. Returns how long the upload is now,
/// bytes.
pub(super) async fn receive<C: Connection>(
    uploads: &Arc<Uploads>,
    exchange: &mut Exchange<'_, C>,
    upload: &Upload,
    offset: u64,
) -> Result<u64, Error> {
    let most = upload.record().length.unwrap_or(uploads.settings.max_bytes).saturating_sub(offset);
    let mut receiver = Receiver { uploads, upload, at: offset, writing: None, buffer: Vec::new() };
    let broken = loop {
        match exchange.next_piece_within(most).await {
            Ok(Some(piece)) => receiver.take(piece).await?,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // If the upload can be resumed, what arrived is worth keeping.
    if broken.is_none() || upload.is_resumable() {
        receiver.write().await?;
        receiver.written().await?;
    }
    if let Some(error) = broken {
        // A pending write holds the part, which must be removed before the client gets a response.
        let _ = receiver.written().await;
        return Err(error);
    }
    Ok(upload.sync(uploads).await?)
}

struct Receiver<'u> {
    uploads: &'u Arc<Uploads>,
    upload: &'u Upload,
    /// The offset of the buffer in the file.
    at: u64,
    /// The other buffer while it is written.
    writing: Option<Run<Result<Vec<u8>, Refusal>>>,
    buffer: Vec<u8>,
}

impl Receiver<'_> {
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

    /// Starts to write the buffer once the other one is written, and continues with that one.
    async fn write(&mut self) -> Result<(), Refusal> {
        let other = self.written().await?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.buffer, other);
        let at = self.at;
        self.at += bytes.len() as u64;
        self.writing = Some(self.upload.write(self.uploads, at, bytes));
        Ok(())
    }

    /// Waits until the other buffer is written, and returns it.
    async fn written(&mut self) -> Result<Vec<u8>, Refusal> {
        let Some(writing) = self.writing.take() else { return Ok(Vec::new()) };
        let mut buffer = writing.await??;
        buffer.clear();
        Ok(buffer)
    }
}
