//! Which names and passwords are allowed, and the tokens of sessions.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// Maximum length of a name, bytes.
pub const NAME_LEN_MAX: usize = 64;
/// Minimum length of a password, bytes (that of NIST SP 800-63B section 5.1.1.1).
pub const PASSWORD_LEN_MIN: usize = 8;
/// Maximum length of a password, bytes.
pub const PASSWORD_LEN_MAX: usize = 256;

/// The name of an account: 1 to 64 ASCII letters, digits and `. _ - @ +`. Case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let reason = match text.len() {
            0 => Some("must not be empty"),
            1..=NAME_LEN_MAX => None,
            _ => Some("must not be longer than 64 bytes"),
        };
        let reason = reason.or_else(|| {
            let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@+".contains(&b));
            (!plain).then_some("may contain only ASCII letters, digits and . _ - @ +")
        });
        reason.map_or_else(|| Ok(Self(text.to_owned())), |reason| Err(Invalid { field: "name", reason }))
    }

    /// Checks a name for a new account. It must not start with a dot, as no user's folder can have such a name (`.`, `..`,
    /// hidden files).
    pub fn for_new_account(text: &str) -> Result<Self, Invalid> {
        if text.starts_with('.') {
            return Err(Invalid { field: "name", reason: "must not start with a dot" });
        }
        Self::new(text)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A password, wiped from memory when dropped. There is no `Display`, and `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Checks a new password: 8 to 256 bytes without control characters, which Basic authentication cannot send (RFC 7617
    /// section 2).
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let reason = match text.len() {
            0..PASSWORD_LEN_MIN => Some("must be at least 8 bytes long"),
            PASSWORD_LEN_MIN..=PASSWORD_LEN_MAX => None,
            _ => Some("must not be longer than 256 bytes"),
        };
        let reason = reason
            .or_else(|| text.chars().any(char::is_control).then_some("must not contain control characters"));
        reason.map_or_else(
            || Ok(Self(text.to_owned().into())),
            |reason| Err(Invalid { field: "password", reason }),
        )
    }

    /// The bytes to hash.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Why a name or a password is not allowed. Never contains the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct Invalid {
    /// Which field: `name` or `password`.
    pub field: &'static str,
    /// What it must be.
    pub reason: &'static str,
}

/// Random bytes in a token.
const TOKEN_LEN: usize = 32;
/// Length of a token as text.
const TEXT_LEN: usize = 43;

/// A session's token, wiped from memory when dropped. `Debug` hides it.
pub(crate) struct Token(Zeroizing<String>);

impl Token {
    /// A new random token.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; TOKEN_LEN]);
        getrandom::fill(&mut bytes[..])?;
        Ok(Self(URL_SAFE_NO_PAD.encode(&bytes[..]).into()))
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
pub(crate) fn token_digest(token: &[u8]) -> Option<[u8; 32]> {
    (token.len() == TEXT_LEN).then(|| *blake3::hash(token).as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_of_names() {
        assert!(Name::new("a").is_ok());
        assert!(Name::new(&"a".repeat(64)).is_ok());
        assert_eq!(
            Name::new(&"a".repeat(65)).unwrap_err().to_string(),
            "name must not be longer than 64 bytes"
        );
        assert_eq!(Name::new("").unwrap_err().to_string(), "name must not be empty");
        for bad in ["a:b", "a b", "a/b", "a\0", "é", "a\n"] {
            assert_eq!(Name::new(bad).unwrap_err().field, "name", "{bad:?}");
        }
    }

    #[test]
    fn a_new_name_must_not_start_with_a_dot() {
        for bad in [".", "..", ".ann"] {
            assert_eq!(Name::for_new_account(bad).unwrap_err().field, "name", "{bad:?}");
        }
        assert!(Name::for_new_account("ann.b.").is_ok());
    }

    #[test]
    fn limits_of_passwords() {
        assert!(Password::new("12345678").is_ok());
        assert!(Password::new("pass: wörd").is_ok());
        assert!(Password::new(&"x".repeat(256)).is_ok());
        for bad in ["", "1234567", &"x".repeat(257), "1234567\u{7}", "12345678\n"] {
            assert_eq!(Password::new(bad).unwrap_err().field, "password", "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let shown = format!("{:?}", Password::new("correct horse").unwrap());
        assert_eq!(shown, "Password(hidden)");
    }

    proptest! {
        #[test]
        fn a_name_that_passes_needs_no_escaping_anywhere(text in ".{0,80}") {
            if let Ok(name) = Name::new(&text) {
                prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_graphic() && !b":\"<>&%/\\".contains(&b)));
            }
        }
    }

    #[test]
    fn tokens_differ_are_long_and_hidden() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(URL_SAFE_NO_PAD.decode(one.as_str()).unwrap().len(), 32);
        assert!(token_digest(one.as_str().as_bytes()).is_some());
        assert_ne!(token_digest(one.as_str().as_bytes()), token_digest(other.as_str().as_bytes()));
        assert_eq!(format!("{one:?}"), "Token(hidden)");
    }

    #[test]
    fn other_text_is_not_a_token() {
        assert_eq!(token_digest(b""), None);
        assert_eq!(token_digest(&[b'a'; 44]), None);
    }
}
