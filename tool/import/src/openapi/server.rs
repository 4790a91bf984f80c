//! The server that a description names.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use url::Url;

use super::next_slot;
use super::sample::text_of;
use crate::error::ImportError;
use crate::left_out::LeftOut;

/// What the URL of a server that has none is put below, to read its path.
const NOWHERE: &str = "http://server.invalid/";

/// The longest URL of a server, in bytes: what every server and client should take (RFC 9110 section 4.1).
const URL_BYTES_MAX: usize = 8_000;

/// Where the paths of a description lie.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Scheme, host and port, if they are known.
    pub(super) origin: Option<String>,
    /// The path that the others lie below, without a slash at its end.
    pub(super) prefix: String,
    /// What was chosen.
    pub(super) left_out: Vec<LeftOut>,
}

/// The first of the servers that are described, at `base` if that is given: its path, if it has one, is meant too.
pub(super) fn place(servers: Option<&Json>, base: Option<&str>) -> Result<Place, ImportError> {
    let Some(base) = base else { return described(servers) };
    let base = Url::parse(base)?;
    let prefix = match base.path().trim_end_matches('/') {
        "" => described(servers)?.prefix,
        path => path.to_owned(),
    };
    Ok(Place { origin: Some(base.origin().ascii_serialization()), prefix, left_out: Vec::new() })
}

fn described(servers: Option<&Json>) -> Result<Place, ImportError> {
    let servers = servers.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(first) = servers.first() else { return Ok(Place::default()) };
    let (url, mut left_out) = with_defaults(first)?;
    if servers.len() > 1 {
        left_out.push(LeftOut::Servers { others: servers.len() - 1 });
    }
    // With a variable that has no value it is no URL.
    if url.contains('{') {
        return Ok(Place::default());
    }
    // What is below no server has no path: `mailto:`, and the like.
    let below = Url::parse(NOWHERE).and_then(|nowhere| nowhere.join(&url)).ok();
    let Some(below) = below.filter(|below| !below.cannot_be_a_base()) else {
        return Ok(Place::default());
    };
    let is_server = |url: &Url| matches!(url.scheme(), "http" | "https") && url.port() != Some(0);
    let whole = Url::parse(&url).ok().filter(is_server);
    let origin = whole.map(|url| url.origin().ascii_serialization());
    Ok(Place { origin, prefix: below.path().trim_end_matches('/').to_owned(), left_out })
}

/// The URL of a server with the defaults of its variables, and which these are. A variable without a default leaves a `{`;
/// one that a default names is not replaced, or the URL could double with each variable.
fn with_defaults(server: &Json) -> Result<(String, Vec<LeftOut>), ImportError> {
    let described = server.get("variables").and_then(Json::as_object).into_iter().flatten();
    let defaults: BTreeMap<&str, String> = described
        .filter_map(|(name, variable)| Some((name.as_str(), text_of(variable.get("default")?))))
        .collect();
    let mut rest = server.get("url").and_then(Json::as_str).unwrap_or_default();
    fits(rest)?;
    let mut url = String::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    while let Some((before, (name, after))) = next_slot(rest) {
        let value = defaults.get(name);
        url.push_str(before);
        url.push_str(value.map_or("{", String::as_str));
        fits(&url)?;
        let told = value.map(|value| LeftOut::ServerVariable { name: name.to_owned(), value: value.clone() });
        if let Some(told) = told.filter(|told| !left_out.contains(told)) {
            left_out.push(told);
        }
        rest = after;
    }
    url.push_str(rest);
    fits(&url)?;
    Ok((url, left_out))
}

/// Refuses a URL that is too long.
fn fits(url: &str) -> Result<(), ImportError> {
    if url.len() <= URL_BYTES_MAX {
        return Ok(());
    }
    let reason =
        format!("with the defaults of its variables it is over {URL_BYTES_MAX} bytes long; shorten it");
    Err(ImportError::Field { path: "servers[0].url".to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(url: &str, base: Option<&str>) -> (Option<String>, String) {
        let place = place(Some(&json!([{"url": url}])), base).unwrap();
        (place.origin, place.prefix)
    }

    #[test]
    fn a_server_may_be_whole_or_a_path() {
        let whole = "https://u:p@api.example:8443/v1/";
        assert_eq!(at(whole, None), (Some("https://api.example:8443".into()), "/v1".into()));
        assert_eq!(at(whole, Some("http://h/v2/")), (Some("http://h".into()), "/v2".into()));
        assert_eq!(at("/v1", None), (None, "/v1".into()));
        assert_eq!(at("/v1", Some("http://h:1/")), (Some("http://h:1".into()), "/v1".into()));
        assert_eq!(at("wss://api.example/v1", None), (None, "/v1".into()));
        assert_eq!(place(None, None), Ok(Place::default()));
        assert!(place(None, Some("h")).is_err());
    }

    /// Paths then began with no slash, or with a server that nothing can be sent to.
    #[test]
    fn what_is_no_server_is_none() {
        for url in ["mailto:a@example.com", "data:text/plain,a b", "urn:example:a"] {
            assert_eq!(at(url, None), (None, String::new()), "{url}");
        }
        assert_eq!(at("http://h:0/v1", None), (None, "/v1".into()));
    }

    #[test]
    fn variables_have_their_defaults() {
        let variables = json!({
            "host": {"default": "api.example"}, "port": {"default": 8443, "enum": [443, 8443]},
            "base": {"default": "v2"}, "unused": {"default": "x"},
        });
        let first = json!({"url": "https://{host}:{port}/{base}", "variables": variables});
        let servers = json!([first, {"url": "https://other.example"}]);
        let place = place(Some(&servers), None).unwrap();
        let (origin, prefix) = (place.origin.as_deref(), place.prefix.as_str());
        assert_eq!((origin, prefix), (Some("https://api.example:8443"), "/v2"));
        assert_eq!(place.left_out.len(), 4);
        for (name, value) in [("host", "api.example"), ("port", "8443"), ("base", "v2")] {
            let told = LeftOut::ServerVariable { name: name.into(), value: value.into() };
            assert!(place.left_out.contains(&told), "{told:?}");
        }
        assert!(place.left_out.contains(&LeftOut::Servers { others: 1 }));
    }

    #[test]
    fn a_variable_without_a_value_makes_no_server() {
        assert_eq!(at("https://{host}/v1", None), (None, String::new()));
    }

    /// Forty variables, each of which has the next one twice as its default.
    #[test]
    fn defaults_are_not_replaced_once_more() {
        let variable = |at: usize| {
            let next = format!("{{a{}}}", at + 1);
            (format!("a{at}"), json!({"default": next.repeat(2)}))
        };
        let mut variables: serde_json::Map<_, _> = (1..40).map(variable).collect();
        variables.insert("a40".into(), json!({"default": "x"}));
        let servers = |url: &str| json!([{"url": url, "variables": variables}]);
        assert_eq!(place(Some(&servers("http://h/{a1}")), None), Ok(Place::default()));
        let twice = place(Some(&servers("http://h/{a40}/{a40}")), None).unwrap();
        assert_eq!(twice.prefix, "/x/x");
        assert_eq!(twice.left_out, [LeftOut::ServerVariable { name: "a40".into(), value: "x".into() }]);
    }

    #[test]
    fn a_long_url_of_a_server_is_refused() {
        let of = |url: &str, length: usize, base: Option<&str>| {
            let variables = json!({"a": {"default": "x".repeat(length)}});
            place(Some(&json!([{"url": url, "variables": variables}])), base)
        };
        let fits = of("/{a}{a}", 3_999, None).unwrap();
        assert_eq!(fits.prefix.len(), 7_999);
        let many = "/{a}".repeat(2_001);
        for (url, length) in [("/{a}{a}", 4_000), ("/{a}", 1 << 20), (many.as_str(), 0)] {
            let fault = of(url, length, None).unwrap_err();
            assert!(matches!(&fault, ImportError::Field { path, .. } if path == "servers[0].url"), "{fault}");
            let prefix = of(url, length, Some("http://h/v1")).map(|place| place.prefix);
            assert_eq!(prefix, Ok("/v1".into()));
        }
    }
}
