//! The ways in which a sweep is shown, and their onlookers: a browser's requests, or a terminal.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread::{self, JoinHandle},
};

use rustix::{
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
    thread::{CpuSet, sched_setaffinity},
};

use crate::tools::{
    beside::Beside,
    effort::Result,
    workspace::{CLIENTS, SERVERS},
};

/// How a sweep is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum View {
    /// A line for each step.
    Lines,
    /// A page that a browser has open.
    Page,
    /// A screen of its own on a terminal.
    Terminal,
}

/// An onlooker in a thread of this process, on the servers' processor: a browser or a terminal takes nothing from the
/// generator's.
pub(super) struct Watching(JoinHandle<io::Result<usize>>);

impl View {
    /// How the sweep is shown, in words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            View::Lines => "with plain lines",
            View::Page => "open as a page",
            View::Terminal => "on a terminal",
        }
    }

    /// The threads of nstar that show it and do nothing else, by name.
    pub(super) const fn threads(self) -> &'static [&'static str] {
        match self {
            View::Lines => &[],
            View::Page => &["page", "page-client"],
            View::Terminal => &["screen"],
        }
    }

    /// Starts a sweep on the clients' processor, and its onlooker.
    pub(super) fn start(self, words: &[String]) -> Result<(Beside, Option<Watching>)> {
        let mut command = Command::new("taskset");
        command.args(["-c", &CLIENTS.to_string()]).args(words).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        match self {
            View::Lines => Ok((Beside(command.stderr(Stdio::null()).spawn()?), None)),
            View::Page => {
                command.args(["--ui", "127.0.0.1:0"]).stderr(Stdio::piped());
                let mut sweep = Beside(command.spawn()?);
                let said = sweep.0.stderr.take().ok_or("no standard error")?;
                Ok((sweep, Some(Watching::begin(move || browse(BufReader::new(said))))))
            }
            View::Terminal => {
                let (screen, its_end) = terminal()?;
                let sweep = Beside(command.stderr(its_end).spawn()?);
                Ok((sweep, Some(Watching::begin(move || look_at(screen)))))
            }
        }
    }
}

impl Watching {
    fn begin(look: impl FnOnce() -> io::Result<usize> + Send + 'static) -> Self {
        Watching(thread::spawn(move || {
            let mut processors = CpuSet::new();
            processors.set(SERVERS);
            sched_setaffinity(None, &processors)?;
            look()
        }))
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// Fewer changes were seen than these: a view that shows nothing costs nothing.
    pub(super) fn saw(self, changes_min: usize) -> Result<()> {
        let changes = self.0.join().map_err(|_| "the onlooker panicked")??;
        if changes < changes_min {
            return Err(format!("only {changes} changes were shown").into());
        }
        Ok(())
    }
}

/// Opens the page that a sweep says it has, and follows it as a browser does. Returns how often it changed.
fn browse(said: impl BufRead) -> io::Result<usize> {
    let mut changes = 0;
    // To the last line: nobody must wait for room in the pipe.
    for line in said.lines() {
        if let Some((address, path)) = page_in(&line?) {
            changes += follow(address, path)?;
        }
    }
    Ok(changes)
}

/// The address and the path of the page in `page: http://ADDRESS/PATH`.
fn page_in(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("page: http://")?.split_once('/')
}

fn follow(address: &str, path: &str) -> io::Result<usize> {
    io::copy(&mut get(address, path)?, &mut io::sink())?;
    let changes = changes(BufReader::new(get(address, &format!("{path}events"))?))?;
    // Whoever had the page open when the sweep ended is waited for until it has the report.
    io::copy(&mut get(address, &format!("{path}report"))?, &mut io::sink())?;
    Ok(changes)
}

/// Asks for something on a connection of its own. Returns the connection, for the response.
fn get(address: &str, path: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    Ok(stream)
}

/// Reads server-sent events until the one that says that the sweep is over. Returns how many came before it.
fn changes(stream: impl BufRead) -> io::Result<usize> {
    let mut count = 0;
    for line in stream.lines() {
        match line?.strip_prefix("event: ") {
            Some("over") => return Ok(count),
            Some(_) => count += 1,
            None => {}
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// A terminal of 120 columns and 40 rows: what it is sent, and the end for a program.
fn terminal() -> io::Result<(File, Stdio)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags)?;
    unlockpt(&screen)?;
    tcsetwinsize(&screen, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })?;
    let its_end = ioctl_tiocgptpeer(&screen, flags)?;
    Ok((screen.into(), its_end.into()))
}

/// Reads what a terminal is sent until nobody has it open. Returns in how many parts that came.
fn look_at(mut screen: File) -> io::Result<usize> {
    let (mut part, mut count) = ([0; 4_096], 0);
    // The last to close the other end is told as an error of this one.
    while screen.read(&mut part).is_ok_and(|read| read > 0) {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_found_among_what_a_sweep_says() {
        assert_eq!(page_in("page: http://127.0.0.1:7070/8f0c/"), Some(("127.0.0.1:7070", "8f0c/")));
        assert_eq!(page_in("32 users: 190 000 req/s"), None);
    }

    #[test]
    fn events_are_counted_until_the_sweep_is_over() {
        let stream = "HTTP/1.1 200 OK\r\n\r\nevent: now\ndata: event: x\n\n:\n\nevent: figures\ndata: y\n\n";
        let over = format!("{stream}event: over\ndata:\n\nevent: late\ndata: z\n\n");
        assert_eq!(changes(over.as_bytes()).unwrap(), 2);
        assert!(changes(stream.as_bytes()).is_err(), "it broke off");
    }

    #[test]
    fn what_a_program_writes_to_a_terminal_is_seen() {
        let (screen, its_end) = terminal().unwrap();
        let written = Command::new("sh").args(["-c", "test -t 2 && echo here >&2"]).stderr(its_end).status();
        assert!(written.unwrap().success());
        assert!(look_at(screen).unwrap() > 0);
    }
}
