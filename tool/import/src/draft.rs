//! A scenario while it is made from requests as they were sent.

use std::collections::{BTreeSet, HashMap};

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;
use url::{Url, form_urlencoded};

use crate::left_out::{LeftOut, Why};
use crate::scenario::{Body, Imported, Request, Value};
use crate::secrets::{is_secret, secrets_of};

/// Headers that belong to one connection or one visit of a browser.
const PASSING: [&str; 16] = [
    "connection",
    "content-length",
    "dnt",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "keep-alive",
    "priority",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
];

/// The most often that a request can be picked, compared with others.
const WEIGHT_MAX: u32 = 1_000_000;

/// A request as it was sent.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Body>,
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) status: Option<u16>,
}

/// A scenario that grows.
#[derive(Default)]
pub(crate) struct Draft {
    made: Imported,
    /// Secrets by their texts, with the slots that stand for them.
    secrets: HashMap<String, String>,
    /// Where requests are that differ in nothing but name, weight and statuses.
    known: HashMap<Request, usize>,
    passing: BTreeSet<String>,
}

impl Draft {
    pub(crate) fn left_out(&mut self, what: LeftOut) {
        if !self.made.left_out.contains(&what) {
            self.made.left_out.push(what);
        }
    }

    /// Adds a request, or makes the same one heavier.
    pub(crate) fn add(&mut self, sent: Sent) {
        let named = format!("{} {}", sent.method, sent.url.path());
        if let Some(why) = unfit(&sent) {
            self.left_out(LeftOut::Request { request: named, why });
            return;
        }
        let content_type = header(&sent.headers, "content-type").unwrap_or_default().to_ascii_lowercase();
        let request = Request {
            path: self.path(&sent.url),
            headers: self.headers(&sent.headers),
            body: sent.body.map(|body| self.body(body, &content_type, &named)),
            basic_auth: sent
                .credentials
                .or_else(|| credentials(&sent.url))
                .map(|(name, password)| (escaped(&name), self.secret("password", &password))),
            method: sent.method,
            ..Request::default()
        };
        let next = self.made.requests.len();
        let index = *self.known.entry(request.clone()).or_insert(next);
        if index == next {
            self.made.requests.push(Request { name: named, ..request });
        }
        if let Some(request) = self.made.requests.get_mut(index) {
            request.weight = (request.weight + 1).min(WEIGHT_MAX);
            request.expect.extend(sent.status);
        }
    }

    /// The scenario for the server at `base`.
    pub(crate) fn finish(mut self, base: String) -> Imported {
        if !self.passing.is_empty() {
            let names = std::mem::take(&mut self.passing).into_iter().collect();
            self.left_out(LeftOut::Headers { names });
        }
        if self.made.requests.iter().any(|request| matches!(request.body, Some(Body::Text(_)))) {
            self.left_out(LeftOut::Bodies);
        }
        let mut names = HashMap::new();
        for request in &mut self.made.requests {
            let count = names.entry(request.name.clone()).and_modify(|count| *count += 1).or_insert(1);
            if *count > 1 {
                request.name = format!("{} ({count})", request.name);
            }
        }
        Imported { base: Some(base), ..self.made }
    }

    /// The slot that stands for a secret. One that occurs twice has one slot.
    fn secret(&mut self, name: &str, text: &str) -> String {
        if let Some(slot) = self.secrets.get(text) {
            return slot.clone();
        }
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }
        };
        let plain: String = name.chars().map(plain).collect();
        let is_taken = |name: &str| self.made.values.iter().any(|(taken, _)| taken == name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !is_taken(name));
        let value = free.unwrap_or(plain);
        // A shell takes no name that begins with a digit, and sets PWD itself.
        let is_unfit = value == "pwd" || value.starts_with(|c: char| c.is_ascii_digit());
        let prefix = if is_unfit { "_" } else { "" };
        let variable = format!("{prefix}{}", value.to_ascii_uppercase());
        self.left_out(LeftOut::Secret { name: name.into(), variable: variable.clone() });
        let slot = format!("${{{value}}}");
        self.made.values.push((value, Value::Env(variable)));
        self.secrets.insert(text.into(), slot.clone());
        slot
    }

    fn path(&mut self, url: &Url) -> String {
        let path = escaped(url.path());
        match url.query() {
            Some(query) => format!("{path}?{}", self.query(query)),
            None => path,
        }
    }

    /// The page that a request comes from, which may have a secret in its query.
    fn referer(&mut self, text: &str) -> String {
        match text.split_once('?') {
            Some((page, query)) => format!("{}?{}", escaped(page), self.query(query)),
            None => escaped(text),
        }
    }

    fn query(&mut self, query: &str) -> String {
        let parts = query.split('&').map(|part| {
            self.parameter(part, |part| {
                // What stands for it is percent-encoded when it is sent.
                form_urlencoded::parse(part.as_bytes()).next().map(|(_, value)| value.into_owned())
            })
        });
        parts.collect::<Vec<_>>().join("&")
    }

    /// A part of a query or a form, with a slot in place of a secret, whose text `text_of` tells.
    fn parameter(&mut self, part: &str, text_of: impl Fn(&str) -> Option<String>) -> String {
        match part.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                let text = text_of(part).unwrap_or_default();
                format!("{}={}", escaped(name), self.secret(name, &text))
            }
            _ => escaped(part),
        }
    }

    fn headers(&mut self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let mut kept: Vec<(String, String)> = Vec::new();
        for (name, value) in headers {
            let lower = name.to_ascii_lowercase();
            let passes = PASSING.contains(&lower.as_str()) || lower.starts_with("sec-");
            if passes || !is_token(name) || value.chars().any(|c| c.is_control() && c != '\t') {
                // The names of HTTP/2 that stand for the request line are no headers.
                if !name.starts_with(':') {
                    self.passing.insert(lower);
                }
                continue;
            }
            match kept.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, all)) => {
                    all.push_str(if lower == "cookie" { "; " } else { ", " });
                    all.push_str(value);
                }
                None => kept.push((name.clone(), value.clone())),
            }
        }
        let hide = |(name, value): (String, String)| {
            let value = match is_secret(&name) && !value.is_empty() {
                true => self.secret(&name, &value),
                false if name.eq_ignore_ascii_case("referer") => self.referer(&value),
                false => escaped(&value),
            };
            (name, value)
        };
        kept.into_iter().map(hide).collect()
    }

    fn body(&mut self, body: Body, content_type: &str, request: &str) -> Body {
        let Body::Text(text) = body else { return body };
        if content_type.contains("x-www-form-urlencoded") {
            let raw = |part: &str| part.split_once('=').map(|(_, value)| value.to_owned());
            let parts = text.split('&').map(|part| self.parameter(part, raw));
            return Body::Text(parts.collect::<Vec<_>>().join("&"));
        }
        // Other texts than JSON have no fields.
        let json = serde_json::from_str(&text).unwrap_or(Json::Null);
        let mut text = escaped(&text);
        for (name, secret) in secrets_of(&json) {
            let kept = LeftOut::SecretInBody { request: request.into(), name: name.into() };
            let Json::String(secret) = secret else {
                self.left_out(kept);
                continue;
            };
            // As it stands between its quotation marks.
            let whole = Json::from(secret.as_str()).to_string();
            let inner = whole.get(1..whole.len() - 1).unwrap_or_default();
            if text.contains(&escaped(&whole)) {
                let slot = self.secret(name, inner);
                text = text.replace(&escaped(&whole), &format!("\"{slot}\""));
            } else if !self.secrets.contains_key(inner) {
                self.left_out(kept);
            }
        }
        Body::Text(text)
    }
}

/// Why a scenario cannot hold a request.
fn unfit(sent: &Sent) -> Option<Why> {
    let is_method = !sent.method.is_empty() && sent.method.bytes().all(|b| b.is_ascii_uppercase());
    match &sent.body {
        _ if !is_method => Some(Why::Method),
        Some(Body::Text(text)) if text.starts_with('@') => Some(Why::LikeFile),
        _ => None,
    }
}

/// User name and password in a URL.
pub(crate) fn credentials(url: &Url) -> Option<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (name, password) = (url.username(), url.password());
    let some = !name.is_empty() || password.is_some();
    some.then(|| (decoded(name), decoded(password.unwrap_or_default())))
}

/// The value of a header.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Whether a text may name a header (RFC 9110 section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// A text of which nothing stands for a value.
pub(crate) fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}
