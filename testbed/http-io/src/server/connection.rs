//! A connection between exchanges: waiting for a request's head, refusing other input, sending what has gathered, closing.
//! Every wait has its deadline.

use engine::service::Connection;
use wire::{
    ParseError,
    request::{self, Head},
    write,
};

use super::{error::Error, options::HttpOptions, prepared::append_date};
use crate::Problem;

/// Waits for the next head and stores it in `head`, or `None` when the connection ended between requests. (A head is too
/// large to be returned through futures for every request.)
///
/// `fill` ends idle connections when the server drains.
///
/// Responses to earlier requests are held back as long as the next request has already arrived whole, and are sent
/// together.
pub(crate) async fn read_head<C: Connection>(
    connection: &mut C,
    options: &HttpOptions,
    head: &mut Option<Head>,
) -> Result<(), Error> {
    let mut begun = false;
    loop {
        *head = request::parse(connection.input(), &options.limits)?;
        if head.is_some() {
            return make_room(connection, options).await;
        }
        send_gathered(connection, options).await?;
        let idle = connection.input().is_empty();
        if idle {
            connection.set_deadline(Some(options.idle_timeout));
        } else if !std::mem::replace(&mut begun, true) {
            connection.set_deadline(Some(options.head_timeout));
        }
        match connection.fill().await {
            Ok(0) if idle => return Ok(()),
            Ok(0) => return Err(ParseError::ClosedEarly.into()),
            Ok(_) => {}
            Err(_) if idle => return Ok(()),
            Err(error) => return Err(Error::reading(error)),
        }
    }
}

/// Sends the gathered responses once there are enough of them.
async fn make_room<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    if connection.output().len() < options.gather_bytes {
        return Ok(());
    }
    flush(connection, options).await
}

/// Whether bytes look like the beginning of a request: methods are capital letters.
pub(crate) fn looks_like_one(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_uppercase)
}

/// Renders the response to input that is not a request. It closes the connection.
pub(crate) fn refuse(out: &mut Vec<u8>, problem: &Problem) {
    let body = problem.body();
    write::status_line(out, problem.status());
    append_date(out);
    out.extend_from_slice(b"Content-Type: application/json\r\n");
    write::content_length(out, body.len() as u64);
    write::connection_close(out);
    write::end(out);
    out.extend_from_slice(body.as_bytes());
}

/// The bytes of a 503 with `Retry-After` that closes the connection, for clients refused before their request is read.
/// It has no `Date`, because it is rendered once and sent often; RFC 9110 section 6.6.1 allows that for a 5xx.
pub fn unavailable(retry_after_s: u32) -> Vec<u8> {
    let body = Problem::new(503, "the server is busy").hint("try again later").body();
    let mut out = Vec::new();
    write::status_line(&mut out, 503);
    out.extend_from_slice(format!("Retry-After: {retry_after_s}\r\n").as_bytes());
    out.extend_from_slice(b"Content-Type: application/json\r\n");
    write::content_length(&mut out, body.len() as u64);
    write::connection_close(&mut out);
    write::end(&mut out);
    out.extend_from_slice(body.as_bytes());
    out
}

/// Sends the output, as long as the client takes it.
pub(crate) async fn flush<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    connection.set_pace(options.pace());
    connection.flush().await.map_err(Error::Connection)
}

/// Sends responses that were held back. To be called before waiting for input: the client may be waiting for them.
pub(crate) async fn send_gathered<C: Connection>(
    connection: &mut C,
    options: &HttpOptions,
) -> Result<(), Error> {
    if connection.output().is_empty() { Ok(()) } else { flush(connection, options).await }
}

/// Sends the output and marks the end of the stream.
pub(crate) async fn finish<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    if connection.output().is_empty() {
        connection.set_deadline(Some(options.linger_timeout));
    } else {
        connection.set_pace(options.pace());
    }
    connection.finish().await.map_err(Error::Connection)
}

/// Closes so that the client sees the last response: half-closes, then reads and discards input for a while. Closing at
/// once with unread input would reset the connection and could destroy the response on its way (RFC 9112 section 9.6).
pub(crate) async fn linger<C: Connection>(connection: &mut C, options: &HttpOptions) {
    if connection.shutdown_write().is_err() {
        return;
    }
    connection.set_deadline(Some(options.linger_timeout));
    let mut allowance = options.drain_bytes;
    loop {
        let unread = connection.input().len();
        connection.consume(unread);
        match connection.fill().await {
            Ok(count) if count > 0 && count as u64 <= allowance => allowance -= count as u64,
            _ => return,
        }
    }
}
