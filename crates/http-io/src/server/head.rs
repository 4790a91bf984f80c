//! Waiting for a request's head, and refusing what is not one.

use engine::service::Connection;
use wire::{ParseError, request, request::Head, write};

use super::{Error, ServerOptions, io};
use crate::{Problem, date};

/// Waits for the next head and puts it into `head`; leaves none there when the connection has come to its end between
/// requests. (A head is too large to be handed up through futures for every request.)
///
/// An idle connection ends when the server drains: `fill` sees to that.
///
/// Answers to earlier requests are held back while the next one is already here whole, and go out together.
pub(crate) async fn read<C: Connection>(
    connection: &mut C,
    options: &ServerOptions,
    head: &mut Option<Head>,
) -> Result<(), Error> {
    let mut begun = false;
    loop {
        *head = request::parse(connection.input(), &options.limits)?;
        if head.is_some() {
            return make_room(connection, options).await;
        }
        io::send_gathered(connection, options).await?;
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

/// Sends what has gathered before there is too much of it.
async fn make_room<C: Connection>(connection: &mut C, options: &ServerOptions) -> Result<(), Error> {
    if connection.output().len() < options.gather_bytes {
        return Ok(());
    }
    io::flush(connection, options).await
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
