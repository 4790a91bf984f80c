//! Which names say that their values are secrets.

use serde_json::Value as Json;

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

/// The texts, but empty ones, and the numbers in a JSON body whose names say that they are secrets, or that lie in lists or
/// objects of such a name: each with the innermost such name.
pub(crate) fn secrets_of(body: &Json) -> Vec<(&str, &Json)> {
    let mut found = Vec::new();
    find(body, None, &mut found);
    found
}

fn find<'a>(json: &'a Json, holder: Option<&'a str>, found: &mut Vec<(&'a str, &'a Json)>) {
    match (json, holder) {
        (Json::Object(fields), _) => fields.iter().for_each(|(name, value)| {
            find(value, if is_secret(name) { Some(name.as_str()) } else { holder }, found);
        }),
        (Json::Array(items), _) => items.iter().for_each(|item| find(item, holder, found)),
        (Json::String(text), _) if text.is_empty() => {}
        (Json::String(_) | Json::Number(_), Some(name)) => found.push((name, json)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_lies_below_the_name_of_a_secret_is_one() {
        let body = json!({
            "a": "x", "pin": 7, "session": {"id": "s", "open": true, "of": [{"token": "t", "at": 1}]},
            "tokens": ["u", ["", "v"], null],
        });
        let mut found = secrets_of(&body);
        found.sort_by_key(|(name, value)| (*name, value.to_string()));
        let (seven, one) = (json!(7), json!(1));
        let (s, t, u, v) = (json!("s"), json!("t"), json!("u"), json!("v"));
        let expected = [
            ("pin", &seven),
            ("session", &s),
            ("session", &one),
            ("token", &t),
            ("tokens", &u),
            ("tokens", &v),
        ];
        assert_eq!(found, expected);
        assert!(secrets_of(&json!(["x", 1])).is_empty());
    }

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
