//! One connection without a thread of its own: whoever asks waits for the answer.

use std::io;

use tokio::{runtime::Runtime, task::LocalSet};

use super::{new_runtime, session::Session, trouble::Trouble};
use crate::database::ServerDatabase;

pub(super) struct Blocking {
    session: Session,
    // After the session: its tasks run here.
    tasks: LocalSet,
    runtime: Runtime,
}

impl Blocking {
    /// Connects. The outer error is this machine's, the inner one the server's.
    pub(super) fn open(server: &ServerDatabase) -> io::Result<Result<Self, Trouble>> {
        let (runtime, tasks) = (new_runtime()?, LocalSet::new());
        let session = tasks.block_on(&runtime, Session::open(server));
        Ok(session.map(|session| Self { session, tasks, runtime }))
    }

    /// Does this with the session, to its end.
    pub(super) fn wait<T>(&mut self, what: impl AsyncFnOnce(&mut Session) -> T) -> T {
        self.tasks.block_on(&self.runtime, what(&mut self.session))
    }
}
