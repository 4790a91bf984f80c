//! Requests to the tier behind.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{Condvar, Mutex, PoisonError},
};

/// A connection to the tier behind.
pub(super) type Connection = BufReader<TcpStream>;

/// The tier behind.
pub(super) struct Upstream {
    address: String,
    /// The connections that may be used, where their number is limited.
    pool: Option<Pool>,
}

struct Pool {
    /// Places for connections; empty ones are not connected yet.
    free: Mutex<Vec<Option<Connection>>>,
    returned: Condvar,
}

impl Upstream {
    /// Forwards to this address, over at most this many connections.
    pub(super) fn new(address: String, most: Option<u32>) -> Self {
        let pool =
            |number| Pool { free: Mutex::new((0..number).map(|_| None).collect()), returned: Condvar::new() };
        Self { address, pool: most.map(pool) }
    }

    /// Makes one request, over a connection of the pool or the caller's own.
    pub(super) fn request(&self, own: &mut Option<Connection>) -> io::Result<()> {
        let Some(pool) = &self.pool else { return self.request_over(own) };
        let mut connection = pool.take();
        let outcome = self.request_over(&mut connection);
        pool.put(connection);
        outcome
    }

    fn request_over(&self, connection: &mut Option<Connection>) -> io::Result<()> {
        let open = match connection {
            Some(open) => open,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                connection.insert(BufReader::new(stream))
            }
        };
        let outcome = exchange(open);
        if outcome.is_err() {
            *connection = None;
        }
        outcome
    }
}

impl Pool {
    fn take(&self) -> Option<Connection> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.returned.wait_while(free, |free| free.is_empty()).unwrap_or_else(PoisonError::into_inner);
        free.pop().flatten()
    }

    fn put(&self, connection: Option<Connection>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        self.returned.notify_one();
    }
}

fn exchange(connection: &mut Connection) -> io::Result<()> {
    connection.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: upstream\r\n\r\n")?;
    let (mut line, mut length, mut status) = (String::new(), 0, false);
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let word = line.trim_end().to_ascii_lowercase();
        status |= word.starts_with("http/1.1 200");
        if let Some(value) = word.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
        if word.is_empty() {
            break;
        }
    }
    io::copy(&mut connection.take(length), &mut io::sink())?;
    if status { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}
