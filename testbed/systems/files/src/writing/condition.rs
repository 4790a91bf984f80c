//! What must hold of the file there is for it to be replaced or removed (RFC 9110 section 13).

use engine::service::Connection;
use http_io::{conditional, server::Exchange};
use serde::{Deserialize, Serialize};

use crate::writing::refusal::Refusal;

/// What must hold of the file there is for it to be replaced or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Condition {
    /// `If-Match`: it has one of these tags; `*`: it is there.
    if_match: Option<String>,
    /// `If-None-Match`: it has none of these tags; `*`: it is not there.
    if_none_match: Option<String>,
}

impl Condition {
    /// What the request sets.
    pub(crate) fn of<C: Connection>(exchange: &Exchange<'_, C>) -> Self {
        let all = |name| {
            let values: Vec<_> = exchange.header_all(name).map(String::from_utf8_lossy).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        Self { if_match: all("if-match"), if_none_match: all("if-none-match") }
    }

    /// Refuses when it does not hold of the file with this tag; none: there is no file.
    pub(crate) fn check(&self, etag: Option<&str>) -> Result<(), Refusal> {
        let names = |list: &String, of: fn(&[u8], &[u8]) -> bool| {
            etag.is_some_and(|etag| of(list.as_bytes(), etag.as_bytes()))
        };
        let matches = self.if_match.as_ref().is_none_or(|list| names(list, conditional::match_names));
        let differs =
            self.if_none_match.as_ref().is_none_or(|list| !names(list, conditional::none_match_names));
        if matches && differs { Ok(()) } else { Err(Refusal::Precondition) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(if_match: Option<&str>, if_none_match: Option<&str>, etag: Option<&str>) -> bool {
        let condition = Condition {
            if_match: if_match.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        condition.check(etag).is_ok()
    }

    #[test]
    fn the_file_there_is_decides() {
        let (here, gone) = (Some("\"a\""), None);
        assert!(holds(None, None, here) && holds(None, None, gone));
        assert!(holds(Some("*"), None, here) && !holds(Some("*"), None, gone));
        assert!(!holds(None, Some("*"), here) && holds(None, Some("*"), gone));
        assert!(holds(Some("\"b\", \"a\""), None, here) && !holds(Some("\"b\""), None, here));
        assert!(!holds(Some("W/\"a\""), None, here), "a weak tag is no match");
        assert!(!holds(None, Some("W/\"a\""), here) && holds(None, Some("\"b\""), here));
    }
}
