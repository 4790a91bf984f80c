//! Building an answer.

use std::{fs::File, sync::Arc};

use engine::service::Connection;
use wire::{Method, status, write};

use super::{Error, Exchange, chunks::Chunks, exchange::Progress, io, prepared::Prepared};
use crate::{Problem, date};

/// Up to this length a prepared answer's body is gathered with its head. Copying what is longer costs more than a second
/// call to the system.
const GATHERED_MAX: usize = 32 * 1024;

/// An answer being written: headers first, then one of the methods that end it.
///
/// `Date`, `Connection`, `Content-Length` and `Transfer-Encoding` are seen to. For `HEAD`, and for statuses that have
/// none, the body is left out.
#[must_use = "an answer is complete only when its body is given, be it empty"]
pub struct ResponseWriter<'x, 'c, C> {
    exchange: &'x mut Exchange<'c, C>,
    status: u16,
    fault: Option<Error>,
}

impl<'x, 'c, C: Connection> ResponseWriter<'x, 'c, C> {
    pub(crate) fn new(exchange: &'x mut Exchange<'c, C>, status: u16) -> Self {
        let fault = (exchange.progress != Progress::NotBegun).then_some(Error::RespondedTwice);
        let out = &mut exchange.scratch.head_out;
        out.clear();
        write::status_line(out, status);
        date::append(out);
        Self { exchange, status, fault }
    }

    /// Adds a header. A value that could break the response makes the answer fail as a whole (500).
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Err(error) = write::header(&mut self.exchange.scratch.head_out, name, value.as_ref()) {
            self.fault.get_or_insert(error.into());
        }
        self
    }

    /// Answers without a body.
    ///
    /// # Errors
    /// When a header was refused, or the request had been answered before.
    pub fn empty(self) -> Result<(), Error> {
        self.whole(&[])
    }

    /// Answers with a body of any type.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn body(self, content_type: &str, body: &[u8]) -> Result<(), Error> {
        self.header("Content-Type", content_type).whole(body)
    }

    /// Answers with plain text.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn text(self, body: &str) -> Result<(), Error> {
        self.body("text/plain; charset=utf-8", body.as_bytes())
    }

    /// Answers with HTML.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn html(self, body: &str) -> Result<(), Error> {
        self.body("text/html; charset=utf-8", body.as_bytes())
    }

    /// Answers with JSON, already rendered.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn json(self, body: impl AsRef<[u8]>) -> Result<(), Error> {
        self.body("application/json", body.as_ref())
    }

    /// Answers with `length` bytes of `file` from `offset`, sent without a copy where the model can.
    ///
    /// # Errors
    /// As [`empty`](Self::empty), or when the connection fails or the file turns out shorter: the connection is
    /// then of no more use.
    pub async fn file(mut self, file: &Arc<File>, offset: u64, length: u64) -> Result<(), Error> {
        self.finish_head(length)?;
        self.exchange.send_file_body(self.status, file, offset, length).await
    }

    /// Answers with a body whose length is not known yet, written piece by piece.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn chunked(mut self) -> Result<Chunks<'x, 'c, C>, Error> {
        let raw = self.exchange.head.minor_version == 0;
        if raw {
            self.exchange.close_after();
        } else if !status::is_bodyless(self.status) {
            write::chunked(&mut self.exchange.scratch.head_out);
        }
        self.end_head()?;
        let bodyless = self.exchange.answers_without_body(self.status);
        self.exchange.progress = Progress::Begun(self.status);
        Ok(Chunks::new(self.exchange, self.status, bodyless, raw))
    }

    fn whole(mut self, body: &[u8]) -> Result<(), Error> {
        self.finish_head(body.len() as u64)?;
        self.exchange.append_body(self.status, body);
        Ok(())
    }

    fn finish_head(&mut self, length: u64) -> Result<(), Error> {
        if !status::is_bodyless(self.status) {
            write::content_length(&mut self.exchange.scratch.head_out, length);
        }
        self.end_head()
    }

    /// Sends the head on its way, unless something was wrong with it.
    fn end_head(&mut self) -> Result<(), Error> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.exchange.connection.output().extend_from_slice(&self.exchange.scratch.head_out);
        self.exchange.append_connection_header();
        write::end(self.exchange.connection.output());
        Ok(())
    }
}

impl<C: Connection> Exchange<'_, C> {
    /// Answers with a head rendered before and `body`: the shortest way for what is sent often. A small body goes out
    /// in one write with its head and with other answers; a larger one is not copied first.
    ///
    /// # Errors
    /// When the request had been answered before, or when the connection fails.
    pub async fn send_prepared(&mut self, head: &Prepared, body: &[u8]) -> Result<(), Error> {
        self.begin_prepared(head)?;
        if body.len() <= GATHERED_MAX {
            self.append_body(head.status(), body);
            return Ok(());
        }
        self.send_body(head.status(), body).await
    }

    /// Answers with a head rendered before and `length` bytes of `file` from `offset`.
    ///
    /// # Errors
    /// As [`send_prepared`](Self::send_prepared), or when the connection fails or the file turns out shorter.
    pub async fn send_prepared_file(
        &mut self,
        head: &Prepared,
        file: &Arc<File>,
        offset: u64,
        length: u64,
    ) -> Result<(), Error> {
        self.begin_prepared(head)?;
        self.send_file_body(head.status(), file, offset, length).await
    }

    /// Sends an answer that is not the last one, such as 103 or 104, on its way before the body is waited for
    /// (RFC 9110 section 15.2). Clients of HTTP/1.0 do not know of such answers and get none.
    ///
    /// # Errors
    /// When a header is refused; when the request had been answered before.
    pub fn interim(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<(), Error> {
        if self.progress != Progress::NotBegun {
            return Err(Error::RespondedTwice);
        }
        if self.head.minor_version == 0 {
            return Ok(());
        }
        let out = &mut self.scratch.head_out;
        out.clear();
        write::status_line(out, status);
        for (name, value) in headers {
            write::header(out, name, value.as_bytes())?;
        }
        write::end(out);
        self.connection.output().extend_from_slice(out);
        Ok(())
    }

    /// Answers with a problem.
    ///
    /// # Errors
    /// As [`ResponseWriter::empty`].
    pub fn answer_problem(&mut self, problem: &Problem) -> Result<(), Error> {
        let mut reply = self.respond(problem.status());
        for (name, value) in problem.headers() {
            reply = reply.header(name, value);
        }
        reply.json(problem.body())
    }

    fn begin_prepared(&mut self, head: &Prepared) -> Result<(), Error> {
        if self.progress != Progress::NotBegun {
            return Err(Error::RespondedTwice);
        }
        self.connection.output().extend_from_slice(head.bytes());
        date::append(self.connection.output());
        self.append_connection_header();
        write::end(self.connection.output());
        Ok(())
    }

    fn append_body(&mut self, status: u16, body: &[u8]) {
        if !self.answers_without_body(status) {
            self.connection.output().extend_from_slice(body);
            self.body_bytes_sent += body.len() as u64;
        }
        self.progress = Progress::Done(status);
    }

    async fn send_body(&mut self, status: u16, body: &[u8]) -> Result<(), Error> {
        if !self.answers_without_body(status) {
            self.progress = Progress::Begun(status);
            self.connection.set_deadline(Some(self.options.write_deadline(body.len() as u64)));
            self.connection.send_bytes(body).await.map_err(Error::Connection)?;
            self.body_bytes_sent += body.len() as u64;
        }
        self.progress = Progress::Done(status);
        Ok(())
    }

    async fn send_file_body(
        &mut self,
        status: u16,
        file: &Arc<File>,
        offset: u64,
        length: u64,
    ) -> Result<(), Error> {
        if !self.answers_without_body(status) && length > 0 {
            self.progress = Progress::Begun(status);
            self.connection.set_deadline(Some(self.options.write_deadline(length)));
            self.connection.send_file(file, offset, length).await.map_err(Error::Connection)?;
            self.body_bytes_sent += length;
        }
        self.progress = Progress::Done(status);
        Ok(())
    }

    fn answers_without_body(&self, status: u16) -> bool {
        self.head.method == Method::Head || status::is_bodyless(status)
    }

    /// Says what becomes of the connection, where the client would not guess it (RFC 9112 section 9.3).
    fn append_connection_header(&mut self) {
        if self.closes() {
            self.must_close = true;
            write::connection_close(self.connection.output());
        } else if self.head.minor_version == 0 {
            self.connection.output().extend_from_slice(b"Connection: keep-alive\r\n");
        }
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        io::flush(self.connection, self.options).await
    }
}
