//! The messages between peers. They come from strangers, so lengths are limited before anything is parsed, and names and
//! hashes are validated while parsing.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use share::entry::{Entry, Query, SearchResult};

use crate::key::KeySet;

/// Most files in one request.
pub(crate) const FILES_MAX: usize = 1000;
/// Most files in one response.
pub(crate) const FOUND_MAX: usize = 1000;
/// Longest request, bytes: [`FILES_MAX`] files with the longest names, however they are encoded.
pub(crate) const REQUEST_LEN_MAX: u64 = 2 * 1024 * 1024;
/// Longest response, bytes: [`FOUND_MAX`] files, and as many peers as one key can have.
pub(crate) const RESPONSE_LEN_MAX: u64 = 4 * 1024 * 1024;

/// A request to another peer. A publisher only speaks for itself, and the connection proves who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Store these files of mine, which can be fetched at this address.
    Keep {
        lease: LeaseTerms,
        files: Vec<Placed>,
        /// Whether to forget everything stored for me first, because I do not know what that is.
        anew: bool,
        /// Whether this completes what you are to store for me.
        all: bool,
    },
    /// I am alive.
    Renew { lease: LeaseTerms },
    /// I no longer have these files.
    Forget { files: Vec<Entry> },
    /// I am leaving.
    Leave,
    /// Which files match this query?
    Find { query: Query },
}

/// Where a publisher's files can be fetched, and how long to believe that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseTerms {
    pub(crate) at: SocketAddr,
    pub(crate) life_s: u32,
}

/// A file, and under which of its keys to store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) file: Entry,
    pub(crate) keys: KeySet,
}

/// A response to another peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Response {
    /// How many of your files are stored here now, and under how many keys there was no room.
    Kept {
        files: usize,
        refused: usize,
        /// Differs whenever what is stored does. Peers of earlier versions do not say it.
        #[serde(default)]
        revision: u64,
    },
    /// These files are known.
    Found { found: Vec<SearchResult> },
    /// The request is refused.
    Refused { reason: String },
}

/// Why a publisher may not announce an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressRefused {
    #[error("{0} is no address that others can connect to")]
    Nowhere(SocketAddr),
    #[error(
        "its files are said to be at {at}, but it comes from {seen}: a peer tells of files at an address of its own only"
    )]
    Elsewhere { at: SocketAddr, seen: IpAddr },
}

/// Checks that a publisher may announce an address: it has to be on the machine that it connects from. Otherwise it could
/// direct everyone to somebody else's.
pub(crate) fn check_address(at: SocketAddr, seen: IpAddr) -> Result<(), AddressRefused> {
    let (ip, seen) = (at.ip().to_canonical(), seen.to_canonical());
    match () {
        () if !is_somewhere(at) => Err(AddressRefused::Nowhere(at)),
        () if ip == seen || ip.is_loopback() && seen.is_loopback() => Ok(()),
        () => Err(AddressRefused::Elsewhere { at, seen }),
    }
}

/// Whether anything can be fetched at an address at all.
pub(crate) fn is_somewhere(at: SocketAddr) -> bool {
    let ip = at.ip().to_canonical();
    !ip.is_unspecified() && !ip.is_multicast() && at.port() != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{all_keys, entry};

    #[test]
    fn what_is_written_is_read_again() {
        let file = entry("a \"b\" \\ ü.txt", "x");
        let lease = LeaseTerms { at: "127.0.0.1:1".parse().unwrap(), life_s: 120 };
        let placed = Placed { keys: all_keys(&file), file: file.clone() };
        for request in [
            Request::Keep { lease, files: vec![placed], anew: true, all: true },
            Request::Renew { lease },
            Request::Forget { files: vec![file.clone()] },
            Request::Leave,
            Request::Find { query: Query::Name(file.name.clone()) },
            Request::Find { query: Query::Content(file.content) },
            Request::Find { query: Query::words("a b").unwrap() },
        ] {
            let written = serde_json::to_vec(&request).unwrap();
            assert_eq!(serde_json::from_slice::<Request>(&written).unwrap(), request);
        }
    }

    #[test]
    fn the_largest_request_has_room() {
        let file = entry(&"\"".repeat(255), "x");
        let placed = Placed { file: Entry { size: u64::MAX, ..file }, keys: KeySet::default().with(31) };
        let lease = LeaseTerms {
            at: "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535".parse().unwrap(),
            life_s: u32::MAX,
        };
        let request = Request::Keep { lease, files: vec![placed; FILES_MAX], anew: false, all: false };
        assert!(serde_json::to_vec(&request).unwrap().len() as u64 <= REQUEST_LEN_MAX);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused_with_the_message() {
        let good = serde_json::to_string(&Request::Forget { files: vec![entry("a", "x")] }).unwrap();
        assert!(serde_json::from_str::<Request>(&good).is_ok());
        for name in ["../a", "/a", ".a", "a\\u0000", ""] {
            let bad = good.replace("\"a\"", &format!("\"{name}\""));
            assert!(serde_json::from_str::<Request>(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_are_had_where_the_peer_is() {
        for (at, seen, may) in [
            ("127.0.0.1:80", "127.0.0.1", true),
            ("127.0.0.2:80", "127.0.0.1", true),
            ("[::1]:80", "127.0.0.1", true),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1", true),
            ("192.0.2.1:80", "192.0.2.1", true),
            ("192.0.2.2:80", "192.0.2.1", false),
            ("127.0.0.1:80", "192.0.2.1", false),
            ("0.0.0.0:80", "127.0.0.1", false),
            ("192.0.2.1:0", "192.0.2.1", false),
            ("224.0.0.1:80", "224.0.0.1", false),
        ] {
            assert_eq!(check_address(at.parse().unwrap(), seen.parse().unwrap()).is_ok(), may, "{at} {seen}");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_read_or_refused(body in "\\PC{0,60}|[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = serde_json::from_str::<Request>(&body);
            let _ = serde_json::from_str::<Response>(&body);
        }
    }
}
