//! Single fields of heads, and what a request target holds.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use files::{UploadHeaders, session_token};
use http_io::{Credentials, Query, conditional, decode_path, range, without_user};
use wire::{
    range::RangeSelection,
    syntax::{decimal, trim},
};

/// The length of a representation where the input names none, bytes.
const USUAL_LENGTH: u64 = 10_000;

/// The tag of a representation.
const ETAG: &[u8] = b"\"a\"";

/// Integers of structured fields are smaller (RFC 9651 section 3.3.1).
const INTEGERS_END: u64 = 1_000_000_000_000_000;

pub(crate) fn range(bytes: &[u8]) {
    let (length, value) = numbered(bytes).unwrap_or((USUAL_LENGTH, bytes));
    let RangeSelection::Part(part) = range::parse(value, length) else { return };
    let is_within = part.offset.checked_add(part.length).is_some_and(|end| end <= length);
    assert!(part.length >= 1 && is_within, "{part:?} of {length}");
    let (first, last) = (part.offset, part.offset + (part.length - 1));
    let asked = format!("bytes={first}-{last}");
    assert_eq!(range::parse(asked.as_bytes(), length), RangeSelection::Part(part));
    let mut told = Vec::new();
    part.content_range(&mut told, length);
    assert_eq!(told, format!("bytes {first}-{last}/{length}").into_bytes());
}

/// A number in the first line, and what follows it.
fn numbered(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some((decimal(&bytes[..end])?, &bytes[end + 1..]))
}

pub(crate) fn conditions(bytes: &[u8]) {
    let (strong, weak) = (conditional::match_names(bytes, ETAG), conditional::none_match_names(bytes, ETAG));
    assert!(weak || !strong, "a tag that is named strongly is named weakly too");
    if conditional::range_holds(bytes, ETAG, b"") {
        assert!(strong, "If-Range holds for another tag");
    }
    if trim(bytes) != b"*" {
        let longer = [&b"\"b\", "[..], bytes].concat();
        assert_eq!(conditional::match_names(&longer, ETAG), strong, "behind another tag");
        assert_eq!(conditional::none_match_names(&longer, ETAG), weak, "behind another tag");
    }
}

pub(crate) fn credentials(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let shown = without_user(text);
        assert_eq!(without_user(&shown), shown, "nothing is left to hide");
    }
    let Some(credentials) = Credentials::parse(bytes) else { return };
    let written = match &credentials {
        Credentials::Bearer(token) => [&b"Bearer "[..], *token].concat(),
        Credentials::Basic(basic) => {
            assert!(!basic.name().contains(&b':'), "a name ends at the first colon");
            let both = [basic.name(), b":", basic.password()].concat();
            format!("Basic {}", STANDARD.encode(both)).into_bytes()
        }
    };
    assert!(Credentials::parse(&written).as_ref() == Some(&credentials), "written again");
}

pub(crate) fn cookies(bytes: &[u8]) {
    let fields = || bytes.split(|&byte| byte == b'\n');
    let of_the_same_name = [&b"nstar-session=x"[..], b"__Host-nstar-session=x"];
    for (encrypted, second) in [false, true].into_iter().zip(of_the_same_name) {
        let Some(token) = session_token(fields(), encrypted) else { continue };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        assert!(!token.is_empty() && token.iter().all(plain), "{}", token.escape_ascii());
        let with_second = session_token(fields().chain([second]), encrypted);
        assert_eq!(with_second, None, "of two cookies neither admits");
        let with_another = session_token(fields().chain([&b"lang=en"[..]]), encrypted);
        assert_eq!(with_another, Some(token), "another cookie changes nothing");
    }
}

pub(crate) fn upload(bytes: &[u8]) {
    let fields = bytes.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((std::str::from_utf8(&line[..colon]).ok()?, &line[colon + 1..]))
    });
    let Ok(parsed) = UploadHeaders::parse(fields) else { return };
    assert!(parsed.offset.max(parsed.length).is_none_or(|number| number < INTEGERS_END), "{parsed:?}");
    let written = [
        parsed.complete.map(|complete| ("Upload-Complete", format!("?{}", u8::from(complete)))),
        parsed.offset.map(|offset| ("Upload-Offset", offset.to_string())),
        parsed.length.map(|length| ("Upload-Length", length.to_string())),
    ];
    let fields = written.iter().flatten().map(|(name, value)| (*name, value.as_bytes()));
    assert_eq!(UploadHeaders::parse(fields), Ok(parsed), "written again");
}

pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(path) = decode_path(text) {
        let slashes = |text: &str| text.matches('/').count();
        assert_eq!(slashes(&path), slashes(text), "a path leads where its slashes say");
        assert!(path.len() <= text.len());
    }
    let Ok(mut query) = Query::read(Some(text)) else { return };
    for name in ["name", "limit", ""] {
        query.take(name);
        assert_eq!(query.take(name), None, "a parameter is taken once, however often it was sent");
    }
    if let Err(error) = query.finish("name and limit") {
        assert_eq!(error.status(), 422);
    }
}
