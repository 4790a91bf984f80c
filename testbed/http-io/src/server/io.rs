//! Sending to the client, and closing, with the right deadline.

use engine::service::Connection;

use super::{Error, HttpOptions};

/// Sends the output. The time allowed grows with its size.
pub(crate) async fn flush<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    let bytes = connection.output().len() as u64;
    connection.set_deadline(Some(options.write_deadline(bytes)));
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
    let bytes = connection.output().len() as u64;
    connection.set_deadline(Some(if bytes == 0 {
        options.linger_timeout
    } else {
        options.write_deadline(bytes)
    }));
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
