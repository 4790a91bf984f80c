//! Asks the driver of a link what it does, by the call that every kernel has for this: `SIOCETHTOOL` (netdevice(7),
//! linux/ethtool.h).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// What a link may do for the processors.
#[derive(Debug, Clone, Copy)]
pub(super) enum Feature {
    /// TCP segmentation offload.
    Segmentation,
    /// Generic receive offload.
    Receive,
}

impl Feature {
    /// The command that asks for it: `ETHTOOL_GTSO`, `ETHTOOL_GGRO`.
    fn query(self) -> u32 {
        match self {
            Self::Segmentation => 0x1e,
            Self::Receive => 0x2b,
        }
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// A socket to ask through: it stands for the network namespace in which it was made.
pub(super) fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Whether a link has a feature, and has it turned on.
///
/// # Errors
/// If there is no such link, or its driver cannot be asked.
pub(super) fn is_on(socket: &OwnedFd, link: &str, feature: Feature) -> io::Result<bool> {
    Ok(call(socket, link, Value { command: feature.query(), data: 0 })? != 0)
}

/// Carries out a command that reads or writes one number, and returns the number.
fn call(socket: &OwnedFd, link: &str, mut value: Value) -> io::Result<u32> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let mut name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    // A zero ends the name.
    if link.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in name.iter_mut().zip(link.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
    // SAFETY: the request and the value that it points to live through the call, both are laid out as the kernel has them, the
    // commands of this module read and write no more than the value, and the kernel keeps no pointer to either.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(value.data) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that set a feature: `ETHTOOL_STSO`, `ETHTOOL_SGRO`.
    const TURN: [(Feature, u32); 2] = [(Feature::Segmentation, 0x1f), (Feature::Receive, 0x2c)];

    /// What is told of each feature of the loopback link of a network namespace, turned on, off, and on again; `None` where no
    /// namespace is to be had. The thread ends with the namespace.
    fn told_in_a_namespace() -> Option<io::Result<Vec<[bool; 3]>>> {
        let work = || {
            // SAFETY: it changes no more than the network of this thread, which nobody else uses.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return None;
            }
            let told = |socket: &OwnedFd, (feature, command)| -> io::Result<[bool; 3]> {
                let after = |data| {
                    call(socket, "lo", Value { command, data })?;
                    is_on(socket, "lo", feature)
                };
                Ok([after(1)?, after(0)?, after(1)?])
            };
            Some(socket().and_then(|socket| TURN.into_iter().map(|of| told(&socket, of)).collect()))
        };
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn what_is_turned_off_is_told() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED what_is_turned_off_is_told: only root has a network namespace to change");
            return;
        }
        match told_in_a_namespace() {
            Some(told) => assert_eq!(told.unwrap(), [[true, false, true]; 2]),
            None => eprintln!("SKIPPED what_is_turned_off_is_told: no network namespace is to be had here"),
        }
    }

    #[test]
    fn a_link_that_does_not_exist_is_an_error() {
        let socket = socket().unwrap();
        for link in ["", "nstar-is-none", "a-name-that-no-link-can-have"] {
            assert!(is_on(&socket, link, Feature::Receive).is_err(), "{link}");
        }
    }
}
