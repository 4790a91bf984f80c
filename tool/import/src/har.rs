//! Recordings of browsers: HAR 1.2.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use url::{Url, form_urlencoded};

use crate::draft::{Draft, Sent, header};
use crate::error::ImportError;
use crate::left_out::{LeftOut, Why};
use crate::scenario::{Body, Imported, Request};

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Asked,
    #[serde(default)]
    response: Response,
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    method: String,
    url: String,
    #[serde(default, deserialize_with = "or_default")]
    http_version: String,
    #[serde(default, deserialize_with = "or_default")]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default, deserialize_with = "or_default")]
    mime_type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    params: Vec<Pair>,
    #[serde(default)]
    encoding: Option<String>,
}

#[derive(Deserialize, Default)]
struct Response {
    #[serde(default, deserialize_with = "or_default")]
    status: i64,
    /// Where a service worker had the response from, if one gave it.
    #[serde(default, rename = "_serviceWorkerResponseSource")]
    worker_source: Option<String>,
}

impl Entry {
    /// Whether the server was asked and gave the response.
    fn is_answered(&self) -> bool {
        let by_worker = self.response.worker_source.as_deref().is_some_and(|source| source != "network");
        self.response.status > 0 && self.from_cache.is_none() && !by_worker
    }
}

/// A field that some programs write as `null` where it is empty.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(reader: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

/// Reads a recording.
pub(crate) fn read(text: &str, base: Option<&str>) -> Result<Imported, ImportError> {
    let entries = parse(text)?.log.entries;
    let mut draft = Draft::default();
    let (urls, entries) = sent_over_http(entries, &mut draft);
    let server = match base {
        Some(base) => Url::parse(base)?.origin().ascii_serialization(),
        None => busiest(&urls).ok_or(ImportError::Nothing(""))?,
    };
    let (mut elsewhere, mut other_version, mut kept) = (BTreeMap::new(), 0, 0);
    for (url, entry) in urls.into_iter().zip(entries) {
        let origin = url.origin().ascii_serialization();
        if origin != server {
            *elsewhere.entry(origin).or_insert(0) += 1;
            continue;
        }
        let version = entry.request.http_version.to_ascii_lowercase();
        other_version += usize::from(["h2", "h3", "http/2", "http/3"].iter().any(|v| version.starts_with(v)));
        kept += 1;
        add(&mut draft, url, entry);
    }
    for (server, requests) in elsewhere {
        draft.left_out(LeftOut::OtherServer { server, requests });
    }
    if other_version > 0 {
        draft.left_out(LeftOut::Version { requests: other_version });
    }
    if kept > 1 {
        draft.left_out(LeftOut::Order);
    }
    let mut imported = draft.finish(server);
    if imported.requests.is_empty() {
        return Err(ImportError::Nothing(if base.is_some() { " for this server" } else { "" }));
    }
    let expected: Vec<_> = imported.requests.iter().flat_map(unusual).collect();
    imported.left_out.extend(expected);
    Ok(imported)
}

/// The statuses of a request that count as success only because they were recorded.
fn unusual(request: &Request) -> impl Iterator<Item = LeftOut> {
    let statuses = request.expect.iter().filter(|status| !(200..400).contains(*status));
    statuses.map(|status| LeftOut::Expected { request: request.name.clone(), status: *status })
}

fn parse(text: &str) -> Result<Har, ImportError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let har = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        match inner.classify() {
            serde_json::error::Category::Data if path == "." => ImportError::Unknown,
            serde_json::error::Category::Data => ImportError::Field { path, reason: inner.to_string() },
            _ => ImportError::Json(inner.to_string()),
        }
    })?;
    reader.end().map_err(|error| ImportError::Json(error.to_string()))?;
    Ok(har)
}

/// The entries that a server answered over HTTP, and their URLs.
fn sent_over_http(entries: Vec<Entry>, draft: &mut Draft) -> (Vec<Url>, Vec<Entry>) {
    let (mut not_http, mut unanswered, mut urls, mut kept) = (0, 0, Vec::new(), Vec::new());
    for entry in entries {
        // A connection that is used for something else after status 101 is a WebSocket, whatever its URL begins with.
        let url = Url::parse(&entry.request.url).ok().filter(|_| entry.response.status != 101);
        let is_http =
            |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.port() != Some(0);
        match url.filter(is_http) {
            None => not_http += 1,
            Some(_) if !entry.is_answered() => unanswered += 1,
            Some(url) => {
                urls.push(url);
                kept.push(entry);
            }
        }
    }
    if not_http > 0 {
        draft.left_out(LeftOut::NotHttp { requests: not_http });
    }
    if unanswered > 0 {
        draft.left_out(LeftOut::Unanswered { requests: unanswered });
    }
    (urls, kept)
}

/// The server that most requests go to; of several, the first.
fn busiest(urls: &[Url]) -> Option<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for url in urls {
        let origin = url.origin().ascii_serialization();
        match counts.iter_mut().find(|(known, _)| *known == origin) {
            Some((_, count)) => *count += 1,
            None => counts.push((origin, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(origin, _)| origin)
}

fn add(draft: &mut Draft, url: Url, entry: Entry) {
    let Asked { method, headers, post_data, .. } = entry.request;
    let mut headers: Vec<_> = headers.into_iter().map(|pair| (pair.name, pair.value)).collect();
    // It follows from the base.
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("host"));
    let body = match post_data.map(|data| body(data, &mut headers)).transpose() {
        Ok(body) => body.flatten(),
        Err(why) => {
            draft.left_out(LeftOut::Request { request: format!("{method} {}", url.path()), why });
            return;
        }
    };
    let status = u16::try_from(entry.response.status).ok().filter(|status| (100..600).contains(status));
    draft.add(Sent { method, url, headers, body, credentials: None, status });
}

fn body(data: PostData, headers: &mut Vec<(String, String)>) -> Result<Option<Body>, Why> {
    let mime_type = data.mime_type.to_ascii_lowercase();
    if mime_type.starts_with("multipart/") {
        return Err(Why::Multipart);
    }
    if data.encoding.is_some_and(|encoding| !encoding.is_empty()) {
        return Err(Why::Binary);
    }
    if header(headers, "content-type").is_none() && !data.mime_type.is_empty() {
        headers.push(("Content-Type".into(), data.mime_type));
    }
    let form = || {
        let mut form = form_urlencoded::Serializer::new(String::new());
        data.params.iter().for_each(|pair| {
            form.append_pair(&pair.name, &pair.value);
        });
        form.finish()
    };
    let mut text = data.text.filter(|text| !text.is_empty()).unwrap_or_else(form);
    if mime_type.contains("x-www-form-urlencoded") {
        text = fields_of(&text).to_owned();
    }
    // A recording holds only text: what was no text has lost bytes.
    if text.contains('\u{fffd}') {
        return Err(Why::Binary);
    }
    Ok(Some(text).filter(|text| !text.is_empty()).map(Body::Text))
}

/// The fields of a form. Firefox puts headers before those of a form that a page submitted.
fn fields_of(text: &str) -> &str {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    match text.split_once("\r\n\r\n") {
        Some((_, fields)) if begins("content-type:") || begins("content-length:") => fields,
        _ => text,
    }
}

#[cfg(test)]
mod tests;
