//! Content is identified by its BLAKE3 hash.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The BLAKE3 hash of a file's bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Content([u8; 32]);

/// The text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a BLAKE3 hash: 64 hexadecimal digits")]
pub struct InvalidContent;

impl Content {
    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        blake3::hash(bytes).into()
    }
}

impl From<blake3::Hash> for Content {
    fn from(hash: blake3::Hash) -> Self {
        Self(hash.into())
    }
}

impl TryFrom<&[u8]> for Content {
    type Error = InvalidContent;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidContent> {
        bytes.try_into().map(Self).map_err(|_| InvalidContent)
    }
}

impl FromStr for Content {
    type Err = InvalidContent;

    fn from_str(text: &str) -> Result<Self, InvalidContent> {
        blake3::Hash::from_hex(text).map(Self::from).map_err(|_| InvalidContent)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({self})")
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_empty_content_has_its_published_name() {
        let name = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Content::of(b"").to_string(), name);
        assert_eq!(name.parse(), Ok(Content::of(b"")));
        assert_eq!(name.to_uppercase().parse(), Ok(Content::of(b"")));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let digits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            prop_assert_eq!(text.parse::<Content>().is_ok(), digits);
        }

        #[test]
        fn what_is_written_is_read_again(bytes in any::<[u8; 32]>()) {
            let content = Content(bytes);
            prop_assert_eq!(content.to_string().parse(), Ok(content));
        }
    }
}
