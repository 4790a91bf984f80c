//! The database behind the server: asked, while the load runs, which sessions wait for locks.
//!
//! Its own command-line client asks, over a pipe: whoever has a database has one, and it knows every way to log in and
//! to encrypt. It asks five times a second, on a thread of its own: the database may be slow to answer, and the sampler
//! must not wait. Trouble with it is reported and never ends a run.

mod client;
mod locks;
mod password;
mod url;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use analysis::{counters::DatabaseSample, run::DatabaseTrouble, verdict::WatchedDatabase};
use observe::monotonic_us;

pub use self::{
    locks::{LockCounts, LockProbe},
    password::{PasswordFileError, read_password},
    url::{DatabaseUrl, InvalidDatabaseUrl},
};
use crate::progress::{Event, Listener};

/// Time between questions.
const PERIOD: Duration = Duration::from_millis(200);
/// Time before the next attempt to connect.
const RETRY: Duration = Duration::from_secs(1);
/// How long the load waits for the first answer before it begins.
const FIRST: Duration = Duration::from_secs(8);

/// Asks until it is dropped.
#[derive(Debug)]
pub(crate) struct DatabaseWatch {
    url: DatabaseUrl,
    seen: Arc<Mutex<Seen>>,
    /// The thread ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    samples: Vec<DatabaseSample>,
    trouble: Option<DatabaseTrouble>,
}

impl DatabaseWatch {
    /// Begins to ask, and waits for the first answer. Where none comes, the listener is told why.
    pub(crate) fn start(url: &DatabaseUrl, listener: &mut dyn Listener) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let ((stop, stopped), (told, first)) = (mpsc::channel(), mpsc::channel());
        let (theirs, asked) = (Arc::clone(&seen), url.clone());
        let builder = thread::Builder::new().name("nstar-database".into());
        let thread = builder.spawn(move || watch(&asked, &theirs, &told, &stopped));
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(error) => {
                lock(&seen).trouble = Some(DatabaseTrouble::NoThread { os_error: error.raw_os_error() });
                None
            }
        };
        // An error means that the thread is gone, or late: the load need not wait for it.
        let _ = first.recv_timeout(FIRST);
        if let Some(reason) = lock(&seen).trouble.clone() {
            listener.on(&Event::DatabaseUnwatched { database: url.to_string(), reason });
        }
        Self { url: url.clone(), seen, stop: Some(stop), thread }
    }

    /// Samples taken within a window of the monotonic clock, microseconds.
    pub(crate) fn within(&self, (start_us, end_us): (u64, u64)) -> Vec<DatabaseSample> {
        let inside = |sample: &&DatabaseSample| (start_us..=end_us).contains(&sample.at_us);
        lock(&self.seen).samples.iter().filter(inside).copied().collect()
    }

    /// The database, and what went wrong.
    pub(crate) fn watched(&self) -> WatchedDatabase {
        WatchedDatabase {
            name: self.url.to_string(),
            server: self.url.server(),
            trouble: lock(&self.seen).trouble.clone(),
        }
    }
}

impl Drop for DatabaseWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It ends without a result; a panic in it was reported where it happened.
            let _ = thread.join();
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(url: &DatabaseUrl, seen: &Mutex<Seen>, told: &Sender<()>, stop: &Receiver<()>) {
    let mut connection = None;
    loop {
        let at_us = monotonic_us();
        match ask(url, &mut connection) {
            Ok(counts) => lock(seen).add(at_us, counts),
            Err(trouble) => {
                connection = None;
                lock(seen).trouble = Some(trouble);
            }
        }
        // Nobody listens after the first.
        let _ = told.send(());
        let rest = if connection.is_some() { PERIOD } else { RETRY };
        if stop.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn ask(url: &DatabaseUrl, connection: &mut Option<LockProbe>) -> Result<LockCounts, DatabaseTrouble> {
    match connection {
        Some(open) => open.ask(),
        None => connection.insert(LockProbe::open(url)?).ask(),
    }
}

impl Seen {
    fn add(&mut self, at_us: u64, counts: LockCounts) {
        let LockCounts { waiting, at_work, waited, hidden } = counts;
        let waited_us = waited.map(|waited| u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.samples.push(DatabaseSample { at_us, waiting, at_work, waited_us });
        if let Some(what) = hidden {
            self.trouble = Some(DatabaseTrouble::Hidden { what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Heard(Vec<Event>);

    impl Listener for Heard {
        fn on(&mut self, event: &Event) {
            self.0.push(event.clone());
        }
    }

    #[test]
    fn a_database_that_is_not_there_is_told_and_ends_nothing() {
        let url = "postgres://ann:hush@127.0.0.1:1/rooms";
        let url: DatabaseUrl = url.parse().expect("a URL");
        let mut heard = Heard(Vec::new());
        let watch = DatabaseWatch::start(&url, &mut heard);
        let [Event::DatabaseUnwatched { database, reason }] = &heard.0[..] else { panic!("{:?}", heard.0) };
        assert_eq!(database, "postgres://ann@127.0.0.1:1/rooms");
        assert!(watch.within((0, u64::MAX)).is_empty());
        assert_eq!(watch.watched().trouble.as_ref(), Some(reason));
        match reason {
            DatabaseTrouble::Ended { stderr, .. } => {
                assert!(stderr.contains("refused") && !stderr.contains("hush"), "{stderr}");
            }
            reason => assert!(matches!(reason, DatabaseTrouble::NotInstalled { .. }), "{reason:?}"),
        }
    }
}
