//! Explains connection errors to people.

use std::{error::Error, io, iter::successors};

use libp2p_swarm::DialError;

use crate::kademlia::admission::NotListed;

/// What to say about a peer that proves this peer's own key at an unknown address.
const SAME_KEY: &str = "it has the same key as this peer: its folder was copied (stop one of them, and remove \
                        .nstar/identity in its folder), or it is this peer itself by another address";

/// Explains why a peer could not be reached.
pub(super) fn explain(error: &DialError) -> String {
    if matches!(error, DialError::LocalPeerId { .. }) {
        return SAME_KEY.to_owned();
    }
    let DialError::Transport(tries) = error else { return error.to_string() };
    let Some((_, last)) = tries.last() else { return error.to_string() };
    if let Some(stranger) = chain(last).find_map(|error| error.downcast_ref::<NotListed>()) {
        return stranger.to_string();
    }
    match chain(last).find_map(of_the_network) {
        Some(system) => system.to_string(),
        None => {
            "what answers there is no peer of this group (of another secret, or of another program)".into()
        }
    }
}

/// The innermost cause of an error.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The system's own error, unless it comes from a peer that closed the connection.
fn of_the_network<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut};
    let error = error.downcast_ref::<io::Error>()?;
    let hung_up = matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset);
    let says = error.raw_os_error().is_some() && !hung_up || error.kind() == TimedOut;
    says.then_some(error)
}

/// An error and its causes. libp2p's causes inside an [`io::Error`] are not its sources.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |error| within(*error))
}

fn within<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(within) => Some(within),
        None => error.source(),
    }
}
