//! Command lines of curl, as people write them and browsers copy them.

mod options;
mod words;

use std::str::FromStr;

use url::{Url, form_urlencoded};

use self::options::{Effect, Given};
use crate::COPIED_BYTES_MAX;
use crate::draft::{Draft, Sent, credentials, header};
use crate::error::{CurlError, ImportError};
use crate::left_out::LeftOut;
use crate::scenario::{Body, Imported};

/// A command line of curl, read. It has at least one URL.
#[derive(Clone)]
pub struct Curl {
    /// What is requested, in turn.
    pub urls: Vec<Url>,
    /// The method.
    pub method: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Body>,
    /// Name and password for Basic authentication.
    pub credentials: Option<(String, String)>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Options that change nothing here.
    pub left_out: Vec<LeftOut>,
}

impl std::fmt::Debug for Curl {
    /// Leaves out everything, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Curl").finish_non_exhaustive()
    }
}

/// What the options have said so far.
#[derive(Default)]
struct Said {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    /// Headers that are not to be sent.
    unsent: Vec<String>,
    data: Vec<String>,
    file: Option<String>,
    default_type: Option<&'static str>,
    is_json: bool,
    credentials: Option<(String, String)>,
    is_get: bool,
    is_head: bool,
    is_upload: bool,
    insecure: bool,
    left_out: Vec<LeftOut>,
}

impl FromStr for Curl {
    type Err = CurlError;

    fn from_str(text: &str) -> Result<Self, CurlError> {
        let words = words::split(text)?;
        let (first, words) = words.split_first().ok_or(CurlError::NotCurl)?;
        if !matches!(first.rsplit(['/', '\\']).next(), Some("curl" | "curl.exe")) {
            return Err(CurlError::NotCurl);
        }
        let mut said = Said::default();
        for given in options::read(words)? {
            said.take(given)?;
        }
        said.into_command()
    }
}

impl Curl {
    /// The scenario that sends what the command sends.
    ///
    /// # Errors
    /// A body that a scenario cannot hold.
    pub fn into_scenario(self) -> Result<Imported, ImportError> {
        // Each URL has headers and body of its own in the scenario.
        let fit = (COPIED_BYTES_MAX / self.bytes().max(1)).max(1);
        let mut draft = Draft::default();
        self.left_out.into_iter().for_each(|what| draft.left_out(what));
        if self.insecure {
            draft.left_out(LeftOut::Insecure);
        }
        let server = self.urls.first().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        if self.urls.len() > fit {
            draft.left_out(LeftOut::Copies { requests: self.urls.len() - fit });
        }
        for url in self.urls.into_iter().take(fit) {
            let origin = url.origin().ascii_serialization();
            if origin != server {
                draft.left_out(LeftOut::OtherServer { server: origin, requests: 1 });
                continue;
            }
            draft.add(Sent {
                method: self.method.clone(),
                url,
                headers: self.headers.clone(),
                body: self.body.clone(),
                credentials: self.credentials.clone(),
                status: None,
            });
        }
        let imported = draft.finish(server);
        if imported.requests.is_empty() {
            let why = ": its body begins with `@`, which in a scenario names a file";
            return Err(ImportError::Nothing(why));
        }
        Ok(imported)
    }

    /// The length of what is sent to each URL.
    fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        let body = match &self.body {
            Some(Body::Text(text) | Body::File(text)) => text.len(),
            None => 0,
        };
        headers.sum::<usize>() + body
    }
}

impl Said {
    fn take(&mut self, Given { name, effect, value }: Given) -> Result<(), CurlError> {
        match effect {
            Effect::Url => self.urls.push(value),
            Effect::Method => self.method = Some(value),
            Effect::Header => self.header(&value)?,
            Effect::Set(header) => self.headers.push((header.into(), value)),
            Effect::Bearer => self.headers.push(("Authorization".into(), format!("Bearer {value}"))),
            Effect::Range => self.headers.push(("Range".into(), format!("bytes={value}"))),
            Effect::Compressed => self.headers.push(("Accept-Encoding".into(), "deflate, gzip, br".into())),
            Effect::Cookie if value.contains('=') => self.headers.push(("Cookie".into(), value)),
            Effect::Cookie => self.left_out.push(LeftOut::CurlOption { option: name }),
            Effect::User => {
                let (user, password) = value.split_once(':').unwrap_or((&value, ""));
                self.credentials = Some((user.into(), password.into()));
            }
            Effect::Data => self.data(value)?,
            Effect::DataRaw => self.data_of("application/x-www-form-urlencoded", value),
            Effect::DataEncoded => self.data_encoded(&value)?,
            Effect::Json => self.json(value)?,
            Effect::Upload => {
                self.is_upload = true;
                self.file(&value)?;
            }
            Effect::Get => self.is_get = true,
            Effect::Head => self.is_head = true,
            Effect::Insecure => self.insecure = true,
            Effect::Nothing | Effect::NothingWithValue => {}
            Effect::LeftOut | Effect::LeftOutWithValue => {
                self.left_out.push(LeftOut::CurlOption { option: name });
            }
        }
        Ok(())
    }

    fn header(&mut self, line: &str) -> Result<(), CurlError> {
        let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
            (Some((name, value)), _) => (name, value.trim()),
            // An empty header.
            (None, Some(name)) => {
                self.headers.push((name.into(), String::new()));
                return Ok(());
            }
            (None, None) => return Err(CurlError::Header),
        };
        match value {
            "" => self.unsent.push(name.to_ascii_lowercase()),
            value => self.headers.push((name.into(), value.into())),
        }
        Ok(())
    }

    fn data(&mut self, value: String) -> Result<(), CurlError> {
        match value.strip_prefix('@') {
            Some(name) => {
                self.default_type.get_or_insert("application/x-www-form-urlencoded");
                self.file(name)
            }
            None => {
                self.data_of("application/x-www-form-urlencoded", value);
                Ok(())
            }
        }
    }

    /// A piece of JSON, which follows what was said before without anything between them.
    fn json(&mut self, value: String) -> Result<(), CurlError> {
        self.is_json = true;
        self.default_type = Some("application/json");
        match self.data.last_mut().filter(|_| !value.starts_with('@')) {
            Some(before) => before.push_str(&value),
            None => self.data(value)?,
        }
        Ok(())
    }

    fn data_of(&mut self, content_type: &'static str, value: String) {
        self.default_type.get_or_insert(content_type);
        self.data.push(value);
    }

    /// Data in one of the forms `TEXT`, `=TEXT` and `NAME=TEXT`.
    fn data_encoded(&mut self, value: &str) -> Result<(), CurlError> {
        let (name, text) = match value.split_once('=') {
            Some(("", text)) => (String::new(), text),
            Some((name, text)) => (format!("{name}="), text),
            None if value.contains('@') => return Err(CurlError::File),
            None => (String::new(), value),
        };
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        self.data_of("application/x-www-form-urlencoded", name + &encoded);
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<(), CurlError> {
        if name == "-" || name.is_empty() || self.file.replace(name.into()).is_some() {
            return Err(CurlError::File);
        }
        Ok(())
    }

    fn into_command(mut self) -> Result<Curl, CurlError> {
        let query = if self.is_get { std::mem::take(&mut self.data) } else { Vec::new() };
        let body = match (self.file.take(), self.data.is_empty()) {
            (Some(_), false) => return Err(CurlError::File),
            (Some(_), true) if self.is_get => return Err(CurlError::File),
            (Some(name), true) => Some(Body::File(name)),
            (None, true) => None,
            (None, false) => Some(Body::Text(self.data.join("&"))),
        };
        let method = match self.method {
            Some(method) => method,
            None if self.is_head => "HEAD".into(),
            None if self.is_upload => "PUT".into(),
            None if body.is_some() => "POST".into(),
            None => "GET".into(),
        };
        if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(CurlError::Method);
        }
        if self.is_json && header(&self.headers, "accept").is_none() {
            self.headers.push(("Accept".into(), "application/json".into()));
        }
        let needs_type = body.is_some() && header(&self.headers, "content-type").is_none();
        if let Some(content_type) = self.default_type.filter(|_| needs_type) {
            self.headers.push(("Content-Type".into(), content_type.into()));
        }
        let unsent = self.unsent;
        self.headers.retain(|(name, _)| !unsent.contains(&name.to_ascii_lowercase()));
        let urls = self.urls.iter().map(|text| url(text, &query)).collect::<Result<Vec<_>, _>>()?;
        let first = urls.first().ok_or(CurlError::NoUrl)?;
        let credentials = self.credentials.or_else(|| credentials(first));
        Ok(Curl {
            urls,
            method,
            headers: self.headers,
            body,
            credentials,
            insecure: self.insecure,
            left_out: self.left_out,
        })
    }
}

/// A URL as curl takes it, without a scheme too, with data that goes to its query.
fn url(text: &str, query: &[String]) -> Result<Url, CurlError> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&whole).map_err(CurlError::Url)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(CurlError::Scheme);
    }
    if url.port() == Some(0) {
        return Err(CurlError::Url(url::ParseError::InvalidPort));
    }
    if !query.is_empty() {
        let query: Vec<_> = url.query().into_iter().chain(query.iter().map(String::as_str)).collect();
        let query = query.join("&");
        url.set_query(Some(&query));
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
