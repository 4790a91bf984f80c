//! Reading a request's body: only when the handler asks, never more than it allows, never for longer than it may take.

use engine::service::Connection;
use wire::{
    Framing, Limits, ParseError,
    body::{Decoder, Event},
    request, write,
};

use super::{Error, Exchange, HttpOptions, io};

/// How far the body has been taken in.
pub(crate) enum Intake {
    /// The head still lies at the front of the input.
    Untouched,
    /// The head has been moved aside and the body follows.
    Begun {
        decoder: Decoder,
        /// Bytes lent to the handler by the last piece, to be consumed before the next.
        lent: usize,
        /// Bytes that came since the deadline was last set.
        since_deadline: u64,
    },
}

impl Intake {
    /// Whether nothing of the body is left to come.
    pub(crate) fn is_finished(&self, head: &request::Head) -> bool {
        match self {
            Self::Untouched => head.framing == Framing::None,
            Self::Begun { decoder, .. } => decoder.is_done(),
        }
    }

    /// Whether what is unread of the body is short enough to be read away, so that the connection can be kept.
    pub(crate) fn can_be_finished(&self, head: &request::Head, options: &HttpOptions) -> bool {
        match (self, head.framing) {
            (Self::Begun { decoder, .. }, _) => decoder.is_done() || decoder.pending() <= options.drain_bytes,
            (Self::Untouched, Framing::None) => true,
            // Having been answered without "100 Continue", the client may send the body or leave it out: no telling.
            (Self::Untouched, _) if head.expects_continue => false,
            (Self::Untouched, Framing::Length(length)) => length <= options.drain_bytes,
            (Self::Untouched, _) => true,
        }
    }
}

impl<C: Connection> Exchange<'_, C> {
    /// The next piece of the request's body, as it came; `None` at its end. At most the server's limit in all.
    ///
    /// # Errors
    /// 413 past the limit, 408 when the client is too slow, 400 when it closes early or the chunking is broken.
    pub async fn next_piece(&mut self) -> Result<Option<&[u8]>, Error> {
        self.next_piece_within(self.options.limits.body_bytes).await
    }

    /// Like [`next_piece`](Self::next_piece), with a limit on the whole body that replaces the server's.
    /// The limit given with the first piece holds.
    ///
    /// # Errors
    /// As [`next_piece`](Self::next_piece).
    pub async fn next_piece_within(&mut self, limit: u64) -> Result<Option<&[u8]>, Error> {
        self.begin_body(limit).await?;
        let found = self.await_piece().await?;
        Ok((found > 0).then(|| &self.connection.input()[..found]))
    }

    /// The whole body, of at most `limit` bytes. It can be looked at again, beside the headers, by
    /// [`body`](Self::body).
    ///
    /// # Errors
    /// As [`next_piece`](Self::next_piece).
    pub async fn read_body(&mut self, limit: u64) -> Result<&[u8], Error> {
        self.scratch.body.clear();
        self.begin_body(limit).await?;
        loop {
            let found = self.await_piece().await?;
            if found == 0 {
                return Ok(&self.scratch.body);
            }
            self.scratch.body.extend_from_slice(&self.connection.input()[..found]);
        }
    }

    /// Moves the head aside, so that the body lies at the front of the input.
    async fn begin_body(&mut self, limit: u64) -> Result<(), Error> {
        if matches!(self.intake, Intake::Begun { .. }) {
            return Ok(());
        }
        let limits = Limits { body_bytes: limit, ..self.options.limits.clone() };
        let decoder = Decoder::new(self.head.framing, &limits)?;
        if !decoder.is_done() {
            self.connection.set_deadline(Some(self.options.body_timeout));
            self.ask_for_body().await?;
        }
        let head = self.connection.input().get(..self.head.len).unwrap_or_default();
        self.scratch.head.clear();
        self.scratch.head.extend_from_slice(head);
        self.connection.consume(self.head.len);
        self.intake = Intake::Begun { decoder, lent: 0, since_deadline: 0 };
        Ok(())
    }

    /// Asks for the body if the client waits to be asked, and waits for its beginning. The head stays in the input
    /// meanwhile: an engine that drains must not take the connection for one between requests.
    async fn ask_for_body(&mut self) -> Result<(), Error> {
        if !self.head.expects_continue || self.connection.input().len() > self.head.len {
            return Ok(());
        }
        self.connection.output().extend_from_slice(write::CONTINUE);
        io::flush(self.connection, self.options).await?;
        self.connection.set_deadline(Some(self.options.body_timeout));
        self.await_input().await
    }

    /// Waits until body bytes lie at the front of the input, and tells how many; 0 at the end.
    async fn await_piece(&mut self) -> Result<usize, Error> {
        loop {
            let Intake::Begun { decoder, lent, .. } = &mut self.intake else { return Ok(0) };
            self.connection.consume(std::mem::take(lent));
            match decoder.next(self.connection.input())? {
                Event::Framing(count) => self.connection.consume(count),
                Event::Data(count) => {
                    decoder.advance(count as u64);
                    *lent = count;
                    return Ok(count);
                }
                Event::End => return Ok(0),
                Event::NeedMore => self.await_input().await?,
            }
        }
    }

    async fn await_input(&mut self) -> Result<(), Error> {
        if !self.connection.output().is_empty() {
            io::flush(self.connection, self.options).await?;
            self.connection.set_deadline(Some(self.options.body_timeout));
        }
        let came = self.connection.fill().await.map_err(Error::reading)? as u64;
        if came == 0 {
            return Err(ParseError::ClosedEarly.into());
        }
        let Intake::Begun { since_deadline, .. } = &mut self.intake else { return Ok(()) };
        *since_deadline += came;
        if *since_deadline >= self.options.progress_bytes {
            *since_deadline = 0;
            self.connection.set_deadline(Some(self.options.body_timeout));
        }
        Ok(())
    }

    /// Leaves the input at the start of the next request, reading away what is unread of this one.
    /// `false`: there is too much of it, or it cannot be read.
    pub(crate) async fn finish_body(&mut self) -> bool {
        if matches!(self.intake, Intake::Untouched) && self.head.framing == Framing::None {
            self.connection.consume(self.head.len);
            return true;
        }
        if !self.intake.can_be_finished(self.head, self.options) {
            return false;
        }
        let mut allowance = self.options.drain_bytes;
        if self.begin_body(u64::MAX).await.is_err() {
            return false;
        }
        loop {
            match self.await_piece().await {
                Ok(0) => return true,
                Ok(count) if count as u64 <= allowance => allowance -= count as u64,
                _ => return false,
            }
        }
    }
}
