//! Queries of URLs, as browsers write them (URL Standard, application/x-www-form-urlencoded).

use std::{borrow::Cow, time::Duration};

use http_io::FieldsError;
use percent_encoding::percent_decode_str;

use crate::{
    content::Content,
    name::{self, Name},
    seam::Query,
};

/// Most words in one search.
pub(crate) const WORDS_MAX: usize = 4;

/// The parameters of a query, taken one by one.
#[derive(Debug)]
pub(crate) struct Parameters<'q>(Vec<(&'q str, Cow<'q, str>)>);

impl<'q> Parameters<'q> {
    /// Reads `name=value&name=value`.
    pub(crate) fn read(query: Option<&'q str>) -> Result<Self, FieldsError> {
        let parts = query.unwrap_or_default().split('&').filter(|part| !part.is_empty());
        let pair = |part: &'q str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((name, decode(value)?))
        };
        parts.map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// A parameter that may be there; the last of its name holds.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'q, str>> {
        let mut found = None;
        while let Some(at) = self.0.iter().position(|(known, _)| *known == name) {
            found = Some(self.0.remove(at).1);
        }
        found
    }

    /// A whole number from 1 to `max`; `max` where there is none.
    pub(crate) fn limit(&mut self, max: usize) -> Result<usize, FieldsError> {
        let Some(text) = self.take("limit") else { return Ok(max) };
        match text.parse() {
            Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
            _ => Err(FieldsError::field("limit", format!("must be a whole number from 1 to {max}"))),
        }
    }

    /// How long to `wait`, seconds; not at all where that is not said.
    pub(crate) fn wait(&mut self, max_s: u32) -> Result<Duration, FieldsError> {
        let Some(text) = self.take("wait") else { return Ok(Duration::ZERO) };
        match text.parse() {
            Ok(seconds) if (0.0..=f64::from(max_s)).contains(&seconds) => {
                Ok(Duration::from_secs_f64(seconds))
            }
            _ => Err(FieldsError::field("wait", format!("must be a number of seconds from 0 to {max_s}"))),
        }
    }

    /// What is searched for: `name`, `words` or `hash`.
    pub(crate) fn search(&mut self) -> Result<Query, FieldsError> {
        let asked = (self.take("name"), self.take("words"), self.take("hash"));
        match asked {
            (Some(name), None, None) => name
                .parse::<Name>()
                .map(Query::Name)
                .map_err(|error| FieldsError::field("name", error.to_string())),
            (None, Some(text), None) => words(&text).map(Query::Words),
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

    /// That nothing else was sent.
    pub(crate) fn finish(self, known: &'static str) -> Result<(), FieldsError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(FieldsError::field("the query", format!("holds something not known here; known are {known}")))
    }
}

/// The words to search by, the longest first: they are the rarest.
pub(crate) fn words(text: &str) -> Result<Vec<String>, FieldsError> {
    let mut words: Vec<_> = name::words(text).take(WORDS_MAX + 1).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    match words.len() {
        1..=WORDS_MAX => Ok(words),
        0 => Err(FieldsError::field("words", "must hold a letter or a digit")),
        _ => Err(FieldsError::field("words", format!("must be {WORDS_MAX} at most"))),
    }
}

fn decode(value: &str) -> Result<Cow<'_, str>, FieldsError> {
    let wrong = |_| FieldsError::field("the query", "is not UTF-8 once decoded");
    if value.contains('+') {
        let spaced = value.replace('+', " ");
        return percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned().into()).map_err(wrong);
    }
    percent_decode_str(value).decode_utf8().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

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

    proptest! {
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
