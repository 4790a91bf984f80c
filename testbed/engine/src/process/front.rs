//! The process that accepts, forks and reaps; and how the caller starts and watches it.

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
    process::{Pid, WaitOptions, waitpid},
};

use super::{
    fork::{self, Ended, fork},
    household::{Household, until},
    inherited, signals,
};
use crate::{
    clock,
    control::{Control, Notifier},
    counters::Gate,
    error::EngineError,
    listen::{self, Acceptor},
    server::{Options, Server},
};

/// Longest message of a child that could not make its service, in bytes.
const REPORT_MAX: usize = 2048;

/// What the front process is made of.
pub(crate) struct Front {
    pub(crate) control: Arc<Control>,
    pub(crate) gate: Arc<Gate>,
    /// Closed when no more are accepted, and by children that do not accept.
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) pid: Pid,
    notifier: Arc<Notifier>,
    caller: OwnedFd,
    /// The caller's process has ended.
    orphaned: bool,
}

/// Starts a front process that runs `front`, and waits for `reports` of its children.
pub(crate) fn start(
    options: &Options,
    reports: usize,
    front: impl FnOnce(Front),
) -> Result<Server, EngineError> {
    warn_of_other_threads();
    let notifier = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
    let control = Arc::new(Control::new(vec![Arc::clone(&notifier)]));
    let counters = Arc::clone(&options.counters);
    let gate = Arc::new(Gate::new(options.max_connections, Arc::clone(&counters), Arc::clone(&control)));
    let (local, mut listeners) = listen::open(options.listen, options.backlog, 1)?;
    let acceptor = listeners
        .pop()
        .map(|listener| Acceptor::new(listener, SocketFlags::empty(), Arc::clone(&gate), Arc::default()));
    let (ours, caller) = pair().map_err(EngineError::system("a pair of sockets"))?;
    let (mut ours, server_control) = (Some(ours), Arc::clone(&control));
    let pid = fork(|| {
        drop(ours.take());
        let pid = fork::this();
        run(Front { control, gate, acceptor, pid, notifier, caller, orphaned: false }, front)
    })
    .map_err(EngineError::system("a process"))?;
    let mut server = Server { local, counters, control: server_control, workers: Vec::new() };
    if let Some(front) = ours.map(Arc::new) {
        server.workers.push(watch(pid, Arc::clone(&front), Arc::clone(&server.control))?);
        // An error drops the server, which ends the front.
        await_reports(&front, reports)?;
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
             lest a lock that one of them holds stays locked in the new processes"
        );
    }
}

/// The front process, from its first moment to its last.
fn run(front: Front, work: impl FnOnce(Front)) -> Ended {
    let listener = front.acceptor.as_ref().map(AsFd::as_fd);
    let kept: Vec<BorrowedFd<'_>> = [Some(front.caller.as_fd()), listener].into_iter().flatten().collect();
    inherited::let_go_of_sockets(&kept);
    if signals::of_front(&front.notifier).is_err() {
        return Ended::Failed;
    }
    work(front);
    Ended::Done
}

/// Waits, on a thread, for the front process to end.
fn watch(
    front: Pid,
    link: Arc<OwnedFd>,
    control: Arc<Control>,
) -> Result<thread::JoinHandle<()>, EngineError> {
    let ended = Arc::clone(&control);
    let watcher = thread::Builder::new().name("front-watcher".to_owned()).spawn(move || {
        // It can only fail when the process is no child of this one, which it is.
        let status = retry_on_intr(|| waitpid(Some(front), WaitOptions::empty()));
        if !ended.draining() {
            let signal = status.ok().flatten().and_then(|(_, status)| status.terminating_signal());
            tracing::error!(
                signal,
                "the process that accepts connections has ended: nobody is served any more"
            );
        }
        drop(link);
    });
    watcher.map_err(|source| {
        control.drain(Duration::ZERO);
        let _ = waitpid(Some(front), WaitOptions::empty());
        EngineError::System { what: "a thread", source }
    })
}

fn await_reports(front: &OwnedFd, count: usize) -> Result<(), EngineError> {
    let gone = || EngineError::System {
        what: "its first process ended at once",
        source: io::ErrorKind::UnexpectedEof.into(),
    };
    let mut message = [0; REPORT_MAX];
    for _ in 0..count {
        let (length, _) =
            retry_on_intr(|| recv(front, &mut message, RecvFlags::empty())).map_err(|_| gone())?;
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

/// How a child tells the caller whether its service could be made.
pub(crate) struct Report<'f>(&'f OwnedFd);

impl Report<'_> {
    pub(crate) fn send<T>(&self, made: &io::Result<T>) {
        let mut message = match made {
            Ok(_) => b"+".to_vec(),
            Err(error) => format!("-{error}").into_bytes(),
        };
        message.truncate(REPORT_MAX);
        // A caller that is gone needs no report.
        let _ = send(self.0, &message, SendFlags::NOSIGNAL);
    }
}

impl Front {
    pub(crate) fn report(&self) -> Report<'_> {
        Report(&self.caller)
    }

    /// Whether connections are to be served.
    pub(crate) fn serving(&self) -> bool {
        !self.orphaned && !self.control.draining()
    }

    /// Waits for the notifier (a child's end, a drain), the caller's end, `also`, or so long.
    pub(crate) fn wait(&mut self, also: Option<BorrowedFd<'_>>, for_at_most: Option<Duration>) {
        let timeout = for_at_most.and_then(|span| Timespec::try_from(span).ok());
        let watched = [Some(self.caller.as_fd()), Some(self.notifier.as_fd()), also];
        let mut descriptors: Vec<PollFd<'_>> = watched
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        // An interrupted or failed wait is a short one: the caller of this looks again.
        let _ = poll(&mut descriptors, timeout.as_ref());
        // Nothing is ever sent this way: an event is the end.
        let gone = descriptors.first().is_some_and(|caller| !caller.revents().is_empty());
        self.orphaned |= gone;
        self.notifier.clear();
    }

    /// Sees the children to their end: those between requests at once, the others by the deadline. `last` may add more
    /// whenever some have ended.
    pub(crate) fn drain<T>(
        &mut self,
        household: &mut Household<T>,
        mut last: impl FnMut(&mut Self, &mut Household<T>),
    ) {
        household.end_idle();
        loop {
            household.reap();
            last(self, household);
            if household.is_empty() {
                return;
            }
            if self.orphaned || clock::now() >= self.control.stop_at() {
                household.kill();
                // Nothing holds up the end of a killed process for long.
                self.wait(None, Some(Duration::from_millis(10)));
            } else {
                self.wait(None, Some(until(self.control.stop_at())));
            }
        }
    }
}
