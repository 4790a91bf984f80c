//! The options of curl, and what each does to a request.

use crate::error::CurlError;

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Url,
    Method,
    Header,
    /// Sets this header to its value.
    Set(&'static str),
    Bearer,
    Range,
    Compressed,
    Cookie,
    User,
    Data,
    DataRaw,
    DataEncoded,
    Json,
    Upload,
    Get,
    Head,
    Insecure,
    /// Nothing that a server sees.
    Nothing,
    NothingWithValue,
    /// Something that is left out.
    LeftOut,
    LeftOutWithValue,
}

/// An option as it was given.
pub(super) struct Given {
    /// Its name, with hyphens.
    pub(super) name: String,
    pub(super) effect: Effect,
    /// Its value; empty where it takes none.
    pub(super) value: String,
}

use Effect::{LeftOut, LeftOutWithValue, Nothing, NothingWithValue};

/// Options with a meaning of their own: letter, name, effect.
const MEANT: [(char, &str, Effect); 25] = [
    ('X', "request", Effect::Method),
    ('H', "header", Effect::Header),
    ('d', "data", Effect::Data),
    (' ', "data-ascii", Effect::Data),
    (' ', "data-binary", Effect::Data),
    (' ', "data-raw", Effect::DataRaw),
    (' ', "data-urlencode", Effect::DataEncoded),
    (' ', "json", Effect::Json),
    ('T', "upload-file", Effect::Upload),
    ('u', "user", Effect::User),
    ('b', "cookie", Effect::Cookie),
    ('A', "user-agent", Effect::Set("User-Agent")),
    ('e', "referer", Effect::Set("Referer")),
    (' ', "oauth2-bearer", Effect::Bearer),
    ('r', "range", Effect::Range),
    (' ', "compressed", Effect::Compressed),
    ('G', "get", Effect::Get),
    ('I', "head", Effect::Head),
    ('k', "insecure", Effect::Insecure),
    (' ', "url", Effect::Url),
    ('o', "output", NothingWithValue),
    ('w', "write-out", NothingWithValue),
    ('D', "dump-header", NothingWithValue),
    ('c', "cookie-jar", NothingWithValue),
    ('L', "location", LeftOut),
];

/// Options that a server does not see, without a value.
const UNSEEN: [(char, &str); 22] = [
    ('s', "silent"),
    ('S', "show-error"),
    ('v', "verbose"),
    ('i', "include"),
    ('f', "fail"),
    ('N', "no-buffer"),
    ('O', "remote-name"),
    ('J', "remote-header-name"),
    ('g', "globoff"),
    ('#', "progress-bar"),
    ('q', "disable"),
    ('Z', "parallel"),
    (' ', "fail-with-body"),
    (' ', "http1.1"),
    (' ', "basic"),
    (' ', "tcp-nodelay"),
    (' ', "no-progress-meter"),
    (' ', "path-as-is"),
    (' ', "create-dirs"),
    (' ', "no-keepalive"),
    (' ', "styled-output"),
    (' ', "raw"),
];

/// Options that are left out, without a value.
const WITHOUT_VALUE: [(char, &str); 18] = [
    ('4', "ipv4"),
    ('6', "ipv6"),
    ('0', "http1.0"),
    ('n', "netrc"),
    (' ', "location-trusted"),
    (' ', "http2"),
    (' ', "http2-prior-knowledge"),
    (' ', "http3"),
    (' ', "digest"),
    (' ', "ntlm"),
    (' ', "negotiate"),
    (' ', "anyauth"),
    ('1', "tlsv1"),
    (' ', "tlsv1.2"),
    (' ', "tlsv1.3"),
    (' ', "ssl-no-revoke"),
    (' ', "tr-encoding"),
    (' ', "post301"),
];

/// Options that are left out, with a value.
const WITH_VALUE: [(char, &str); 27] = [
    ('m', "max-time"),
    (' ', "connect-timeout"),
    (' ', "retry"),
    (' ', "retry-delay"),
    (' ', "retry-max-time"),
    ('x', "proxy"),
    ('U', "proxy-user"),
    (' ', "noproxy"),
    (' ', "cacert"),
    (' ', "capath"),
    ('E', "cert"),
    (' ', "cert-type"),
    (' ', "key"),
    (' ', "key-type"),
    (' ', "pass"),
    (' ', "ciphers"),
    (' ', "tls-max"),
    (' ', "resolve"),
    (' ', "connect-to"),
    (' ', "interface"),
    (' ', "limit-rate"),
    (' ', "max-redirs"),
    (' ', "max-filesize"),
    ('z', "time-cond"),
    ('C', "continue-at"),
    (' ', "rate"),
    (' ', "stderr"),
];

/// Every option that can be imported.
fn known() -> impl Iterator<Item = (char, &'static str, Effect)> {
    let with = |effect| move |(letter, name)| (letter, name, effect);
    let unseen = UNSEEN.into_iter().map(with(Nothing));
    let left_out = WITHOUT_VALUE.into_iter().map(with(LeftOut));
    MEANT.into_iter().chain(unseen).chain(left_out).chain(WITH_VALUE.into_iter().map(with(LeftOutWithValue)))
}

impl Effect {
    fn takes_value(self) -> bool {
        let without = [Effect::Compressed, Effect::Get, Effect::Head, Effect::Insecure, Nothing, LeftOut];
        !without.contains(&self)
    }
}

/// Reads the words behind `curl`.
pub(super) fn read(words: &[String]) -> Result<Vec<Given>, CurlError> {
    let mut given = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) {
            let found = known().find(|(_, known, _)| *known == name);
            // The name alone: something else may hang on it.
            let shown: String =
                word.chars().take_while(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).collect();
            let (_, _, effect) = found.ok_or_else(|| CurlError::Option(shown.clone()))?;
            let value = if effect.takes_value() { words.next().ok_or(CurlError::Value(shown))? } else { "" };
            given.push(Given { name: word.clone(), effect, value: value.into() });
        } else if let Some(letters) =
            word.strip_prefix('-').filter(|letters| !letters.is_empty() && *letters != "-")
        {
            read_letters(letters, &mut words, &mut given)?;
        } else if word != "--" {
            given.push(Given { name: "--url".into(), effect: Effect::Url, value: word.clone() });
        }
    }
    Ok(given)
}

/// Reads options of one letter, of which the last may have its value behind it.
fn read_letters<'a>(
    letters: &str,
    words: &mut impl Iterator<Item = &'a String>,
    given: &mut Vec<Given>,
) -> Result<(), CurlError> {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let name = format!("-{letter}");
        let found = known().find(|(known, _, _)| *known == letter && letter != ' ');
        let (_, _, effect) = found.ok_or_else(|| CurlError::Option(name.clone()))?;
        if !effect.takes_value() {
            given.push(Given { name, effect, value: String::new() });
            continue;
        }
        let value = match rest.as_str() {
            "" => words.next().ok_or_else(|| CurlError::Value(name.clone()))?.clone(),
            joined => joined.to_owned(),
        };
        given.push(Given { name, effect, value });
        return Ok(());
    }
    Ok(())
}
