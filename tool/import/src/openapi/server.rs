//! The server that a description names.

use serde_json::Value as Json;
use url::{ParseError, Url};

use super::sample::text_of;
use crate::left_out::LeftOut;

/// What the URL of a server that has none is put below, to read its path.
const NOWHERE: &str = "http://server.invalid/";

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
pub(super) fn place(servers: Option<&Json>, base: Option<&str>) -> Result<Place, ParseError> {
    let described = described(servers);
    let Some(base) = base else { return Ok(described) };
    let base = Url::parse(base)?;
    let prefix = match base.path().trim_end_matches('/') {
        "" => described.prefix,
        path => path.to_owned(),
    };
    Ok(Place { origin: Some(base.origin().ascii_serialization()), prefix, left_out: Vec::new() })
}

fn described(servers: Option<&Json>) -> Place {
    let servers = servers.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(first) = servers.first() else { return Place::default() };
    let mut url = first.get("url").and_then(Json::as_str).unwrap_or_default().to_owned();
    let mut left_out = Vec::new();
    for (name, variable) in first.get("variables").and_then(Json::as_object).into_iter().flatten() {
        let slot = format!("{{{name}}}");
        if let Some(value) = variable.get("default").map(text_of).filter(|_| url.contains(&slot)) {
            url = url.replace(&slot, &value);
            left_out.push(LeftOut::ServerVariable { name: name.clone(), value });
        }
    }
    if servers.len() > 1 {
        left_out.push(LeftOut::Servers { others: servers.len() - 1 });
    }
    // With a variable that has no value it is no URL.
    if url.contains('{') {
        return Place::default();
    }
    let Ok(below) = Url::parse(NOWHERE).and_then(|nowhere| nowhere.join(&url)) else {
        return Place::default();
    };
    let whole = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let origin = whole.map(|url| url.origin().ascii_serialization());
    Place { origin, prefix: below.path().trim_end_matches('/').to_owned(), left_out }
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
}
