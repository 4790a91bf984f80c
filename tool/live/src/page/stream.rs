//! The stream of a page's changes (server-sent events): one event for each part that is not what it was.

use std::{
    io::{self, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use report::live::Part;

use super::{Site, connection::send_stream_head};
use crate::shared::{Outcome, Seen};

/// No page needs to change more often.
const PAUSE: Duration = Duration::from_millis(250);

/// How often something is sent even if nothing changed, so that a client that has gone away is noticed.
const ALIVE: Duration = Duration::from_secs(5);

/// Sends what changes until the sweep is over or the client has gone away.
pub(super) fn run(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    site.farewells.begin();
    let sent = changes(site, &mut stream);
    // The page that was sent to the report is waited for until it fetches it.
    if !matches!(sent, Ok(Ended::ToReport)) {
        site.farewells.done();
    }
    sent.map(|_| ())
}

/// How a stream ended.
enum Ended {
    /// The client fetches the report now.
    ToReport,
    /// The client knows why there is none.
    Told,
}

fn changes(site: &Site, stream: &mut TcpStream) -> io::Result<Ended> {
    send_stream_head(stream)?;
    let mut shown = Shown::default();
    let mut version = u64::MAX;
    loop {
        let seen = site.shared.wait(version, ALIVE);
        version = seen.version;
        match &seen.outcome {
            Some(Outcome::Report(_)) => {
                send(stream, "over", "")?;
                return Ok(Ended::ToReport);
            }
            Some(Outcome::Failed(why)) => {
                let told = site.renderer.failed(why).map_err(io::Error::other)?;
                send(stream, "failed", &told)?;
                return Ok(Ended::Told);
            }
            None => shown.renew(site, &seen, stream)?,
        }
        thread::sleep(PAUSE);
    }
}

/// What the page shows.
#[derive(Debug, Default)]
struct Shown {
    parts: [String; Part::ALL.len()],
    steps_version: Option<u64>,
}

impl Shown {
    /// Sends the parts that are not what they were.
    fn renew(&mut self, site: &Site, seen: &Seen, stream: &mut TcpStream) -> io::Result<()> {
        let same_steps = self.steps_version == Some(seen.steps_version);
        for (part, shown) in Part::ALL.into_iter().zip(&mut self.parts) {
            // Charts take longest, and change only when a step is complete.
            if part == Part::Figures && same_steps {
                continue;
            }
            let html = site.renderer.part(&seen.known, part).map_err(io::Error::other)?;
            if html != *shown {
                send(stream, part.name(), &html)?;
                *shown = html;
            }
        }
        self.steps_version = Some(seen.steps_version);
        // A comment, which a client ignores.
        stream.write_all(b":\n\n")
    }
}

/// Sends an event. Lines of data are joined again by the client.
fn send(stream: &mut TcpStream, name: &str, data: &str) -> io::Result<()> {
    let mut event = format!("event: {name}\n");
    for line in data.lines() {
        event += "data: ";
        event += line;
        event.push('\n');
    }
    // Without data there is no event.
    event += if data.is_empty() { "data:\n\n" } else { "\n" };
    stream.write_all(event.as_bytes())
}
