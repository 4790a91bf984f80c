//! What peers tell and ask each other about who has what. All of it comes from strangers: lengths are bounded before
//! anything is read, and names and hashes are checked while it is.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use share::entry::{Entry, Query, SearchResult};

use crate::key::KeySet;

/// Most files in one request.
pub(crate) const FILES_MAX: usize = 1000;
/// Most files in one answer.
pub(crate) const FOUND_MAX: usize = 1000;
/// Longest request, bytes: so many files with the longest names, however they are written.
pub(crate) const REQUEST_LEN_MAX: u64 = 2 * 1024 * 1024;
/// Longest answer, bytes: so many files, and as many peers as one key has place for.
pub(crate) const RESPONSE_LEN_MAX: u64 = 4 * 1024 * 1024;

/// What one peer asks of another. What it tells is of itself: who it is, the connection has proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Keep these files of mine, which can be had at an address.
    Keep {
        lease: Terms,
        files: Vec<Placed>,
        /// Whether all that was kept of me before is to be forgotten first: I do not know what it is.
        anew: bool,
        /// Whether that is all that the other is to keep.
        all: bool,
    },
    /// I live.
    Renew { lease: Terms },
    /// I no longer have these.
    Forget { files: Vec<Entry> },
    /// I go.
    Leave,
    /// Who has this?
    Find { query: Query },
}

/// Where a peer's files can be had, and for how long to believe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) at: SocketAddr,
    pub(crate) life_s: u32,
}

/// A file, and under which of its keys to keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) file: Entry,
    pub(crate) keys: KeySet,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Response {
    /// So many files of yours are kept here now; under so many keys there was no room.
    Kept { files: usize, refused: usize },
    /// These are known.
    Found { found: Vec<SearchResult> },
    /// That is not done.
    Refused { reason: String },
}

/// Why a peer may not say that its files are at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misplaced {
    #[error("{0} is no address that others can connect to")]
    Nowhere(SocketAddr),
    #[error(
        "its files are said to be at {at}, but it comes from {seen}: a peer tells of files at an address of its own only"
    )]
    Elsewhere { at: SocketAddr, seen: IpAddr },
}

/// Checks that a peer seen at an address may say that its files are at another: on the same machine, or everybody could
/// be sent to a stranger's.
pub(crate) fn check_address(at: SocketAddr, seen: IpAddr) -> Result<(), Misplaced> {
    let (ip, seen) = (at.ip().to_canonical(), seen.to_canonical());
    match () {
        () if !is_somewhere(at) => Err(Misplaced::Nowhere(at)),
        () if ip == seen || ip.is_loopback() && seen.is_loopback() => Ok(()),
        () => Err(Misplaced::Elsewhere { at, seen }),
    }
}

/// Whether anything can be had at an address at all.
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
        let lease = Terms { at: "127.0.0.1:1".parse().unwrap(), life_s: 120 };
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
        let lease = Terms {
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
