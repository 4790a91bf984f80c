//! How a store is opened.

use std::{fmt, sync::Arc, time::Duration};

/// How a store is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// How many statements may wait before the next is refused as [`StoreError::Busy`](crate::StoreError::Busy). Default
    /// 1024. With more, the last of them would wait longer than its client does.
    pub queue: usize,
    /// How many connections to a database server are opened at most, as they are needed. Default 16. More let the server
    /// commit more together, and use more of its memory and of its connection limit.
    pub connections: usize,
    /// Called after every commit.
    pub commits: Commits,
}

impl Default for Options {
    fn default() -> Self {
        Self { queue: 1024, connections: 16, commits: Commits::default() }
    }
}

/// A function called after every commit, with the number of statements that it made durable and how long it took.
#[derive(Clone)]
pub struct Commits(Arc<dyn Fn(usize, Duration) + Send + Sync>);

impl Commits {
    /// Calls `observer` after each commit, on the thread that made it.
    pub fn new(observer: impl Fn(usize, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }

    pub(crate) fn record(&self, statements: usize, took: Duration) {
        (self.0)(statements, took);
    }
}

impl Default for Commits {
    fn default() -> Self {
        Self::new(|_, _| ())
    }
}

impl fmt::Debug for Commits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commits")
    }
}
