//! What clients send, read and checked field by field.

use std::borrow::Cow;

use http_io::{Credentials, Fields, FieldsError};

use crate::{
    aadhaar::{Aadhaar, Accepted},
    day::Day,
    desk::{self, Span, Wish},
    guest::Name,
    refusal::Refusal,
    room,
    slot::Slot,
    tables::NewRoom,
};

/// Longest body, bytes: a name of 10 kB is told to be too long, not cut off.
pub(crate) const BODY_LEN_MAX: u64 = 64 * 1024;
/// Longest `Idempotency-Key`, bytes.
const KEY_LEN_MAX: usize = 255;
/// Days shown where a client does not say which.
const DAYS_SHOWN: i32 = 30;

/// Reads a booking: who, when, and which room if it matters.
pub(crate) fn wish(
    body: &[u8],
    key: Option<&[u8]>,
    from: String,
    accepted: Accepted,
) -> Result<Wish, Refusal> {
    let mut fields = Fields::read(body).map_err(hinting(example))?;
    let invalid = |field| move |reason: &'static str| Refusal::field(field, reason);
    let room = fields.maybe_number("room")?;
    let day = Day::read(&fields.text("date")?).map_err(invalid("date"))?;
    day.may_be_booked(Day::today()).map_err(invalid("date"))?;
    let slot =
        fields.maybe_text("slot")?.map(|text| Slot::read(&text)).transpose().map_err(invalid("slot"))?;
    let name = Name::read(&fields.text("name")?).map_err(invalid("name"))?;
    let aadhaar = Aadhaar::read(&fields.text("aadhaar")?, accepted).map_err(invalid("aadhaar"))?;
    fields.finish("room, date, slot, name and aadhaar")?;
    Ok(Wish { room, day, slot, name, aadhaar, key: key.map(idempotency_key).transpose()?, from })
}

/// A booking of a day that may still be booked.
fn example() -> String {
    let day = Day::today().plus(DAYS_SHOWN);
    format!(r#"send {{"room": 1, "date": "{day}", "name": "Asha Rao", "aadhaar": "2341 2341 2346"}}"#)
}

/// Tells with what is wrong what would be right.
fn hinting<T: Into<Cow<'static, str>>>(example: impl Fn() -> T) -> impl Fn(FieldsError) -> Refusal {
    move |error| Refusal::from(error).hint(example())
}

fn idempotency_key(key: &[u8]) -> Result<Vec<u8>, Refusal> {
    match key.len() {
        1..=KEY_LEN_MAX => Ok(key.to_owned()),
        _ => Err(Refusal::field("Idempotency-Key", "must be 1 to 255 bytes long")),
    }
}

/// Reads a room to be added.
pub(crate) fn new_room(body: &[u8]) -> Result<NewRoom, Refusal> {
    let mut fields = Fields::read(body)
        .map_err(hinting(|| r#"send {"name": "Lake view", "slots": ["09:00-12:00", "13:00-17:00"]}"#))?;
    let invalid = |field| move |reason: &'static str| Refusal::field(field, reason);
    let name = Name::read(&fields.text("name")?).map_err(invalid("name"))?;
    if name.as_str().chars().nth(room::NAME_CHARS_MAX).is_some() {
        return Err(Refusal::field("name", "must be no longer than 100 characters"));
    }
    let slots = fields.maybe_texts("slots")?;
    let slots: Result<Vec<_>, _> = slots.iter().map(|text| Slot::read(text)).collect();
    let slots = slots.and_then(|slots| Slot::check_all(&slots).map(|()| slots)).map_err(invalid("slots"))?;
    fields.finish("name and slots")?;
    Ok(NewRoom { name: name.as_str().to_owned(), slots })
}

/// The bearer token of an `Authorization` header.
pub(crate) fn bearer(authorization: Option<&[u8]>) -> Option<&[u8]> {
    match Credentials::parse(authorization?)? {
        Credentials::Bearer(token) => Some(token),
        Credentials::Basic(_) => None,
    }
}

/// The version an `If-Match` header asks for (RFC 9110 section 13.1.1); one that there never is, where it is none of ours.
pub(crate) fn version(if_match: Option<&[u8]>) -> Option<i64> {
    let tag = if_match?.trim_ascii();
    if tag == b"*" {
        return None;
    }
    let quoted = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    let number = quoted.and_then(|tag| std::str::from_utf8(tag).ok()).and_then(|tag| tag.parse().ok());
    Some(number.unwrap_or(-1))
}

/// What a query asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'q> {
    from: Option<&'q str>,
    to: Option<&'q str>,
    after: Option<&'q str>,
    limit: Option<&'q str>,
}

impl<'q> Query<'q> {
    /// Reads `from=2026-03-01&to=2026-03-31`. Nothing known here needs to be percent-encoded.
    pub(crate) fn read(query: Option<&'q str>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let field = match name {
                "from" => &mut read.from,
                "to" => &mut read.to,
                "after" => &mut read.after,
                "limit" => &mut read.limit,
                _ => {
                    return Err(Refusal::new(422, "the query holds something not known here")
                        .hint("known are from, to, after and limit"));
                }
            };
            *field = Some(value);
        }
        Ok(read)
    }

    /// Where any day is named, the days meant, at most `days`.
    pub(crate) fn maybe_span(&self, days: i32) -> Result<Option<Span>, Refusal> {
        if self.from.is_none() && self.to.is_none() { Ok(None) } else { self.span(days).map(Some) }
    }

    /// The days meant, at most `days`: 30 from today where none is named.
    pub(crate) fn span(&self, days: i32) -> Result<Span, Refusal> {
        let day = |name: &'static str, text: Option<&str>, otherwise| match text {
            Some(text) => Day::read(text).map_err(|reason| Refusal::field(name, reason)),
            None => Ok(otherwise),
        };
        let from = day("from", self.from, Day::today())?;
        let to = day("to", self.to, from.plus(DAYS_SHOWN))?;
        match from.days_until(to) {
            ..0 => Err(Refusal::field("to", "must not be before from")),
            apart if apart >= days => {
                Err(Refusal::field("to", format!("must be less than {days} days after from")))
            }
            _ => Ok(Span { from, to }),
        }
    }

    /// After which room to list, and how many.
    pub(crate) fn page(&self) -> Result<(i64, i64), Refusal> {
        let number = |name: &'static str, text: Option<&str>, otherwise| match text.map(str::parse::<i64>) {
            None => Ok(otherwise),
            Some(Ok(number)) if number >= 0 => Ok(number),
            Some(_) => Err(Refusal::field(name, "must be a whole number, 0 or more")),
        };
        let limit = number("limit", self.limit, desk::ROOMS_MAX)?;
        Ok((number("after", self.after, 0)?, limit.clamp(1, desk::ROOMS_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_entity_tags() {
        assert_eq!(version(None), None);
        assert_eq!(version(Some(b"*")), None);
        assert_eq!(version(Some(b" \"3\" ")), Some(3));
        for never in [&b"3"[..], b"W/\"3\"", b"\"x\"", b"\"", b"", b"\"1\", \"2\""] {
            assert_eq!(version(Some(never)), Some(-1));
        }
    }

    #[test]
    fn spans_are_bounded_and_in_order() {
        let span = |query| Query::read(Some(query)).and_then(|query| query.span(62));
        let march = span("from=2026-03-01&to=2026-03-31").unwrap();
        assert_eq!(march.from.days_until(march.to), 30);
        for bad in [
            "from=x",
            "to=2026-02-30",
            "from=2026-03-02&to=2026-03-01",
            "from=2026-01-01&to=2026-12-31",
            "form=x",
            "from",
        ] {
            assert_eq!(span(bad).unwrap_err().status, 422, "{bad}");
        }
        assert_eq!(Query::read(None).unwrap().maybe_span(62), Ok(None));
        assert_eq!(Query::read(Some("limit=5&after=7")).unwrap().page(), Ok((7, 5)));
        assert!(Query::read(Some("limit=-1")).unwrap().page().is_err());
    }
}
