//! Tells the manager of services that started this process, if one did, how far it is: sd_notify(3).

use std::fmt::Display;

use sd_notify::{NotifyState, notify};

/// Clients are answered from now on.
pub(crate) fn ready(status: impl Display) {
    tell(&[NotifyState::Ready, NotifyState::Status(status.to_string().trim_end())]);
}

/// The configuration is read again; [`ready`] says that this is over.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("cannot tell the service manager that the server reloads: {error}"),
    }
}

/// Requests in flight are finished, and no others are taken.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = notify(state) {
        tracing::warn!("cannot tell the service manager ($NOTIFY_SOCKET): {error}");
    }
}
