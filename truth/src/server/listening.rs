//! Connections: accepted at a pace, and answered by a thread each.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::net::{AddressFamily, SocketType, bind, listen as listen_with, socket, sockopt};

use super::{holding::sleep_until, path::Path};
use crate::Trouble;

/// A sleep ends late by less than this, even on a busy host. Used to tell a late start from an idle server.
const LATE: Duration = Duration::from_millis(5);

/// Listens with a queue of this many places.
pub(super) fn listen(address: &str, backlog: i32) -> Result<TcpListener, Trouble> {
    let parsed: SocketAddr =
        address.parse().map_err(|_| Trouble::Case(format!("'{address}' is no address")))?;
    let refused = |source: rustix::io::Errno| Trouble::io(format!("listen on {address}"))(source.into());
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(refused)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(refused)?;
    bind(&socket, &parsed).map_err(refused)?;
    listen_with(&socket, backlog).map_err(refused)?;
    Ok(socket.into())
}

/// Accepts connections, at most one per `pace`, until the process is killed.
pub(super) fn serve(listener: &TcpListener, pace: Duration, path: &Arc<Path>) -> Result<(), Trouble> {
    let mut due = Instant::now();
    loop {
        let (stream, _) = listener.accept().map_err(Trouble::io("accept a connection"))?;
        let path = Arc::clone(path);
        // What goes wrong on one connection is its client's to see.
        thread::spawn(move || drop(answer(stream, &path)));
        let now = Instant::now();
        // A connection that was there already is counted from when it was due, so that late sleeps do not add up.
        due = if now < due + LATE { due } else { now } + pace;
        if !pace.is_zero() {
            sleep_until(due);
        }
    }
}

fn answer(stream: TcpStream, path: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let body = path.response();
    let mut onward = None;
    while let Some(request) = read_request(&mut requests)? {
        let response = match path.walk(request.is_heavy, &mut onward) {
            Ok(()) => &body[..],
            Err(_) => b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
        };
        stream.write_all(response)?;
        if request.is_last {
            break;
        }
    }
    Ok(())
}

/// A request, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
struct Request {
    /// Whether the connection ends after it.
    is_last: bool,
    /// Whether it is of the second kind.
    is_heavy: bool,
}

/// Reads the header of a request. Returns `None` at the end.
fn read_request(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let (mut line, mut request) = (String::new(), Request::default());
    let mut is_first = true;
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let word = line.trim_end();
        if word.is_empty() {
            return Ok(Some(request));
        }
        request.is_last |= word.eq_ignore_ascii_case("connection: close");
        request.is_heavy |= is_first && word.split(' ').nth(1) == Some("/heavy");
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_both_kinds_are_told_apart() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /heavy HTTP/1.1\r\nConnection: close\r\n\r\n";
        let mut from = text.as_bytes();
        let mut next = || read_request(&mut from).expect("a header");
        assert_eq!(next(), Some(Request::default()));
        assert_eq!(next(), Some(Request { is_last: true, is_heavy: true }));
        assert_eq!(next(), None);
    }
}
