//! The number of users that the limit on open files allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything but users: standard streams, logs, reports, the observer.
const RESERVED: u64 = 64;

/// Descriptors that each generator thread needs for itself.
const PER_THREAD: u64 = 2;

/// The process may not open enough files for the users asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{users} users need {needed} open files, but this process may have {limit}: run `ulimit -n {needed}` first \
     (as root if the hard limit is lower), or use at most {allowed} users"
)]
pub struct LimitError {
    /// Users asked for.
    pub users: u32,
    /// Open files that they need.
    pub needed: u64,
    /// The hard limit.
    pub limit: u64,
    /// Number of users that the limit allows.
    pub allowed: u32,
}

/// Raises the soft limit on open files to the hard limit. Returns how many users that allows with `threads` generator
/// threads.
#[must_use]
pub fn users_allowed(threads: usize) -> u32 {
    users_within(raise_soft_limit(), threads)
}

/// Checks that each of `users` can have a connection, and raises the soft limit if necessary.
///
/// # Errors
/// States the limit, the number needed, and the command that raises it.
pub fn ensure(users: u32, threads: usize) -> Result<(), LimitError> {
    let limit = raise_soft_limit();
    let allowed = users_within(limit, threads);
    if users <= allowed {
        return Ok(());
    }
    Err(LimitError { users, needed: u64::from(users) + overhead(threads), limit, allowed })
}

/// Raises the soft limit to the hard limit, if permitted. Returns the soft limit.
fn raise_soft_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn users_within(limit: u64, threads: usize) -> u32 {
    u32::try_from(limit.saturating_sub(overhead(threads))).unwrap_or(u32::MAX)
}

fn overhead(threads: usize) -> u64 {
    RESERVED + PER_THREAD * threads as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_it_states_is_the_limit_it_tests() {
        let allowed = users_allowed(2);
        assert_eq!(ensure(allowed, 2), Ok(()));
        if let Some(more) = allowed.checked_add(1) {
            let error = ensure(more, 2).unwrap_err();
            assert_eq!((error.allowed, error.needed), (allowed, error.limit + 1));
            assert!(error.to_string().contains(&format!("ulimit -n {}", error.needed)));
        }
    }

    #[test]
    fn users_within_a_limit() {
        assert_eq!(users_within(1024, 2), 1024 - 64 - 4);
        assert_eq!(users_within(10, 2), 0);
    }
}
