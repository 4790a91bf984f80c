//! The near end of a stream, most often the standard input and output of a command, and the threads that read and write it.
//!
//! Whoever asks for something puts it in a short queue and goes on: a far end that does not read what it is told stops only
//! the thread that writes.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use analysis::run::AgentTrouble;
use observe::monotonic_us;

use crate::kept::Kept;
use crate::open::{Ended, Ways};
use crate::patience::Patience;
use crate::protocol::{self, Greeting, ProtocolError, Reports};

/// Commands that wait to be written. A far end that takes none misses the others.
const QUEUE: usize = 64;

/// Time between pings.
const PING_PERIOD: Duration = Duration::from_secs(1);

/// How much is read at once.
const CHUNK: usize = 1 << 16;

/// How long the far end has to end by itself once its input has.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The last bytes on stderr that are kept.
const STDERR_BYTES: usize = 2048;

/// The last lines of them that are shown.
const STDERR_LINES: usize = 4;

/// How long to wait for the last words of a command that ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How often those who wait look whether to stop: a signal does not wake them.
pub(crate) const STOP_CHECK: Duration = Duration::from_millis(20);

/// What the threads share with whoever asks.
#[derive(Debug)]
pub(crate) struct Shared {
    kept: Mutex<Kept>,
    changed: Condvar,
}

/// Why nothing more comes over a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended.
    Closed,
    /// What came is not what an agent says.
    Protocol(ProtocolError),
    /// More came than an agent may say.
    Flooded,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds, nothing more can come, or the time is over. Returns whether it holds.
    pub(crate) fn wait_until(&self, patience: Duration, holds: impl Fn(&Kept) -> bool) -> bool {
        let waiting = |kept: &mut Kept| !holds(kept) && kept.ended.is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), patience, waiting);
        holds(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits until something holds, nothing more can come, or the patience is over. Returns whether it holds.
    pub(crate) fn wait_unless_stopped(&self, patience: &Patience<'_>, holds: impl Fn(&Kept) -> bool) -> bool {
        while !self.wait_until(patience.left().min(STOP_CHECK), &holds) {
            let kept = self.lock();
            if kept.ended.is_some() || !patience.lasts() {
                // It may have come since, and have been the last.
                return holds(&kept);
            }
        }
        true
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// A running agent, as far as it can be reached.
pub(crate) struct Stream {
    pub(crate) shared: Arc<Shared>,
    commands: Option<SyncSender<protocol::Command>>,
    carrier: Carrier,
    end: Arc<Mutex<Option<End>>>,
}

/// What a stream goes over.
enum Carrier {
    /// A running command.
    Command { child: Mutex<Child>, stderr: Stderr },
    /// Something that can tell how it ended.
    Open(Box<dyn Fn() -> Option<Ended> + Send + Sync>),
}

impl Stream {
    /// Starts the command. It is kept out of the terminal's group of processes: Ctrl-C is for nstar, which then still asks it
    /// for its last samples.
    pub(crate) fn start(mut command: Command) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr = Stderr::follow(child.stderr.take().ok_or_else(missing)?)?;
        Self::over((input, output), Carrier::Command { child: Mutex::new(child), stderr })
    }

    /// Goes on with a stream that is open.
    pub(crate) fn open(Ways { output, input, ended }: Ways) -> std::io::Result<Self> {
        Self::over((input, output), Carrier::Open(ended))
    }

    fn over(
        (input, output): (impl Write + Send + 'static, impl Read + Send + 'static),
        carrier: Carrier,
    ) -> std::io::Result<Self> {
        let kept = Mutex::new(Kept::new(monotonic_us()));
        let shared = Arc::new(Shared { kept, changed: Condvar::new() });
        let end = Arc::new(Mutex::new(None));
        let (commands, queue) = sync_channel(QUEUE);
        let (theirs, theirs_end) = (Arc::clone(&shared), Arc::clone(&end));
        named("nstar-hear", move || read(output, &theirs, &theirs_end))?;
        let theirs = Arc::clone(&shared);
        named("nstar-ask", move || write(input, &queue, &theirs))?;
        Ok(Self { shared, commands: Some(commands), carrier, end })
    }

    /// Has a command sent, unless so many wait that the far end seems to take none.
    pub(crate) fn ask(&self, command: protocol::Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.try_send(command);
        }
    }

    /// Why nothing more comes, if that is so.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How it ended. It is asked after nothing more comes.
    pub(crate) fn how_it_ended(&self) -> Ended {
        match &self.carrier {
            Carrier::Command { child, stderr } => {
                Ended::Exited { code: exit_code(child), stderr: stderr.last_words() }
            }
            Carrier::Open(ended) => ended().unwrap_or(Ended::Exited { code: None, stderr: String::new() }),
        }
    }

    /// The last lines on its stderr, in one line.
    pub(crate) fn last_words(&self) -> String {
        match &self.carrier {
            Carrier::Command { stderr, .. } => stderr.last_words(),
            Carrier::Open(_) => String::new(),
        }
    }
}

/// The exit code of a command once it has ended.
fn exit_code(child: &Mutex<Child>) -> Option<i32> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        if let Ok(Some(status)) = ended {
            return status.code();
        }
        if Instant::now() > deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("end", &self.end()).finish_non_exhaustive()
    }
}

/// Ends the far end's input, which ends it. A command that goes on is killed.
impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.commands.take());
        match &mut self.carrier {
            Carrier::Command { child, .. } => {
                end_of(child.get_mut().unwrap_or_else(PoisonError::into_inner));
            }
            Carrier::Open(_) => drop(self.shared.wait_until(END_PATIENCE, |_| false)),
        }
    }
}

/// Waits for the end of a process whose input has ended, and kills it where that takes too long.
pub(crate) fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + END_PATIENCE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(2));
    }
    // It fails only where it has ended already.
    let _ = child.kill();
    child.wait().ok()
}

/// Runs something on a thread with a name.
pub(crate) fn named(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Reads reports until the stream ends or says what no agent says.
fn read(mut output: impl Read, shared: &Shared, end: &Mutex<Option<End>>) {
    let (why, trouble) = match hear(&mut output, shared) {
        Heard::Nothing => (End::Closed, AgentTrouble::Ended { code: None, stderr: String::new() }),
        Heard::Wrong(error) => (End::Protocol(error), AgentTrouble::Malformed),
        Heard::TooMuch => (End::Flooded, AgentTrouble::Flooded),
    };
    *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    // What it says from now on is not read, so that it cannot go on for ever.
    drop(output);
    shared.change(|kept| kept.ended = Some(trouble));
}

/// Why nothing more is heard.
enum Heard {
    Nothing,
    Wrong(ProtocolError),
    TooMuch,
}

fn hear(output: &mut impl Read, shared: &Shared) -> Heard {
    let (mut greeting, mut reports, mut greeted) = (Greeting::default(), Reports::default(), false);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match output.read(&mut chunk) {
            Ok(0) | Err(_) => return Heard::Nothing,
            Ok(read) => read,
        };
        let came = chunk.get(..read).unwrap_or_default();
        if greeted {
            reports.push(came);
        } else {
            match greeting.push(came) {
                Ok(None) => continue,
                Ok(Some(rest)) => reports.push(&rest),
                Err(error) => return Heard::Wrong(error.into()),
            }
            greeted = true;
        }
        if let Err(heard) = keep(&mut reports, shared) {
            return heard;
        }
    }
}

/// Keeps all reports that are complete.
fn keep(reports: &mut Reports, shared: &Shared) -> Result<(), Heard> {
    while let Some((report, bytes)) = reports.next_report().map_err(Heard::Wrong)? {
        let mut exceeded = false;
        shared.change(|kept| exceeded = kept.add(report, bytes, monotonic_us()).is_err());
        if exceeded {
            return Err(Heard::TooMuch);
        }
    }
    Ok(())
}

/// Writes commands, and a ping once a second, until nobody can ask any more or nobody reads.
fn write(mut input: impl Write, queue: &Receiver<protocol::Command>, shared: &Shared) {
    let mut next_ping = Instant::now() + PING_PERIOD;
    let mut sent = input.write_all(protocol::greeting().as_bytes());
    while sent.is_ok() {
        let command = match queue.recv_timeout(next_ping.saturating_duration_since(Instant::now())) {
            Ok(command) => command,
            Err(RecvTimeoutError::Timeout) => {
                next_ping = Instant::now() + PING_PERIOD;
                protocol::Command::Ping(0)
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let command = match command {
            // It counts from the moment it is written.
            protocol::Command::Ping(_) => protocol::Command::Ping(shared.lock().ping(monotonic_us())),
            other => other,
        };
        // One that is too long is not sent: whoever asks for such a one has looked.
        let Ok(bytes) = protocol::command(&command) else { continue };
        sent = input.write_all(&bytes);
    }
}

/// The end of what a command says on its stderr.
#[derive(Debug, Clone)]
pub(crate) struct Stderr {
    last: Arc<Mutex<(VecDeque<u8>, bool)>>,
}

impl Stderr {
    /// Reads it in the background.
    pub(crate) fn follow(mut stderr: ChildStderr) -> std::io::Result<Self> {
        let last = Arc::new(Mutex::new((VecDeque::new(), false)));
        let theirs = Arc::clone(&last);
        named("nstar-stderr", move || {
            let mut chunk = [0; STDERR_BYTES];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                let mut last = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                last.0.extend(chunk.iter().take(read));
                let surplus = last.0.len().saturating_sub(STDERR_BYTES);
                last.0.drain(..surplus);
            }
            theirs.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        })?;
        Ok(Self { last })
    }

    /// The last lines, in one.
    pub(crate) fn last_words(&self) -> String {
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.1 || Instant::now() > deadline {
                return last_lines(&last.0.iter().copied().collect::<Vec<u8>>());
            }
            drop(last);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The last lines of a text in one line, fit to be shown.
pub(crate) fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(STDERR_LINES)..).unwrap_or_default();
    last.join("; ").chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Longer than anybody waits for a test.
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn silent() -> Shared {
        Shared { kept: Mutex::new(Kept::new(0)), changed: Condvar::new() }
    }

    #[test]
    fn a_stop_while_something_is_waited_for_ends_the_waiting() {
        let stop = AtomicBool::new(false);
        let never = |_: &Kept| {
            // Looked at once the waiting has begun, and not before.
            stop.store(true, Ordering::Relaxed);
            false
        };
        assert!(!silent().wait_unless_stopped(&Patience::begin(DAY, &stop), never));
    }

    #[test]
    fn what_holds_already_is_found_after_a_stop_and_when_it_is_late() {
        let stop = AtomicBool::new(true);
        assert!(silent().wait_unless_stopped(&Patience::begin(DAY, &stop), |_| true));
        let late = AtomicBool::new(false);
        assert!(silent().wait_unless_stopped(&Patience::begin(Duration::ZERO, &late), |_| true));
        assert!(!silent().wait_unless_stopped(&Patience::begin(Duration::ZERO, &late), |_| false));
    }

    #[test]
    fn last_words_are_the_last_lines_in_one() {
        assert_eq!(last_lines(b"a\n\nb\r\n c\nd\ne\x1b[31m\n"), "b; c; d; e[31m");
        assert_eq!(last_lines(b""), "");
    }
}
