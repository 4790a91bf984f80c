//! A namespace of the kernel that a thread enters for a while.

use std::{fs::File, os::fd::AsFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Trouble;

/// Does something in another namespace than its own, both given by their files. Programs that are started in it stay in it.
/// They end with the thread that started them, so that it is this thread which enters, and comes back.
pub(super) fn within<T>(
    kind: LinkNameSpaceType,
    [own, other]: [&str; 2],
    work: impl FnOnce() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let open = |path: &str| File::open(path).map_err(Trouble::io(format!("open {path}")));
    let (own, other) = (open(own)?, open(other)?);
    enter(kind, &other)?;
    let outcome = work();
    enter(kind, &own)?;
    outcome
}

fn enter(kind: LinkNameSpaceType, namespace: &File) -> Result<(), Trouble> {
    let entered = move_into_link_name_space(namespace.as_fd(), Some(kind));
    entered.map_err(|errno| Trouble::io("enter a namespace")(errno.into()))
}
