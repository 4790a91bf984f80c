//! Writing a response.

use std::{fs::File, sync::Arc};

use engine::service::Connection;
use serde::Serialize;
use wire::{Method, status, write};

use super::{
    connection,
    error::Error,
    exchange::{Exchange, Progress},
    prepared::{Prepared, append_date},
};
use crate::Problem;

/// Up to this length, the body of a prepared response is copied behind its head. Copying a longer one costs more than a
/// second system call.
const GATHERED_MAX: usize = 32 * 1024;

/// A response being written: header fields first, then one of the methods that end it.
///
/// `Date`, `Connection`, `Content-Length` and `Transfer-Encoding` are added. The body is omitted for `HEAD` and for
/// statuses that have none.
#[must_use = "a response is complete only with its body, even an empty one"]
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
        append_date(out);
        Self { exchange, status, fault }
    }

    /// Adds a header field. A name or value that would break the response turns it into a 500.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Err(error) = write::header(&mut self.exchange.scratch.head_out, name, value.as_ref()) {
            self.fault.get_or_insert(error.into());
        }
        self
    }

    /// Responds without a body.
    ///
    /// # Errors
    /// When a header field was refused, or there was a response before.
    pub fn empty(self) -> Result<(), Error> {
        self.whole(&[])
    }

    /// Responds with a body of any type.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn body(self, content_type: &str, body: &[u8]) -> Result<(), Error> {
        self.header("Content-Type", content_type).whole(body)
    }

    /// Responds with plain text.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn text(self, body: &str) -> Result<(), Error> {
        self.body("text/plain; charset=utf-8", body.as_bytes())
    }

    /// Responds with HTML.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn html(self, body: &str) -> Result<(), Error> {
        self.body("text/html; charset=utf-8", body.as_bytes())
    }

    /// Responds with JSON that is already rendered.
    ///
    /// # Errors
    /// As [`empty`](Self::empty).
    pub fn json(self, body: impl AsRef<[u8]>) -> Result<(), Error> {
        self.body("application/json", body.as_ref())
    }

    /// Responds with `value` as JSON.
    ///
    /// # Errors
    /// As [`empty`](Self::empty), or when `value` has no JSON form (500).
    pub fn json_of(self, value: &impl Serialize) -> Result<(), Error> {
        let body = serde_json::to_vec(value)
            .map_err(|_| Problem::new(500, "the response cannot be rendered as JSON"))?;
        self.json(body)
    }

    /// Responds with `length` bytes of `file` from `offset`, without copying them where the model can.
    ///
    /// # Errors
    /// As [`empty`](Self::empty), or when the connection fails or the file is shorter. The connection is unusable then.
    pub async fn file(mut self, file: &Arc<File>, offset: u64, length: u64) -> Result<(), Error> {
        self.finish_head(length)?;
        self.exchange.send_file_body(self.status, file, offset, length).await
    }

    /// Responds with a body of unknown length, written piece by piece.
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
        let bodyless = self.exchange.has_no_body(self.status);
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

    /// Moves the head to the output, unless it is faulty.
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

impl<'c, C: Connection> Exchange<'c, C> {
    /// Begins the response.
    pub fn respond(&mut self, status: u16) -> ResponseWriter<'_, 'c, C> {
        ResponseWriter::new(self, status)
    }
}

impl<C: Connection> Exchange<'_, C> {
    /// Responds with a prepared head and `body`: the fastest way for what is sent often. A small body goes out in one write
    /// with its head and other responses; a larger one is not copied.
    ///
    /// # Errors
    /// When there was a response before, or the connection fails.
    pub async fn send_prepared(&mut self, head: &Prepared, body: &[u8]) -> Result<(), Error> {
        self.begin_prepared(head)?;
        if body.len() <= GATHERED_MAX {
            self.append_body(head.status(), body);
            return Ok(());
        }
        self.send_body(head.status(), body).await
    }

    /// Responds with a prepared head and `length` bytes of `file` from `offset`.
    ///
    /// # Errors
    /// As [`send_prepared`](Self::send_prepared), or when the file is shorter.
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

    /// Writes an interim response, such as 103 or 104 (RFC 9110 section 15.2). It is sent before the server waits for the
    /// body. HTTP/1.0 has no interim responses, so its clients get none.
    ///
    /// # Errors
    /// When a header field is refused, or there was a response before.
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

    /// Responds with a problem.
    ///
    /// # Errors
    /// As [`ResponseWriter::empty`].
    pub fn respond_with(&mut self, problem: &Problem) -> Result<(), Error> {
        let mut response = self.respond(problem.status());
        for (name, value) in problem.headers() {
            response = response.header(name, value);
        }
        response.json(problem.body())
    }

    fn begin_prepared(&mut self, head: &Prepared) -> Result<(), Error> {
        if self.progress != Progress::NotBegun {
            return Err(Error::RespondedTwice);
        }
        self.connection.output().extend_from_slice(head.bytes());
        append_date(self.connection.output());
        self.append_connection_header();
        write::end(self.connection.output());
        Ok(())
    }

    fn append_body(&mut self, status: u16, body: &[u8]) {
        if !self.has_no_body(status) {
            self.connection.output().extend_from_slice(body);
            self.body_bytes_sent += body.len() as u64;
        }
        self.progress = Progress::Done(status);
    }

    async fn send_body(&mut self, status: u16, body: &[u8]) -> Result<(), Error> {
        if !self.has_no_body(status) {
            self.progress = Progress::Begun(status);
            self.connection.set_pace(self.options.pace());
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
        if !self.has_no_body(status) && length > 0 {
            self.progress = Progress::Begun(status);
            self.connection.set_pace(self.options.pace());
            self.connection.send_file(file, offset, length).await.map_err(Error::Connection)?;
            self.body_bytes_sent += length;
        }
        self.progress = Progress::Done(status);
        Ok(())
    }

    fn has_no_body(&self, status: u16) -> bool {
        self.head.method == Method::Head || status::is_bodyless(status)
    }

    /// Adds a `Connection` header where the default does not apply (RFC 9112 section 9.3).
    fn append_connection_header(&mut self) {
        if self.closes() {
            self.must_close = true;
            write::connection_close(self.connection.output());
        } else if self.head.minor_version == 0 {
            self.connection.output().extend_from_slice(b"Connection: keep-alive\r\n");
        }
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        connection::flush(self.connection, self.options).await
    }
}

/// Writes a response's body piece by piece. [`finish`](Self::finish) completes it. If it is dropped before that, the
/// connection is closed, so that the client can tell that the body is incomplete.
#[must_use = "the body is complete only after finish"]
pub struct Chunks<'x, 'c, C> {
    exchange: &'x mut Exchange<'c, C>,
    status: u16,
    coding: Coding,
    /// Whether the client's pace counts from an earlier piece.
    paced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Nothing is sent: the response to HEAD.
    Nothing,
    /// The bytes as they are, until the connection closes: HTTP/1.0 has no chunks.
    UntilClose,
    Chunked,
}

impl<'x, 'c, C: Connection> Chunks<'x, 'c, C> {
    fn new(exchange: &'x mut Exchange<'c, C>, status: u16, bodyless: bool, raw: bool) -> Self {
        let coding = match (bodyless, raw) {
            (true, _) => Coding::Nothing,
            (false, true) => Coding::UntilClose,
            (false, false) => Coding::Chunked,
        };
        Self { exchange, status, coding, paced: false }
    }

    /// Adds a piece. It is sent once enough has gathered. The client's pace is that of the whole body, so the time between two
    /// pieces counts too, unless [`flush`](Self::flush) came between them.
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
        if gathered >= self.exchange.options.gather_bytes { self.send().await } else { Ok(()) }
    }

    /// Sends what has gathered, without ending the body. To be called before waiting for what comes next.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn flush(&mut self) -> Result<(), Error> {
        let sent = self.send().await;
        self.paced = false;
        sent
    }

    /// Sends what has gathered. A pace that began anew with each piece would let a client take a fraction of it.
    async fn send(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.paced, true) {
            return self.exchange.connection.flush().await.map_err(Error::Connection);
        }
        self.exchange.flush().await
    }

    /// Ends the body.
    pub fn finish(self) {
        if self.coding == Coding::Chunked {
            write::last_chunk(self.exchange.connection.output());
        }
        if self.paced {
            // What follows does not share the time of this body.
            self.exchange.connection.set_pace(self.exchange.options.pace());
        }
        self.exchange.progress = Progress::Done(self.status);
    }
}
