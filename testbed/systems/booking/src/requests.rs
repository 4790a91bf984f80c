//! Request bodies, headers and queries, checked field by field.

use std::borrow::Cow;

use http_io::{Credentials, Fields, FieldsError};

use crate::{
    bookings::BookingRequest,
    refusal::Refusal,
    rooms::ROOMS_MAX,
    tables::NewRoom,
    values::{
        day::{Day, DayRange},
        guest::{Aadhaar, GuestName, IdPolicy},
        room::{self, Slot},
    },
};

/// Maximum length of a body, bytes. Large enough that a name of 10 kB is refused for its length and not cut off.
pub(crate) const BODY_LEN_MAX: u64 = 64 * 1024;
/// Maximum length of an `Idempotency-Key`, bytes.
const KEY_LEN_MAX: usize = 255;
/// Days shown if the request names none.
const DAYS_SHOWN: i32 = 30;

/// Reads a request to book.
pub(crate) fn booking(
    body: &[u8],
    key: Option<&[u8]>,
    from: String,
    ids: IdPolicy,
) -> Result<BookingRequest, Refusal> {
    let mut fields = Fields::read(body).map_err(hinting(example))?;
    let invalid = |field| move |reason: &'static str| Refusal::field(field, reason);
    let room = fields.maybe_number("room")?;
    let day = Day::parse(&fields.text("date")?).map_err(invalid("date"))?;
    day.check_bookable(Day::today()).map_err(invalid("date"))?;
    let slot =
        fields.maybe_text("slot")?.map(|text| Slot::parse(&text)).transpose().map_err(invalid("slot"))?;
    let name = GuestName::parse(&fields.text("name")?).map_err(invalid("name"))?;
    let aadhaar = Aadhaar::parse(&fields.secret("aadhaar")?, ids).map_err(invalid("aadhaar"))?;
    fields.finish("room, date, slot, name and aadhaar")?;
    Ok(BookingRequest { room, day, slot, name, aadhaar, key: key.map(idempotency_key).transpose()?, from })
}

/// An example of a request that would be accepted.
fn example() -> String {
    let day = Day::today().plus(DAYS_SHOWN);
    format!(r#"send {{"room": 1, "date": "{day}", "name": "Asha Rao", "aadhaar": "2341 2341 2346"}}"#)
}

/// Adds a correct example to an error.
fn hinting<T: Into<Cow<'static, str>>>(example: impl Fn() -> T) -> impl Fn(FieldsError) -> Refusal {
    move |error| Refusal::from(error).hint(example())
}

fn idempotency_key(key: &[u8]) -> Result<Vec<u8>, Refusal> {
    match key.len() {
        1..=KEY_LEN_MAX => Ok(key.to_owned()),
        _ => Err(Refusal::field("Idempotency-Key", "must be 1 to 255 bytes long")),
    }
}

/// Reads a request to add a room.
pub(crate) fn new_room(body: &[u8]) -> Result<NewRoom, Refusal> {
    let mut fields = Fields::read(body)
        .map_err(hinting(|| r#"send {"name": "Lake view", "slots": ["09:00-12:00", "13:00-17:00"]}"#))?;
    let invalid = |field| move |reason: &'static str| Refusal::field(field, reason);
    let name = GuestName::parse(&fields.text("name")?).map_err(invalid("name"))?;
    if name.as_str().chars().nth(room::NAME_CHARS_MAX).is_some() {
        return Err(Refusal::field("name", "must not be longer than 100 characters"));
    }
    let slots = fields.maybe_texts("slots")?;
    let slots: Result<Vec<_>, _> = slots.iter().map(|text| Slot::parse(text)).collect();
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

/// The version that an `If-Match` header names (RFC 9110 section 13.1.1). An entity tag that no booking can have gives -1,
/// which matches none.
pub(crate) fn version(if_match: Option<&[u8]>) -> Option<i64> {
    let tag = if_match?.trim_ascii();
    if tag == b"*" {
        return None;
    }
    let quoted = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    let number = quoted.and_then(|tag| std::str::from_utf8(tag).ok()).and_then(|tag| tag.parse().ok());
    Some(number.unwrap_or(-1))
}

/// The parameters of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'q> {
    from: Option<&'q str>,
    to: Option<&'q str>,
    after: Option<&'q str>,
    limit: Option<&'q str>,
}

impl<'q> Query<'q> {
    /// Parses `from=2026-03-01&to=2026-03-31`. No valid value needs percent-encoding.
    pub(crate) fn parse(text: Option<&'q str>) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for part in text.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let field = match name {
                "from" => &mut query.from,
                "to" => &mut query.to,
                "after" => &mut query.after,
                "limit" => &mut query.limit,
                _ => {
                    return Err(Refusal::new(422, "the query has an unknown parameter")
                        .hint("the parameters are from, to, after and limit"));
                }
            };
            *field = Some(value);
        }
        Ok(query)
    }

    /// The requested days, at most `max` of them. `None` if the query names no day.
    pub(crate) fn maybe_days(&self, max: i32) -> Result<Option<DayRange>, Refusal> {
        if self.from.is_none() && self.to.is_none() { Ok(None) } else { self.days(max).map(Some) }
    }

    /// The requested days, at most `max` of them. Starts today and ends 30 days later if the query does not say.
    pub(crate) fn days(&self, max: i32) -> Result<DayRange, Refusal> {
        let day = |name: &'static str, text: Option<&str>, default| match text {
            Some(text) => Day::parse(text).map_err(|reason| Refusal::field(name, reason)),
            None => Ok(default),
        };
        let from = day("from", self.from, Day::today())?;
        let to = day("to", self.to, from.plus(DAYS_SHOWN))?;
        match from.days_until(to) {
            ..0 => Err(Refusal::field("to", "must not be before from")),
            apart if apart >= max => {
                Err(Refusal::field("to", format!("must be less than {max} days after from")))
            }
            _ => Ok(DayRange { from, to }),
        }
    }

    /// After which number to list, and how many entries.
    pub(crate) fn page(&self) -> Result<(i64, i64), Refusal> {
        let number = |name: &'static str, text: Option<&str>, default| match text.map(str::parse::<i64>) {
            None => Ok(default),
            Some(Ok(number)) if number >= 0 => Ok(number),
            Some(_) => Err(Refusal::field(name, "must be a whole number, 0 or more")),
        };
        let limit = number("limit", self.limit, ROOMS_MAX)?;
        Ok((number("after", self.after, 0)?, limit.clamp(1, ROOMS_MAX)))
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
    fn ranges_of_days_are_bounded_and_in_order() {
        let days = |query| Query::parse(Some(query)).and_then(|query| query.days(62));
        let march = days("from=2026-03-01&to=2026-03-31").unwrap();
        assert_eq!(march.from.days_until(march.to), 30);
        for bad in [
            "from=x",
            "to=2026-02-30",
            "from=2026-03-02&to=2026-03-01",
            "from=2026-01-01&to=2026-12-31",
            "form=x",
            "from",
        ] {
            assert_eq!(days(bad).unwrap_err().status, 422, "{bad}");
        }
        assert_eq!(Query::parse(None).unwrap().maybe_days(62), Ok(None));
        assert_eq!(Query::parse(Some("limit=5&after=7")).unwrap().page(), Ok((7, 5)));
        assert!(Query::parse(Some("limit=-1")).unwrap().page().is_err());
    }
}
