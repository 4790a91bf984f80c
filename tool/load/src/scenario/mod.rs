//! What the users do: requests with weights, and values that differ per user or per request.

mod error;
mod file;
pub(crate) mod keep;
mod section;
mod single;
pub(crate) mod sizes;
pub(crate) mod statuses;
pub(crate) mod template;
pub(crate) mod value;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use error::{FlagError, Problem, ScenarioError};
pub use single::RequestTemplate;

use crate::url::Url;
use keep::{Keep, Lists};
use sizes::Sizes;
use statuses::Statuses;
use template::Template;
use value::{Value, ValueKind};

/// A workload: what is requested, how often, with which values.
///
/// Made from a TOML file by [`Scenario::from_toml`], or from a URL by [`Scenario::single`].
#[derive(Debug, Clone)]
pub struct Scenario {
    pub(crate) name: String,
    /// Where it goes: user u to number u modulo their number.
    pub(crate) bases: Vec<Url>,
    pub(crate) values: Vec<Value>,
    /// Lists in which users keep values of answers.
    pub(crate) lists: Lists,
    pub(crate) requests: Vec<Request>,
}

impl Scenario {
    /// What it is called: the file's `name`, or the URL without credentials.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it goes, if it says; of several servers the first.
    #[must_use]
    pub fn base(&self) -> Option<&Url> {
        self.bases.first()
    }

    /// All servers it goes to: user u to number u modulo their number.
    #[must_use]
    pub fn bases(&self) -> &[Url] {
        &self.bases
    }

    /// Gives requests, by name, other weights.
    ///
    /// # Errors
    /// The name that no request has, and those there are.
    pub fn with_weights(mut self, weights: &BTreeMap<String, u32>) -> Result<Self, Problem> {
        for (name, weight) in weights {
            let names = || self.requests.iter().map(|request| request.name.clone()).collect();
            if *weight == 0 {
                return Err(Problem::Value { key: name.clone(), expected: "a weight of at least 1".into() });
            }
            if !self.requests.iter().any(|request| request.name == *name) {
                let name = name.clone();
                return Err(Problem::UnknownName { what: "request", name, expected: names() });
            }
            let those = self.requests.iter_mut().filter(|request| request.name == *name);
            those.for_each(|request| request.weight = *weight);
        }
        Ok(self)
    }

    /// Sends it to another server.
    #[must_use]
    pub fn with_base(mut self, base: Url) -> Self {
        self.bases = vec![base];
        self
    }

    /// Spreads it over several servers: user u sends to number u modulo their number.
    #[must_use]
    pub fn with_bases(mut self, bases: Vec<Url>) -> Self {
        self.bases = bases;
        self
    }

    /// The items of the value of this name, if there is one and it cycles.
    #[must_use]
    pub fn items(&self, name: &str) -> Option<&[String]> {
        let value = self.values.iter().find(|value| value.name == name)?;
        if let ValueKind::Cycle { items, .. } = &value.kind { Some(items) } else { None }
    }

    /// Has a value, if there is one of this name, cycle over these items in steps (see [`ValueKind::Cycle`]).
    #[must_use]
    pub fn with_items(mut self, name: &str, items: &[String], step: u64) -> Self {
        let named = self.values.iter_mut().filter(|value| value.name == name);
        named.for_each(|value| value.kind = ValueKind::Cycle { items: items.to_vec(), step });
        self
    }
}

/// One kind of request of a scenario.
#[derive(Clone)]
pub(crate) struct Request {
    /// What people call it.
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) method: String,
    pub(crate) path: Template,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Body,
    pub(crate) basic_auth: Option<(Template, Template)>,
    pub(crate) expect: Statuses,
    pub(crate) verify: Verify,
    /// What the user keeps of an answer.
    pub(crate) keep: Option<Keep>,
}

impl Request {
    /// The lists it takes a value from.
    pub(crate) fn takes(&self) -> impl Iterator<Item = usize> + '_ {
        let body = if let Body::Text(text) = &self.body { Some(text) } else { None };
        let auth = self.basic_auth.iter().flat_map(|(name, password)| [name, password]);
        let headers = self.headers.iter().map(|(_, value)| value);
        std::iter::once(&self.path).chain(headers).chain(body).chain(auth).flat_map(Template::takes)
    }
}

impl fmt::Debug for Request {
    /// Without headers, body and credentials: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// What a request's body is.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Written out.
    Text(Template),
    /// Filled with bytes that do not compress, as many as one of the sizes says.
    Generated(Sizes),
}

/// What a response's body must be for the request to count as completed.
#[derive(Debug, Clone, Default)]
pub(crate) enum Verify {
    /// Anything of the length its framing says: discarded unseen.
    #[default]
    Nothing,
    /// So many bytes.
    Length(u64),
    /// These bytes.
    Bytes(Arc<[u8]>),
}
