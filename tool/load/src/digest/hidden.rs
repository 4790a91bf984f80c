//! What of a load is taken for a secret, and has no part in its digest.

use std::borrow::Cow;
use std::collections::BTreeSet;

use import::is_secret;
use percent_encoding::percent_decode;
use serde_json::Value as Json;

use super::filled;
use crate::scenario::definition::Request;
use crate::scenario::template::Template;

/// The longest name of a secret, bytes; what is longer is no name.
const NAME_BYTES_MAX: usize = 64;

/// Words that credentials follow, as in `Bearer ..`.
const SCHEMES: [&str; 3] = ["basic", "bearer", "digest"];

/// Whether a text holds credentials, or a word in it is the name of a secret, which then may be in it too: beside `=` or `:`,
/// in an element, in a part of a form.
pub(super) fn tells_secret(text: &[u8]) -> bool {
    let plain: Cow<'_, [u8]> = percent_decode(text).into();
    // Lines that are no text, as those of a picture in a form, hold words by chance.
    let mut lines = plain.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.any(is_told_in)
}

fn is_told_in(line: &str) -> bool {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
    let is_scheme = |word: &str| SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    words.any(is_name)
        || line.split_once(' ').is_some_and(|(first, _)| is_scheme(first))
        || (line.contains("://") && line.contains('@'))
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX && is_secret(text)
}

/// Whether a field of a form, `name=value`, tells of a secret. Its name may be of several words.
pub(super) fn is_secret_field(field: &[u8]) -> bool {
    let plain: Cow<'_, [u8]> = percent_decode(field).into();
    let name = plain.split(|byte| *byte == b'=').next().unwrap_or_default();
    tells_secret(field) || is_name(&String::from_utf8_lossy(name))
}

/// Takes out of JSON what the name of a secret stands before or beside, and texts that tell of one.
pub(super) fn hide(json: &mut Json) {
    match json {
        Json::Object(fields) if fields.values().any(names_secret) => *json = Json::Null,
        Json::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if is_secret(name) {
                    *value = Json::Null;
                } else {
                    hide(value);
                }
            }
        }
        Json::Array(items) if items.iter().any(names_secret) => *json = Json::Null,
        Json::Array(items) => items.iter_mut().for_each(hide),
        Json::String(text) if tells_secret(text.as_bytes()) => *json = Json::Null,
        _ => {}
    }
}

/// Whether a text is the name of a secret and no more, as in `{"name":"password","value":".."}`.
fn names_secret(json: &Json) -> bool {
    matches!(json, Json::String(text) if !text.contains(' ') && is_name(text))
}

/// The values that are drawn for credentials, for headers whose names are those of secrets, or into a text that tells of one.
pub(super) fn drawn_for_secrets(requests: &[Request]) -> BTreeSet<usize> {
    requests.iter().flat_map(secret_texts).flat_map(Template::draws).collect()
}

fn secret_texts(request: &Request) -> impl Iterator<Item = &Template> + '_ {
    let named = request.headers.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
    let telling = request.texts().filter(|text| tells_secret(&filled(text)));
    request.login().chain(named).chain(telling)
}
