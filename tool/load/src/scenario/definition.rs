//! A scenario as plain data.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::sizes::Sizes;
use super::statuses::Statuses;
use super::template::Template;
use super::value::{Origin, Value, ValueKind};
use crate::url::Url;

/// A workload: what is requested, how often, with which values.
///
/// Made from a TOML file by [`Scenario::from_toml`], or from a URL by [`Scenario::single`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Scenario {
    pub(crate) name: String,
    /// The servers: user u sends to number u modulo their count.
    pub(crate) bases: Vec<Url>,
    pub(crate) values: Vec<Value>,
    /// Names of the lists that users capture values into.
    pub(crate) lists: Vec<String>,
    pub(crate) requests: Vec<Request>,
}

impl Scenario {
    /// The `name` in the file, or the URL without credentials.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server that the load goes to, if the scenario names one; of several, the first.
    #[must_use]
    pub fn base(&self) -> Option<&Url> {
        self.bases.first()
    }

    /// All servers that the load goes to: user u sends to number u modulo their count.
    #[must_use]
    pub fn bases(&self) -> &[Url] {
        &self.bases
    }

    /// Whether the scenario leaves open which statuses a request takes for success.
    #[must_use]
    pub fn takes_usual_statuses(&self, request: usize) -> bool {
        self.requests.get(request).is_some_and(|request| request.expect == Statuses::default())
    }

    /// Changes the weights of the requests with these names.
    ///
    /// # Errors
    /// A name that no request has, or a weight of 0.
    pub fn with_weights(mut self, weights: &BTreeMap<String, u32>) -> Result<Self, Problem> {
        for (name, weight) in weights {
            if *weight == 0 {
                return Err(Problem::Value { key: name.clone(), expected: "a weight of at least 1".into() });
            }
            if !self.requests.iter().any(|request| request.name == *name) {
                let expected = self.requests.iter().map(|request| request.name.clone()).collect();
                return Err(Problem::UnknownName { what: "request", name: name.clone(), expected });
            }
            let named = self.requests.iter_mut().filter(|request| request.name == *name);
            named.for_each(|request| request.weight = *weight);
        }
        Ok(self)
    }

    /// Sends the load to another server.
    #[must_use]
    pub fn with_base(mut self, base: Url) -> Self {
        self.bases = vec![base];
        self
    }

    /// Spreads the load over several servers: user u sends to number u modulo their count.
    #[must_use]
    pub fn with_bases(mut self, bases: Vec<Url>) -> Self {
        self.bases = bases;
        self
    }

    /// The items of the value with this name, if it is a [`ValueKind::Cycle`].
    #[must_use]
    pub fn items(&self, name: &str) -> Option<&[String]> {
        let value = self.values.iter().find(|value| value.name == name)?;
        if let ValueKind::Cycle { items, .. } = &value.kind { Some(items) } else { None }
    }

    /// Makes the value with this name, if there is one, a [`ValueKind::Cycle`] over these items.
    #[must_use]
    pub fn with_items(mut self, name: &str, items: &[String], step: u64) -> Self {
        for value in self.values.iter_mut().filter(|value| value.name == name) {
            value.kind = ValueKind::Cycle { items: items.to_vec(), step };
            value.origin = Origin::Elsewhere;
        }
        self
    }

    /// Whether it holds what reading it would have refused.
    pub(crate) fn is_sound(&self) -> bool {
        let takes_nothing = |request: &Request| request.takes().next().is_none();
        // A list is one that a request captures into.
        !self.requests.is_empty()
            && self.lists.len() <= self.requests.len()
            && self.requests.iter().any(takes_nothing)
            && self.requests.iter().all(Request::is_sound)
            && self.values.iter().all(Value::is_sound)
    }
}

/// One kind of request.
#[derive(Clone, Serialize, Deserialize, PartialEq)]
pub(crate) struct Request {
    /// Its `name`, or method and path.
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) method: String,
    pub(crate) path: Template,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Body,
    pub(crate) basic_auth: Option<(Template, Template)>,
    pub(crate) expect: Statuses,
    pub(crate) verify: Verify,
    /// What the user captures from each response.
    pub(crate) capture: Option<Capture>,
}

impl Request {
    fn is_sound(&self) -> bool {
        let sizes = if let Body::Generated(sizes) = &self.body { sizes.is_sound() } else { true };
        sizes && self.weight > 0
    }

    /// The lists that the request takes a captured value from.
    pub(crate) fn takes(&self) -> impl Iterator<Item = usize> + '_ {
        self.texts().chain(self.login()).flat_map(Template::takes)
    }

    /// Its path, headers and body.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Template> + '_ {
        let body = if let Body::Text(text) = &self.body { Some(text) } else { None };
        let headers = self.headers.iter().map(|(_, value)| value);
        std::iter::once(&self.path).chain(headers).chain(body)
    }

    /// The name and password of its own that it logs in with, if it has them.
    pub(crate) fn login(&self) -> impl Iterator<Item = &Template> + '_ {
        self.basic_auth.iter().flat_map(|(name, password)| [name, password])
    }
}

impl fmt::Debug for Request {
    /// Leaves out headers, body and credentials, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The body of a request.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub(crate) enum Body {
    /// Written in the scenario or in a file.
    Text(Template),
    /// Generated bytes that do not compress, of one of these sizes.
    Generated(Sizes),
}

/// What the body of a response must be for the request to count as completed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq)]
pub(crate) enum Verify {
    /// Anything: the body is discarded unseen.
    #[default]
    Nothing,
    /// This many bytes.
    Length(u64),
    /// These bytes.
    Bytes(#[serde(with = "shared_bytes")] Arc<[u8]>),
}

/// What a user captures from each response with a status of 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capture {
    /// Index of the list that the value goes to.
    pub(crate) list: usize,
    pub(crate) from: CaptureFrom,
}

/// The place of a captured value in a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CaptureFrom {
    /// The text or number at the end of this path through the body: field names, and indices from 0 into arrays.
    Json(Vec<String>),
    /// Path and query of the `Location` header.
    Location,
    /// The value of another header.
    Header(String),
}

/// The form of shared bytes on a stream: that of bytes.
mod shared_bytes {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        bytes.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        Vec::deserialize(from).map(Into::into)
    }
}
