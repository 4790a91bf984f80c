//! Asks the database five times a second, on a thread of its own: it may be slow to answer, and the sampler must not wait.
//! Trouble with it is reported and never ends a run.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use analysis::{counters::DatabaseSample, verdict::WatchedDatabase};
use observe::monotonic_us;

use super::{ClientError, DatabaseUrl, LockCounts, LockProbe};
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
    looks: Vec<DatabaseSample>,
    trouble: Option<String>,
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
                lock(&seen).trouble = Some(format!("no thread could be started: {error}"));
                None
            }
        };
        // An error means that the thread is gone, or late: the load need not wait for it.
        let _ = first.recv_timeout(FIRST);
        if let Some(trouble) = &lock(&seen).trouble {
            listener.on(&Event::Note(format!(
                "lock waits in the database {url} cannot be seen in full: {trouble}. The sweep goes on"
            )));
        }
        Self { url: url.clone(), seen, stop: Some(stop), thread }
    }

    /// What was told in a window of the monotonic clock, microseconds.
    pub(crate) fn within(&self, (start_us, end_us): (u64, u64)) -> Vec<DatabaseSample> {
        let inside = |look: &&DatabaseSample| (start_us..=end_us).contains(&look.at_us);
        lock(&self.seen).looks.iter().filter(inside).copied().collect()
    }

    /// Which database it is, and what went wrong.
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
                lock(seen).trouble = Some(trouble.to_string());
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

fn ask(url: &DatabaseUrl, connection: &mut Option<LockProbe>) -> Result<LockCounts, ClientError> {
    match connection {
        Some(open) => open.ask(),
        None => connection.insert(LockProbe::open(url)?).ask(),
    }
}

impl Seen {
    fn add(&mut self, at_us: u64, counts: LockCounts) {
        let LockCounts { waiting, at_work, waited, unseen } = counts;
        let waited_us = waited.map(|waited| u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.looks.push(DatabaseSample { at_us, waiting, at_work, waited_us });
        if let Some(unseen) = unseen {
            self.trouble = Some(unseen.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Heard(Vec<String>);

    impl Listener for Heard {
        fn on(&mut self, event: &Event) {
            self.0.push(event.to_string());
        }
    }

    #[test]
    fn a_database_that_is_not_there_is_told_and_ends_nothing() {
        let url = "postgres://ann:hush@127.0.0.1:1/rooms";
        let url: DatabaseUrl = url.parse().expect("a URL");
        let mut heard = Heard(Vec::new());
        let watch = DatabaseWatch::start(&url, &mut heard);
        assert!(
            heard.0[0].contains("127.0.0.1:1/rooms cannot be seen in full") && !heard.0[0].contains("hush")
        );
        assert!(watch.within((0, u64::MAX)).is_empty());
        let trouble = watch.watched().trouble.expect("a reason");
        assert!(trouble.contains("refused") || trouble.contains("not installed"), "{trouble}");
    }
}
