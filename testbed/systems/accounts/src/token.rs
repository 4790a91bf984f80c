//! Session tokens: 256 random bits. Only their digest is stored, so that a copy of the database gives no access.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Random bytes in a token.
const TOKEN_LEN: usize = 32;
/// Length of a token as text.
const TEXT_LEN: usize = 43;

/// A session's token. `Debug` hides it.
pub(crate) struct Token(String);

impl Token {
    /// A new random token.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text that the client sends.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// The digest that is stored instead of a token. `None` for text that cannot be a token.
pub(crate) fn digest(token: &[u8]) -> Option<[u8; 32]> {
    (token.len() == TEXT_LEN).then(|| *blake3::hash(token).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_are_long_and_hidden() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(URL_SAFE_NO_PAD.decode(one.as_str()).unwrap().len(), 32);
        assert!(digest(one.as_str().as_bytes()).is_some());
        assert_ne!(digest(one.as_str().as_bytes()), digest(other.as_str().as_bytes()));
        assert_eq!(format!("{one:?}"), "Token(hidden)");
    }

    #[test]
    fn other_text_is_not_a_token() {
        assert_eq!(digest(b""), None);
        assert_eq!(digest(&[b'a'; 44]), None);
    }
}
