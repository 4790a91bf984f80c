//! Tells what an import leaves out of a scenario.

use import::LeftOut;

use crate::{sentences::imports, terminal::plain};

/// What a scenario does not have, or has in another form, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn left_out(what: &LeftOut) -> String {
    plain(&imports::left_out(what))
}

/// What was imported, and the server that it goes to, if there is one.
#[must_use]
pub fn imported(requests: usize, server: Option<&str>) -> String {
    let kinds =
        if requests == 1 { "1 kind of request".to_owned() } else { format!("{requests} kinds of requests") };
    plain(&format!("{kinds} to {}", server.unwrap_or("a server that is not named")))
}
