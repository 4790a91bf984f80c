//! The descriptor limit of this process and its children.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a process needs besides its connections.
const SPARE: u64 = 500;

/// Raises the limit for this many connections, and returns whether that succeeded. If not, prints that the test is skipped.
pub(crate) fn are_enough_or_skip(test: &str, connections: usize) -> bool {
    let needed = connections as u64 + SPARE;
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    // Raising the hard limit takes root; without it, the limit stays.
    let lifted = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }));
    let enough =
        lifted.is_ok() && getrlimit(Resource::Nofile).current.is_none_or(|current| current >= needed);
    if !enough {
        eprintln!("SKIPPED {test}: it needs {needed} open files, see `ulimit -Hn`");
    }
    enough
}
