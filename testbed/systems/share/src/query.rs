//! Searches over HTTP: the query parameters of requests, as browsers write them (URL Standard,
//! application/x-www-form-urlencoded), and the responses.

use std::{borrow::Cow, net::SocketAddr, time::Duration};

use http_io::{FieldsError, client::Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use crate::entry::{Content, Entry, Name, Query, SearchResult};

/// The parameters of a request that have not been taken yet.
#[derive(Debug)]
pub(crate) struct Parameters<'q>(http_io::Query<'q>);

impl<'q> Parameters<'q> {
    /// Parses `name=value&name=value`.
    pub(crate) fn read(query: Option<&'q str>) -> Result<Self, FieldsError> {
        http_io::Query::read(query).map(Self)
    }

    /// Removes and returns an optional parameter; the last one if it is repeated.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'q, str>> {
        self.0.take(name)
    }

    /// A whole number from 1 to `max`; `max` if it is absent.
    pub(crate) fn limit(&mut self, max: usize) -> Result<usize, FieldsError> {
        let Some(text) = self.take("limit") else { return Ok(max) };
        match text.parse() {
            Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
            _ => Err(FieldsError::field("limit", format!("must be a whole number from 1 to {max}"))),
        }
    }

    /// How long to `wait`, given in seconds; zero if it is absent.
    pub(crate) fn wait(&mut self, max_s: u32) -> Result<Duration, FieldsError> {
        let Some(text) = self.take("wait") else { return Ok(Duration::ZERO) };
        match text.parse() {
            Ok(seconds) if (0.0..=f64::from(max_s)).contains(&seconds) => {
                Ok(Duration::from_secs_f64(seconds))
            }
            _ => Err(FieldsError::field("wait", format!("must be a number of seconds from 0 to {max_s}"))),
        }
    }

    /// The search given as `name`, `words` or `hash`.
    pub(crate) fn search(&mut self) -> Result<Query, FieldsError> {
        let asked = (self.take("name"), self.take("words"), self.take("hash"));
        match asked {
            (Some(name), None, None) => name
                .parse::<Name>()
                .map(Query::Name)
                .map_err(|error| FieldsError::field("name", error.to_string())),
            (None, Some(text), None) => Query::words(&text),
            (None, None, Some(hash)) => hash
                .parse::<Content>()
                .map(Query::Content)
                .map_err(|error| FieldsError::field("hash", error.to_string())),
            (None, None, None) => {
                Err(FieldsError::field("name", "is missing: give one of name, words and hash"))
            }
            _ => Err(FieldsError::field(
                "the query",
                "holds several of name, words and hash: give one of them",
            )),
        }
    }

    /// Rejects parameters that were not taken.
    pub(crate) fn finish(self, known: &'static str) -> Result<(), FieldsError> {
        self.0.finish(known)
    }
}

/// The path and query of a request for a search.
pub(crate) fn search_target(query: &Query) -> String {
    let (field, value) = match query {
        Query::Name(name) => ("name", name.to_string()),
        Query::Words(words) => ("words", words.join(" ")),
        Query::Content(content) => ("hash", content.to_string()),
    };
    format!("/search?{field}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC))
}

/// The response to a search, not validated yet.
#[derive(Deserialize)]
struct SearchResponse {
    found: Vec<UncheckedResult>,
}

#[derive(Deserialize)]
struct UncheckedResult {
    name: String,
    hash: String,
    size: u64,
    peers: Vec<SocketAddr>,
}

/// Parses the response of a peer or an index to a search. Leaves out files with an invalid name or hash, or an impossible
/// size. `None` if it is no such response.
pub fn parse_results(body: &[u8]) -> Option<Vec<SearchResult>> {
    let response: SearchResponse = serde_json::from_slice(body).ok()?;
    let checked = |file: UncheckedResult| {
        let entry =
            Entry { name: file.name.parse().ok()?, content: file.hash.parse().ok()?, size: file.size };
        entry.is_obtainable().then_some(SearchResult { entry, peers: file.peers })
    };
    Some(response.found.into_iter().filter_map(checked).collect())
}

/// The reason in an error response.
pub(crate) fn error_reason(answer: &Response) -> String {
    let body: Option<Value> = serde_json::from_slice(answer.body()).ok();
    let said = body.as_ref().and_then(|body| body["error"].as_str());
    said.map_or_else(|| format!("it answered with status {}", answer.status()), str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn search(query: &str) -> Result<Query, FieldsError> {
        Parameters::read(Some(query)).and_then(|mut parameters| parameters.search())
    }

    #[test]
    fn the_three_ways_to_search_are_read() {
        assert_eq!(search("name=a%20b+c.txt"), Ok(Query::Name("a b c.txt".parse().unwrap())));
        assert_eq!(search("words=Report+2026"), Ok(Query::Words(vec!["report".into(), "2026".into()])));
        let hash = Content::of(b"x");
        assert_eq!(search(&format!("hash={hash}")), Ok(Query::Content(hash)));
    }

    #[test]
    fn several_ways_to_search_at_once_are_not_said_to_be_missing() {
        let refused = search(&format!("name=a&hash={}", Content::of(b"x"))).unwrap_err().to_string();
        assert!(refused.contains("several of name, words and hash"), "{refused}");
    }

    #[test]
    fn anything_else_is_told_by_its_field() {
        for query in
            ["", "name=", "name=a/b", "name=a&words=b", "words=---", "words=a+b+c+d+e", "hash=1", "name=%ff"]
        {
            assert_eq!(search(query).map_err(|error| error.status()), Err(422), "{query}");
        }
        let mut parameters = Parameters::read(Some("limit=5&x=1")).unwrap();
        assert_eq!(parameters.limit(10), Ok(5));
        assert!(parameters.finish("limit").is_err());
        for limit in ["limit=0", "limit=11", "limit=-1", "limit=x"] {
            assert!(Parameters::read(Some(limit)).unwrap().limit(10).is_err(), "{limit}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_left_out_of_answers() {
        let hash = Content::of(b"x");
        let file = |name: &str| json!({"name": name, "hash": hash, "size": 1, "peers": ["127.0.0.1:1"]});
        let answer = json!({"found": [file("../../etc/passwd"), file("a"), file(".bashrc"), file("/x")]});
        let found = parse_results(answer.to_string().as_bytes()).unwrap();
        assert_eq!(found.iter().map(|found| found.entry.name.as_str()).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn files_of_a_size_that_none_can_have_are_left_out_of_answers() {
        let hash = Content::of(b"x");
        let file = |size: u64| json!({"name": "a", "hash": hash, "size": size, "peers": ["127.0.0.1:1"]});
        let sizes = [0, 1, Entry::SIZE_MAX, Entry::SIZE_MAX + 1, i64::MAX as u64, u64::MAX];
        let found = parse_results(json!({"found": sizes.map(file)}).to_string().as_bytes()).unwrap();
        assert_eq!(found.iter().map(|found| found.entry.size).collect::<Vec<_>>(), [1, Entry::SIZE_MAX]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(body in "\\PC{0,60}|[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = parse_results(body.as_bytes());
        }

        #[test]
        fn any_query_is_read_or_refused(query in "\\PC{0,60}|[a-z=&%+0-9]{0,40}") {
            let _ = search(&query);
        }

        #[test]
        fn any_name_comes_back(name in "\\PC{1,40}") {
            if let Ok(name) = name.parse::<Name>() {
                let query = format!("name={}", utf8_percent_encode(name.as_str(), NON_ALPHANUMERIC));
                prop_assert_eq!(search(&query), Ok(Query::Name(name)));
            }
        }
    }
}
