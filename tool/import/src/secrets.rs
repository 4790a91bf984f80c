//! Which names say that their values are secrets.

/// Parts of such names.
const PARTS: [&str; 20] = [
    "accesskey",
    "apikey",
    "authorization",
    "authtoken",
    "cookie",
    "credential",
    "csrf",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "session",
    "signature",
    "subscriptionkey",
    "token",
    "xauth",
    "xsrf",
    "authkey",
];

/// Such names.
const NAMES: [&str; 6] = ["auth", "otp", "pass", "pin", "pwd", "sig"];

/// Whether the name of a header, field or parameter says that its value is a secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    NAMES.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        for name in
            ["Authorization", "X-Api-Key", "api_key", "Set-Cookie", "userPassword", "pwd", "X-CSRF-Token"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["Accept", "author", "key", "Content-Type", "page", "passenger", "design"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
