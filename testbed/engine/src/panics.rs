//! Containment of panics: one in a service ends its connection, never the server.

use std::{
    any::Any,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::counters::Counters;

/// Runs a `step` of the service for the connection from `peer`. Returns `None` if it panicked, and logs and counts that.
pub(crate) fn contain<T>(peer: SocketAddr, counters: &Counters, step: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(value) => Some(value),
        Err(panic) => {
            counters.count_panic();
            let fault = message(&*panic);
            tracing::error!(%peer, fault, "a connection was closed by a fault of the service");
            None
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
