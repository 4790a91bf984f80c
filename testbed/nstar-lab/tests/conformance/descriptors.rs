//! How many descriptors this process and the ones it starts may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process needs beside its connections.
const SPARE: u64 = 500;

/// Lets this process and its children have a descriptor for so many connections, or says why a test cannot be.
pub(crate) fn are_enough_or_skip(test: &str, connections: usize) -> bool {
    let needed = connections as u64 + SPARE;
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    // Lifting the hard limit takes root; without it, as many as there are.
    let lifted = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }));
    let enough =
        lifted.is_ok() && getrlimit(Resource::Nofile).current.is_none_or(|current| current >= needed);
    if !enough {
        eprintln!("SKIPPED {test}: it needs {needed} open files, see `ulimit -Hn`");
    }
    enough
}
