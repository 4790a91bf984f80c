//! Tells caches of credentials which ones to forget.
//!
//! Whenever an account changes in a way that caches must know, the revision of the database increases and the account's
//! bucket is marked with it. A file server asks for the buckets marked since its last request and forgets the accounts in
//! them. Buckets identify nobody, and there are few enough of them to be kept forever.

use serde::{Deserialize, Serialize};

/// Number of buckets.
pub const BUCKETS: u16 = 4096;

/// What was revoked since a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// The current revision, to pass to the next request.
    pub revision: u64,
    /// The buckets marked since. `None` if this database never had the given revision, so that everything must be forgotten.
    pub buckets: Option<Vec<u16>>,
}

/// The bucket of an account. It is the same in every version of this program.
pub fn bucket(name: &str) -> u16 {
    let hash = blake3::hash(name.as_bytes());
    let [low, high, ..] = *hash.as_bytes();
    u16::from_le_bytes([low, high]) % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_never_change() {
        let hash = blake3::hash(b"ann").to_hex();
        let expected = u16::from_str_radix(&hash[2..4], 16).unwrap() % 16 * 256;
        let expected = expected + u16::from_str_radix(&hash[..2], 16).unwrap();
        assert_eq!(bucket("ann"), expected);
        let used: std::collections::BTreeSet<_> = (0..1000).map(|n| bucket(&format!("user-{n}"))).collect();
        assert!(used.len() > 800 && used.iter().all(|&bucket| bucket < BUCKETS));
    }
}
