//! A scenario while it is made from requests as they were sent.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use crate::json_text::{self, Placed};
use crate::left_out::{LeftOut, Why};
use crate::scenario::{Body, Imported, Request};
use crate::secrets::is_secret;
use crate::variables::Variables;

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
    variables: Variables,
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
        let (values, shared) = std::mem::take(&mut self.variables).finish();
        shared.into_iter().for_each(|what| self.left_out(what));
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
        Imported { base: Some(base), values, ..self.made }
    }

    /// The slot that stands for a secret.
    fn secret(&mut self, name: &str, text: &str) -> String {
        let (slot, told) = self.variables.slot(name, text);
        self.made.left_out.extend(told);
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
        let Some((name, value)) = part.split_once('=') else { return escaped(part) };
        // Brackets, as in `user[pin]`, are often percent-encoded.
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        if value.is_empty() || !is_secret(&decoded) {
            return escaped(part);
        }
        let text = text_of(part).unwrap_or_default();
        format!("{}={}", escaped(name), self.secret(&decoded, &text))
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
        // Other texts than JSON have no fields. One document may follow another, and a parser may refuse what is nested deeply.
        let is_json = text.trim_start().starts_with(['{', '[']);
        Body::Text(if is_json { self.json(&text, request) } else { escaped(&text) })
    }

    /// JSON with slots in place of secrets, also where one of their texts has another name. What is no text stays, and is
    /// listed.
    fn json(&mut self, text: &str, request: &str) -> String {
        let values = json_text::values(text);
        // As it stands between its quotation marks.
        let written = |value: &Placed| text.get(value.place.clone()).unwrap_or_default();
        let secret = |value: &Placed| {
            let name = value.secret.clone().filter(|_| value.is_text && !value.place.is_empty())?;
            Some((written(value), name))
        };
        let secrets: HashMap<&str, Rc<str>> = values.iter().filter_map(secret).collect();
        let (mut out, mut from) = (String::new(), 0);
        for value in &values {
            let (raw, own) = (written(value), value.secret.as_ref());
            if let (Some(name), false) = (own, value.is_text) {
                self.left_out(LeftOut::SecretInBody { request: request.into(), name: name.to_string() });
            }
            let known = secrets.get(raw).filter(|_| value.is_text);
            let Some(name) = known.map(|known| own.unwrap_or(known)) else { continue };
            out.push_str(&escaped(text.get(from..value.place.start).unwrap_or_default()));
            out.push_str(&self.secret(name, raw));
            from = value.place.end;
        }
        out + &escaped(text.get(from..).unwrap_or_default())
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
