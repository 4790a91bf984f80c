//! One request and its response over one connection.

use std::io;

use engine::service::Connection;
use wire::{
    Fields, Framing, Limits, Method, ParseError,
    body::{Decoder, Event},
    response::{self, Head},
};

use super::{ClientError, Failure, Request, Response};

/// How much memory is reserved for an announced body at most, bytes. It need not arrive.
const BODY_RESERVED_MAX: usize = 4 * 1024 * 1024;

/// Sends `request` and reads the response. Returns whether the connection may be used again, too.
pub(crate) async fn run<C: Connection>(
    connection: &mut C,
    request: &Request<'_>,
    host: &str,
    limits: &Limits,
) -> Result<(Response, bool), Failure> {
    request.render(host, connection.output()).map_err(|error| Failure::Final(error.into()))?;
    connection.flush().await.map_err(lost)?;
    let (head, fields) = read_head(connection, request.method(), limits).await?;
    let bytes = connection.input().get(..head.len).unwrap_or_default().to_vec();
    connection.consume(head.len);
    let body = read_body(connection, &head, limits).await.map_err(Failure::Final)?;
    let reusable = head.keep_alive && connection.input().is_empty();
    Ok((Response { status: head.status, head: bytes, fields, body }, reusable))
}

/// Waits for the head of the final response, skipping interim ones (1xx).
async fn read_head<C: Connection>(
    connection: &mut C,
    method: Method,
    limits: &Limits,
) -> Result<(Head, Fields), Failure> {
    let mut begun = false;
    loop {
        let found = response::parse_indexed(connection.input(), method, limits)
            .map_err(|e| Failure::Final(e.into()))?;
        match found {
            Some((head, _)) if head.is_interim() => {
                begun = true;
                connection.consume(head.len);
            }
            Some(found) => return Ok(found),
            None => {
                begun |= !connection.input().is_empty();
                match (connection.fill().await, begun) {
                    (Ok(0), false) => return Err(Failure::Unanswered(io::ErrorKind::UnexpectedEof.into())),
                    (Ok(0), true) => return Err(Failure::Final(closed_early())),
                    (Ok(_), _) => {}
                    (Err(error), false) => return Err(lost(error)),
                    (Err(error), true) => return Err(Failure::Final(broken(error))),
                }
            }
        }
    }
}

async fn read_body<C: Connection>(
    connection: &mut C,
    head: &Head,
    limits: &Limits,
) -> Result<Vec<u8>, ClientError> {
    let mut decoder = Decoder::new(head.framing, limits)?;
    let announced = match head.framing {
        Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
        _ => 0,
    };
    let mut body = Vec::with_capacity(announced.min(BODY_RESERVED_MAX));
    loop {
        match decoder.next(connection.input())? {
            Event::Framing(count) => connection.consume(count),
            Event::Data(count) => {
                body.extend_from_slice(connection.input().get(..count).unwrap_or_default());
                connection.consume(count);
                decoder.advance(count as u64);
            }
            Event::End => return Ok(body),
            Event::NeedMore => {
                if connection.fill().await.map_err(broken)? == 0 {
                    decoder.close().map_err(|_: ParseError| closed_early())?;
                }
            }
        }
    }
}

/// The failure of a connection before any response. A time-out is no reason to send the request again.
fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::Final(ClientError::TimedOut),
        _ => Failure::Unanswered(error),
    }
}

fn broken(error: io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::TimedOut => ClientError::TimedOut,
        _ => ClientError::Lost(error),
    }
}

fn closed_early() -> ClientError {
    ClientError::Lost(io::ErrorKind::UnexpectedEof.into())
}
