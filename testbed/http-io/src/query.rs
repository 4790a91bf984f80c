//! The parameters of a URL's query (URL Standard, `application/x-www-form-urlencoded`).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::{FieldsError, fields::shown};

/// The parameters of a query that have not been taken yet.
#[derive(Debug)]
pub struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Parses `name=value&name=value`.
    ///
    /// # Errors
    /// When it is not UTF-8 once decoded.
    pub fn read(query: Option<&'q str>) -> Result<Self, FieldsError> {
        let query = query.unwrap_or_default();
        // The parser would replace what is not UTF-8.
        if percent_decode_str(query).decode_utf8().is_err() {
            return Err(FieldsError::field("the query", "is not UTF-8 once decoded"));
        }
        Ok(Self(form_urlencoded::parse(query.as_bytes()).collect()))
    }

    /// Takes the parameter `name`. If it was sent several times, the last value counts.
    pub fn take(&mut self, name: &str) -> Option<Cow<'q, str>> {
        let last = self.0.iter().rposition(|(known, _)| known == name)?;
        let (_, value) = self.0.swap_remove(last);
        self.0.retain(|(known, _)| known != name);
        Some(value)
    }

    /// Checks that no parameter is left, so that mistyped ones are not ignored. `known` lists the valid ones.
    ///
    /// # Errors
    /// When a parameter is left.
    pub fn finish(self, known: &'static str) -> Result<(), FieldsError> {
        let Some((name, _)) = self.0.first() else { return Ok(()) };
        let reason = format!("has {}, which is not known here; the known ones are {known}", shown(name));
        Err(FieldsError::field("the query", reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_as_browsers_encode_them() {
        let mut query = Query::read(Some("name=a+b%20c%26d&limit=5&&empty=&bare&name=%C3%A9")).unwrap();
        assert_eq!(query.take("name").as_deref(), Some("\u{e9}"), "the last counts");
        assert_eq!(query.take("name"), None, "and it is taken once");
        assert_eq!(query.take("limit").as_deref(), Some("5"));
        assert_eq!((query.take("empty").as_deref(), query.take("bare").as_deref()), (Some(""), Some("")));
        assert_eq!(query.finish("name, limit, empty and bare"), Ok(()));
        assert_eq!(Query::read(None).unwrap().finish(""), Ok(()));
    }

    #[test]
    fn what_is_left_or_cannot_be_decoded_is_an_error() {
        let left = Query::read(Some("form=x")).unwrap().finish("from and to").unwrap_err();
        assert_eq!(
            (left.status(), left.to_string().as_str()),
            (422, "the query has form, which is not known here; the known ones are from and to")
        );
        let odd = Query::read(Some("hush%2Chush=x")).unwrap().finish("from").unwrap_err();
        assert!(!odd.to_string().contains("hush"), "{odd}");
        assert!(Query::read(Some("name=%ff")).is_err());
    }
}
