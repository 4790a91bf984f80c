//! Waiting on the client, with the right deadline.

use engine::service::Connection;

use super::{Error, HttpOptions};

/// Sends what is gathered, allowing the time its size deserves.
pub(crate) async fn flush<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    let bytes = connection.output().len() as u64;
    connection.set_deadline(Some(options.write_deadline(bytes)));
    connection.flush().await.map_err(Error::Connection)
}

/// Sends answers still held back, before waiting for input: the client may be waiting for them.
pub(crate) async fn send_gathered<C: Connection>(
    connection: &mut C,
    options: &HttpOptions,
) -> Result<(), Error> {
    if connection.output().is_empty() { Ok(()) } else { flush(connection, options).await }
}

/// Sends what is gathered, and says that it was all.
pub(crate) async fn finish<C: Connection>(connection: &mut C, options: &HttpOptions) -> Result<(), Error> {
    let bytes = connection.output().len() as u64;
    connection.set_deadline(Some(if bytes == 0 {
        options.linger_timeout
    } else {
        options.write_deadline(bytes)
    }));
    connection.finish().await.map_err(Error::Connection)
}

/// Closes so that the client sees the last answer: says that no more will come, then reads for a while what it still
/// sends. Closing at once with input unread would reset the connection and could destroy the answer on its way
/// (RFC 9112 section 9.6).
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
            Ok(came) if came > 0 && came as u64 <= allowance => allowance -= came as u64,
            _ => return,
        }
    }
}
