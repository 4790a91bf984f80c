//! Waiting for a request's head, and refusing what is not one.

use engine::service::Connection;
use wire::{ParseError, request, request::Head, write};

use super::{Error, ServerOptions, io};
use crate::{Problem, date};

/// Waits for the next head. `None`: the connection has come to its end between requests.
///
/// An idle connection ends when the server drains: `fill` sees to that.
///
/// Answers to earlier requests are held back while the next one is already here whole, and go out together.
pub(crate) async fn read<C: Connection>(
    connection: &mut C,
    options: &ServerOptions,
) -> Result<Option<Head>, Error> {
    let mut begun = false;
    loop {
        if let Some(head) = parse(connection, options)? {
            if connection.output().len() >= options.gather_bytes {
                io::flush(connection, options).await?;
            }
            return Ok(Some(head));
        }
        io::send_gathered(connection, options).await?;
        let idle = connection.input().is_empty();
        if idle {
            connection.set_deadline(Some(options.idle_timeout));
        } else if !std::mem::replace(&mut begun, true) {
            connection.set_deadline(Some(options.head_timeout));
        }
        match connection.fill().await {
            Ok(0) if idle => return Ok(None),
            Ok(0) => return Err(ParseError::ClosedEarly.into()),
            Ok(_) => {}
            Err(_) if idle => return Ok(None),
            Err(error) => return Err(Error::reading(error)),
        }
    }
}

fn parse<C: Connection>(connection: &C, options: &ServerOptions) -> Result<Option<Head>, ParseError> {
    match connection.input() {
        [] => Ok(None),
        input => request::parse(input, &options.limits),
    }
}

/// Renders the answer to something that is not a request.
pub(crate) fn refuse(out: &mut Vec<u8>, problem: &Problem) {
    let body = problem.body();
    write::status_line(out, problem.status());
    date::append(out);
    out.extend_from_slice(b"Content-Type: application/json\r\n");
    write::content_length(out, body.len() as u64);
    write::connection_close(out);
    write::end(out);
    out.extend_from_slice(body.as_bytes());
}
