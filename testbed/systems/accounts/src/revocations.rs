//! What tells whoever remembers credentials that some are to be forgotten.
//!
//! Whenever something is changed that was told of an account, the database's revision rises, and the account's bucket is
//! marked with it. A file server asks for the buckets marked since it last asked and forgets what it remembers of
//! accounts in them. Buckets name nobody, and there are few enough of them to be kept for ever.

use serde::{Deserialize, Serialize};

/// How many buckets there are.
pub const BUCKETS: u16 = 4096;

/// What was revoked since a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// The revision now: to be asked with the next time.
    pub revision: u64,
    /// The buckets marked since. None: everything is to be forgotten, as the revision asked with never was.
    pub buckets: Option<Vec<u16>>,
}

/// The bucket of an account. The same for every version of this program.
pub fn bucket(name: &str) -> u16 {
    let hash = blake3::hash(name.as_bytes());
    let [low, high, ..] = *hash.as_bytes();
    u16::from_le_bytes([low, high]) % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_stay_as_they_are() {
        let hash = blake3::hash(b"ann").to_hex();
        let expected = u16::from_str_radix(&hash[2..4], 16).unwrap() % 16 * 256;
        let expected = expected + u16::from_str_radix(&hash[..2], 16).unwrap();
        assert_eq!(bucket("ann"), expected);
        let used: std::collections::BTreeSet<_> = (0..1000).map(|n| bucket(&format!("user-{n}"))).collect();
        assert!(used.len() > 800 && used.iter().all(|&bucket| bucket < BUCKETS));
    }
}
