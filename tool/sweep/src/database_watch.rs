//! The database behind the server: asked, while the load runs, who waits for whose locks.
//!
//! One connection of its own, on a thread of its own, five questions a second. What goes wrong with it is told and never
//! ends a run.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use analysis::{counters::DatabaseLook, verdict::WatchedDatabase};
use observe::monotonic_us;
use store::{Dialect, LockWatch, ServerDatabase, Sessions, Trouble};

use crate::progress::{Event, Listener};

/// Time between questions.
const PERIOD: Duration = Duration::from_millis(200);
/// The same while there is no connection.
const AGAIN: Duration = Duration::from_secs(1);
/// How long the first answer is waited for, before the load begins without it.
const FIRST: Duration = Duration::from_secs(8);

/// Asks from its start until it is dropped.
#[derive(Debug)]
pub(crate) struct DatabaseWatch {
    server: ServerDatabase,
    seen: Arc<Mutex<Seen>>,
    /// The thread ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    looks: Vec<DatabaseLook>,
    trouble: Option<String>,
}

impl DatabaseWatch {
    /// Begins to ask, and waits for the first answer. Where none comes, the listener is told why.
    pub(crate) fn start(server: &ServerDatabase, listener: &mut dyn Listener) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let ((stop, stopped), (told, first)) = (mpsc::channel(), mpsc::channel());
        let (theirs, asked) = (Arc::clone(&seen), server.clone());
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
                "who waits for locks in the database {server} cannot all be told: {trouble}. The sweep goes on"
            )));
        }
        Self { server: server.clone(), seen, stop: Some(stop), thread }
    }

    /// What was told in a window of the monotonic clock, microseconds.
    pub(crate) fn within(&self, (start_us, end_us): (u64, u64)) -> Vec<DatabaseLook> {
        let inside = |look: &&DatabaseLook| (start_us..=end_us).contains(&look.at_us);
        lock(&self.seen).looks.iter().filter(inside).copied().collect()
    }

    /// Which database it is, and what went wrong.
    pub(crate) fn watched(&self) -> WatchedDatabase {
        WatchedDatabase {
            name: self.server.to_string(),
            processes: match self.server.dialect() {
                Dialect::Mysql => &["mariadbd", "mysqld"],
                Dialect::Postgres => &["postgres"],
            },
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

fn watch(server: &ServerDatabase, seen: &Mutex<Seen>, told: &Sender<()>, stop: &Receiver<()>) {
    let mut connection = None;
    loop {
        let at_us = monotonic_us();
        match ask(server, &mut connection) {
            Ok(sessions) => lock(seen).add(at_us, sessions),
            Err(trouble) => {
                connection = None;
                lock(seen).trouble = Some(trouble.to_string());
            }
        }
        // Nobody listens after the first.
        let _ = told.send(());
        let rest = if connection.is_some() { PERIOD } else { AGAIN };
        if stop.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn ask(server: &ServerDatabase, connection: &mut Option<LockWatch>) -> Result<Sessions, Trouble> {
    match connection {
        Some(open) => open.look(),
        None => connection.insert(LockWatch::open(server)?).look(),
    }
}

impl Seen {
    fn add(&mut self, at_us: u64, sessions: Sessions) {
        let Sessions { waiting, at_work, waited, unseen } = sessions;
        let waited_us = waited.map(|waited| u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.looks.push(DatabaseLook { at_us, waiting, at_work, waited_us });
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
        let Ok(store::Database::Server(server)) = url.parse() else { panic!("a server's") };
        let mut heard = Heard(Vec::new());
        let watch = DatabaseWatch::start(&server, &mut heard);
        assert!(heard.0[0].contains("127.0.0.1:1/rooms cannot all be told") && !heard.0[0].contains("hush"));
        assert!(watch.within((0, u64::MAX)).is_empty());
        let trouble = watch.watched().trouble.expect("a reason");
        assert!(trouble.contains("cannot be reached"), "{trouble}");
    }
}
