//! The parent process, which accepts, forks and reaps; and how the caller starts and watches it.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair},
    process::{Pid, WaitOptions, getpid, waitpid},
};

use super::{
    children::{Children, until},
    fork::{Exit, drop_inherited_sockets, fork},
};
use crate::{
    clock,
    connection_limit::ConnectionLimit,
    control::{Control, Notifier},
    error::EngineError,
    listen::{self, Acceptor},
    options::Options,
    server::Server,
    signals,
};

/// Longest message of a child that could not make its service, in bytes.
const REPORT_MAX: usize = 2048;

/// What the parent process works with.
pub(super) struct ParentProcess {
    pub(super) control: Arc<Control>,
    pub(super) limit: Arc<ConnectionLimit>,
    /// `None` once no more connections are accepted, and in children that do not accept.
    pub(super) acceptor: Option<Acceptor>,
    pub(super) pid: Pid,
    notifier: Arc<Notifier>,
    caller: OwnedFd,
    /// The caller's process has ended.
    orphaned: bool,
}

/// Starts a parent process that runs `work`, and waits for `reports` from its children.
pub(super) fn start(
    options: &Options,
    reports: usize,
    work: impl FnOnce(ParentProcess),
) -> Result<Server, EngineError> {
    warn_of_other_threads();
    let notifier = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
    let control = Arc::new(Control::new(vec![Arc::clone(&notifier)]));
    let counters = Arc::clone(&options.counters);
    let limit = Arc::new(ConnectionLimit::new(options, Arc::clone(&control)));
    let (local, mut listeners) = listen::open(options, 1)?;
    let acceptor = listeners
        .pop()
        .map(|listener| Acceptor::new(listener, SocketFlags::empty(), Arc::clone(&limit), Arc::default()));
    let (ours, caller) = pair().map_err(EngineError::system("a pair of sockets"))?;
    let (mut ours, server_control) = (Some(ours), Arc::clone(&control));
    let pid = fork(|| {
        drop(ours.take());
        let pid = getpid();
        run(ParentProcess { control, limit, acceptor, pid, notifier, caller, orphaned: false }, work)
    })
    .map_err(EngineError::system("a process"))?;
    let mut server = Server { local, counters, control: server_control, threads: Vec::new() };
    if let Some(link) = ours.map(Arc::new) {
        server.threads.push(watch(pid, Arc::clone(&link), Arc::clone(&server.control))?);
        // An error drops the server, which ends the parent.
        await_reports(&link, reports)?;
    }
    Ok(server)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn warn_of_other_threads() {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        tracing::warn!(
            threads,
            "forking from a program with several threads: start this server before them, \
             or a lock that one of them holds may stay locked in the new processes"
        );
    }
}

/// The whole life of the parent process.
fn run(parent: ParentProcess, work: impl FnOnce(ParentProcess)) -> Exit {
    let listener = parent.acceptor.as_ref().map(AsFd::as_fd);
    let kept: Vec<BorrowedFd<'_>> = [Some(parent.caller.as_fd()), listener].into_iter().flatten().collect();
    drop_inherited_sockets(&kept);
    if signals::install_in_parent(&parent.notifier).is_err() {
        return Exit::Failed;
    }
    work(parent);
    Exit::Done
}

/// Starts a thread that waits for the parent process to end.
fn watch(
    parent: Pid,
    link: Arc<OwnedFd>,
    control: Arc<Control>,
) -> Result<thread::JoinHandle<()>, EngineError> {
    let drained = Arc::clone(&control);
    let watcher = thread::Builder::new().name("parent-watcher".to_owned()).spawn(move || {
        // This fails only if the process is not a child of this one, but it is.
        let status = retry_on_intr(|| waitpid(Some(parent), WaitOptions::empty()));
        if !drained.draining() {
            let signal = status.ok().flatten().and_then(|(_, status)| status.terminating_signal());
            tracing::error!(
                signal,
                "the process that accepts connections has ended, so the server serves no more"
            );
        }
        drop(link);
    });
    watcher.map_err(|source| {
        control.drain(Duration::ZERO);
        let _ = waitpid(Some(parent), WaitOptions::empty());
        EngineError::System { what: "a thread", source }
    })
}

fn await_reports(parent: &OwnedFd, count: usize) -> Result<(), EngineError> {
    let gone = || EngineError::System {
        what: "its first process ended at once",
        source: io::ErrorKind::UnexpectedEof.into(),
    };
    let mut message = [0; REPORT_MAX];
    for _ in 0..count {
        let (length, _) =
            retry_on_intr(|| recv(parent, &mut message, RecvFlags::empty())).map_err(|_| gone())?;
        match message.get(..length).and_then(<[u8]>::split_first) {
            Some((b'+', _)) => {}
            Some((_, why)) => {
                let why = String::from_utf8_lossy(why).into_owned();
                return Err(EngineError::Service { source: io::Error::other(why) });
            }
            None => return Err(gone()),
        }
    }
    Ok(())
}

impl ParentProcess {
    /// Tells the caller whether a child could make its service.
    pub(super) fn report<T>(&self, made: &io::Result<T>) {
        let mut message = match made {
            Ok(_) => b"+".to_vec(),
            Err(error) => format!("-{error}").into_bytes(),
        };
        message.truncate(REPORT_MAX);
        // If the caller is gone, nobody needs the report.
        let _ = send(&self.caller, &message, SendFlags::NOSIGNAL);
    }

    /// Whether connections are to be served.
    pub(super) fn serving(&self) -> bool {
        !self.orphaned && !self.control.draining()
    }

    /// Waits for the notifier (a child's end, a drain), the caller's end, `also`, or the time-out.
    pub(super) fn wait(&mut self, also: Option<BorrowedFd<'_>>, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let watched = [Some(self.caller.as_fd()), Some(self.notifier.as_fd()), also];
        let mut descriptors: Vec<PollFd<'_>> = watched
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        // An interrupted or failed wait is merely short: the caller checks again.
        let _ = poll(&mut descriptors, timeout.as_ref());
        // Nothing is ever sent in this direction, so an event means the end.
        let gone = descriptors.first().is_some_and(|caller| !caller.revents().is_empty());
        self.orphaned |= gone;
        self.notifier.clear();
    }

    /// Ends the children: idle ones at once, the others by the deadline. `last` may add more whenever some have ended.
    pub(super) fn drain<T>(
        &mut self,
        children: &mut Children<T>,
        mut last: impl FnMut(&mut Self, &mut Children<T>),
    ) {
        children.end_idle();
        loop {
            children.reap();
            last(self, children);
            if children.is_empty() {
                return;
            }
            if self.orphaned || clock::now() >= self.control.stop_at() {
                children.kill();
                // A killed process ends soon.
                self.wait(None, Some(Duration::from_millis(10)));
            } else {
                self.wait(None, Some(until(self.control.stop_at())));
            }
        }
    }
}
