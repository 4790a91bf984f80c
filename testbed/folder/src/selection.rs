//! Chooses what to send of a file: all, a part, or only word that it has not changed (RFC 9110, sections 13 and 14).

use http_io::{
    ByteRange, conditional,
    range::{self, RangeSelection},
};
use httpdate::HttpDate;

/// The conditions in a request's header, unparsed.
#[derive(Default, Clone, Copy)]
pub(crate) struct Conditions<'a> {
    pub(crate) if_match: Option<&'a [u8]>,
    pub(crate) if_none_match: Option<&'a [u8]>,
    pub(crate) if_modified_since: Option<&'a [u8]>,
    pub(crate) if_unmodified_since: Option<&'a [u8]>,
    pub(crate) if_range: Option<&'a [u8]>,
    pub(crate) range: Option<&'a [u8]>,
}

/// What conditions are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Validators<'a> {
    /// The strong entity tag.
    pub(crate) etag: &'a str,
    /// `Last-Modified`; empty if there is none.
    pub(crate) last_modified: &'a str,
    /// The same, Unix seconds.
    pub(crate) modified_s: Option<u64>,
    /// Length, bytes.
    pub(crate) size: u64,
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// 200
    Whole,
    /// 206
    Part(ByteRange),
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
    /// 416
    Unsatisfiable,
}

/// Evaluates the conditions in the order of RFC 9110, section 13.2.2.
pub(crate) fn select(conditions: &Conditions<'_>, file: Validators<'_>) -> Selection {
    if !may_proceed(conditions, file) {
        return Selection::PreconditionFailed;
    }
    if is_unchanged(conditions, file) {
        return Selection::NotModified;
    }
    let Some(wanted) = conditions.range else { return Selection::Whole };
    let holds = conditions.if_range.is_none_or(|value| {
        conditional::range_holds(value, file.etag.as_bytes(), file.last_modified.as_bytes())
    });
    match range::parse(wanted, file.size) {
        RangeSelection::Part(part) if holds => Selection::Part(part),
        RangeSelection::Unsatisfiable if holds => Selection::Unsatisfiable,
        _ => Selection::Whole,
    }
}

fn may_proceed(conditions: &Conditions<'_>, file: Validators<'_>) -> bool {
    if let Some(tags) = conditions.if_match {
        return conditional::match_names(tags, file.etag.as_bytes());
    }
    let since = conditions.if_unmodified_since.and_then(date);
    since.zip(file.modified_s).is_none_or(|(since_s, modified_s)| modified_s <= since_s)
}

fn is_unchanged(conditions: &Conditions<'_>, file: Validators<'_>) -> bool {
    if let Some(tags) = conditions.if_none_match {
        return conditional::none_match_names(tags, file.etag.as_bytes());
    }
    let since = conditions.if_modified_since.and_then(date);
    since.zip(file.modified_s).is_some_and(|(since_s, modified_s)| modified_s <= since_s)
}

/// Unix seconds; `None` for anything but a date, which the RFC says to ignore.
fn date(value: &[u8]) -> Option<u64> {
    let date: HttpDate = std::str::from_utf8(value).ok()?.trim().parse().ok()?;
    let since = std::time::SystemTime::from(date).duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MODIFIED: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";

    fn file() -> Validators<'static> {
        Validators {
            etag: "\"tag\"",
            last_modified: "Sun, 06 Nov 1994 08:49:37 GMT",
            modified_s: Some(784_111_777),
            size: 100,
        }
    }

    fn selected(set: impl FnOnce(&mut Conditions<'static>)) -> Selection {
        let mut conditions = Conditions::default();
        set(&mut conditions);
        select(&conditions, file())
    }

    #[test]
    fn without_conditions_the_whole() {
        assert_eq!(selected(|_| ()), Selection::Whole);
    }

    #[test]
    fn a_client_that_has_it_is_told_so() {
        assert_eq!(selected(|c| c.if_none_match = Some(b"\"old\", W/\"tag\"")), Selection::NotModified);
        assert_eq!(selected(|c| c.if_none_match = Some(b"*")), Selection::NotModified);
        assert_eq!(selected(|c| c.if_modified_since = Some(MODIFIED)), Selection::NotModified);
        assert_eq!(selected(|c| c.if_modified_since = Some(BEFORE)), Selection::Whole);
        assert_eq!(selected(|c| c.if_modified_since = Some(b"yesterday")), Selection::Whole);
    }

    #[test]
    fn the_tag_goes_before_the_date() {
        let both = |c: &mut Conditions<'static>| {
            c.if_none_match = Some(b"\"old\"");
            c.if_modified_since = Some(MODIFIED);
        };
        assert_eq!(selected(both), Selection::Whole);
    }

    #[test]
    fn a_client_that_wants_another_state_is_refused() {
        assert_eq!(selected(|c| c.if_match = Some(b"\"old\"")), Selection::PreconditionFailed);
        assert_eq!(selected(|c| c.if_match = Some(b"W/\"tag\"")), Selection::PreconditionFailed);
        assert_eq!(selected(|c| c.if_match = Some(b"\"tag\"")), Selection::Whole);
        assert_eq!(selected(|c| c.if_unmodified_since = Some(BEFORE)), Selection::PreconditionFailed);
        assert_eq!(selected(|c| c.if_unmodified_since = Some(MODIFIED)), Selection::Whole);
    }

    #[test]
    fn parts_and_when_they_are_refused() {
        let part = Selection::Part(ByteRange { offset: 10, length: 10 });
        assert_eq!(selected(|c| c.range = Some(b"bytes=10-19")), part);
        assert_eq!(selected(|c| c.range = Some(b"bytes=100-")), Selection::Unsatisfiable);
        assert_eq!(selected(|c| c.range = Some(b"lines=1-2")), Selection::Whole);
        let with = |if_range: &'static [u8]| {
            selected(|c| {
                c.range = Some(b"bytes=10-19");
                c.if_range = Some(if_range);
            })
        };
        assert_eq!(with(b"\"tag\""), part);
        assert_eq!(with(MODIFIED), part);
        assert_eq!(with(b"\"old\""), Selection::Whole);
        assert_eq!(with(BEFORE), Selection::Whole);
    }

    proptest! {
        #[test]
        fn a_part_is_always_within_the_file(value in proptest::collection::vec(any::<u8>(), 0..40), size in 0u64..200) {
            let range = [b"bytes=", &value[..]].concat();
            let conditions = Conditions { range: Some(&range), ..Conditions::default() };
            if let Selection::Part(part) = select(&conditions, Validators { size, ..file() }) {
                prop_assert!(part.length > 0 && part.offset + part.length <= size);
            }
        }
    }
}
