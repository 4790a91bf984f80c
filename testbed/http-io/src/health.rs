//! What `GET /healthz` says: that the server runs, and what its process has given up.

use std::sync::OnceLock;

/// What is said of this process and those forked from it.
static TEXT: OnceLock<String> = OnceLock::new();

/// Adds a line about this process to what `/healthz` says. Only the first one counts.
pub fn describe_process(process: &str) {
    let _ = TEXT.set(format!("ok\nprocess: {process}\n"));
}

/// What `/healthz` says of a server that runs: `ok`, and a line about its process if there is one.
pub fn text() -> &'static str {
    TEXT.get().map_or("ok\n", String::as_str)
}
