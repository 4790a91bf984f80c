//! A stream to an agent that runs already, however it came about.

use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A stream that is open, to be used once.
#[derive(Clone)]
pub struct OpenStream {
    name: Arc<str>,
    ways: Arc<Mutex<Option<Ways>>>,
}

/// The two ways of a stream, and what is known of its end.
pub struct Ways {
    /// What the agent says.
    pub output: Box<dyn Read + Send>,
    /// What it is told. It is dropped when nothing more follows.
    pub input: Box<dyn Write + Send>,
    /// How the stream ended, once it has. It is asked after the output has.
    pub ended: Box<dyn Fn() -> Option<Ended> + Send + Sync>,
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The command that ran the agent did.
    Exited {
        /// Its exit code, if it has one.
        code: Option<i32>,
        /// Its last lines on stderr, in one.
        stderr: String,
    },
    /// The stream broke.
    Disconnected {
        /// Why.
        reason: String,
    },
}

impl OpenStream {
    /// A stream to the agent on a host of this name.
    #[must_use]
    pub fn new(host: &str, ways: Ways) -> Self {
        Self { name: host.into(), ways: Arc::new(Mutex::new(Some(ways))) }
    }

    /// The stream, the first time.
    pub(crate) fn take(&self) -> Option<Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// No two streams are the same.
impl PartialEq for OpenStream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ways, &other.ways)
    }
}

impl Eq for OpenStream {}

impl fmt::Display for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenStream").field(&self.name).finish()
    }
}
