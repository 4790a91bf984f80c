//! One connection: one request, one response.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use wire::{Limits, request};

use super::{
    Site,
    access::{self, Refused, Wanted},
    stream,
};
use crate::shared::Outcome;

/// What every response says: nothing of it is kept, framed, or taken for something else, and its address goes nowhere.
const EVERYWHERE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
                          Referrer-Policy: same-origin\r\nConnection: close\r\n";

/// Of the report: what it holds itself, and nothing from elsewhere.
const REPORT_POLICY: &str =
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\r\n";

/// Reads one request and answers it.
pub(super) fn answer(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(site.patience))?;
    stream.set_nodelay(true)?;
    let wanted = match ask(site, &mut stream)? {
        Ok(wanted) => wanted,
        Err(refused) => return refuse(&mut stream, refused),
    };
    match wanted {
        Wanted::Page => {
            let seen = site.shared.wait(u64::MAX, Duration::ZERO);
            let page = site.renderer.page(&seen.known, &site.nonce).map_err(io::Error::other)?;
            let policy = format!(
                "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{}'; \
                 connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n",
                site.nonce
            );
            send(&mut stream, "200 OK", &format!("{HTML}{policy}"), &page)
        }
        Wanted::Events => stream::run(site, stream),
        Wanted::Report => report(site, &mut stream),
        Wanted::End => {
            site.shared.ask_to_end();
            send(&mut stream, "303 See Other", "Location: ./\r\n", "")
        }
    }
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";

/// What the client wants, if it may have it.
fn ask(site: &Site, stream: &mut TcpStream) -> io::Result<Result<Wanted, Refused>> {
    let (mut bytes, mut part, begun) = (Vec::new(), [0; 2048], Instant::now());
    loop {
        match request::parse(&bytes, &Limits::default()) {
            Ok(Some(head)) => {
                return Ok(access::wanted(head.method, head.view(&bytes), &site.token, site.address));
            }
            Ok(None) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        let left = site.patience.saturating_sub(begun.elapsed());
        // Zero would be no limit at all.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(part.get(..read).unwrap_or_default());
    }
}

fn report(site: &Site, stream: &mut TcpStream) -> io::Result<()> {
    match site.shared.wait(u64::MAX, Duration::ZERO).outcome {
        Some(Outcome::Report(report)) => {
            let sent = send(stream, "200 OK", &format!("{HTML}{REPORT_POLICY}"), &report);
            site.farewells.done();
            sent
        }
        _ => send(stream, "404 Not Found", TEXT, "There is no report yet: the sweep goes on.\n"),
    }
}

fn refuse(stream: &mut TcpStream, refused: Refused) -> io::Result<()> {
    let (status, why) = match refused {
        Refused::Host => (
            "421 Misdirected Request",
            "Open the page by the IP address that nstar printed, or by localhost.\n",
        ),
        Refused::Origin => ("403 Forbidden", "Another site may not ask for this.\n"),
        Refused::NotFound => ("404 Not Found", "Open the whole address that nstar printed.\n"),
        Refused::Method => ("405 Method Not Allowed", "This is asked for in another way.\n"),
    };
    send(stream, status, TEXT, why)
}

fn send(stream: &mut TcpStream, status: &str, fields: &str, body: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{EVERYWHERE}{fields}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// Begins a stream of events.
pub(super) fn send_stream_head(stream: &mut TcpStream) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\n{EVERYWHERE}Content-Type: text/event-stream\r\n\r\n");
    stream.write_all(head.as_bytes())
}
