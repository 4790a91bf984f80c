//! Request bodies and queries, checked field by field.

use http_io::{Fields, FieldsError};
use zeroize::Zeroizing;

use crate::{
    account::parse_time,
    accounts::PAGE_MAX,
    credentials::{Invalid, Name, Password},
    tables::Change,
};

/// Reads the name and the password of a new account.
pub(crate) fn credentials(body: &[u8]) -> Result<(Name, Password), FieldsError> {
    let mut fields = Fields::read(body)?;
    let name = Name::for_new_account(&fields.text("name")?)?;
    let password = Password::new(&fields.secret("password")?)?;
    fields.finish("name and password")?;
    Ok((name, password))
}

/// Reads the name and password of a login. Any text is allowed, as it only has to match.
pub(crate) fn login(body: &[u8]) -> Result<(String, Zeroizing<String>), FieldsError> {
    let mut fields = Fields::read(body)?;
    let both = (fields.text("name")?, fields.secret("password")?);
    fields.finish("name and password")?;
    Ok(both)
}

/// Reads a new password, and the old one if it is sent. The old one may be any text, as it only has to match.
pub(crate) fn new_password(body: &[u8]) -> Result<(Password, Option<Zeroizing<String>>), FieldsError> {
    let mut fields = Fields::read(body)?;
    let password = Password::new(&fields.secret("password")?)?;
    let old = fields.maybe_text("old_password")?.map(Zeroizing::new);
    fields.finish("password and old_password")?;
    Ok((password, old))
}

/// Reads a change of an account.
pub(crate) fn change(body: &[u8]) -> Result<Change, FieldsError> {
    let mut fields = Fields::read(body)?;
    let invalid = |field| move |reason: &'static str| FieldsError::field(field, reason);
    let role = fields.maybe_text("role")?.map(|text| text.parse().map_err(invalid("role"))).transpose()?;
    let disabled = fields.maybe_truth("disabled")?;
    let expires_at_s = match fields.take_null("expires") {
        true => Some(None),
        false => fields
            .maybe_text("expires")?
            .map(|text| parse_time(&text).map(Some))
            .transpose()
            .map_err(invalid("expires"))?,
    };
    let quota_bytes = match fields.take_null("quota") {
        true => Some(None),
        false => fields
            .maybe_number("quota")?
            .map(|bytes| u64::try_from(bytes).map(Some))
            .transpose()
            .map_err(|_| FieldsError::field("quota", "must not be negative"))?,
    };
    fields.finish("role, disabled, expires and quota")?;
    let change = Change { role, disabled, expires_at_s, quota_bytes };
    if change == Change::default() {
        return Err(FieldsError::Body("a change: it has none of role, disabled, expires and quota".into()));
    }
    Ok(change)
}

/// The parameters of a query: where a list goes on, and how long it may be. Parsed by hand: `+` stands for itself here, as
/// names may hold it, and malformed escapes are refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'q> {
    after: Option<&'q str>,
    limit: Option<&'q str>,
}

impl<'q> Query<'q> {
    /// Reads `after=ada&limit=100`.
    pub(crate) fn read(query: Option<&'q str>) -> Result<Self, FieldsError> {
        let mut read = Self::default();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("after", value)) => read.after = Some(value),
                Some(("limit", value)) => read.limit = Some(value),
                _ => return Err(FieldsError::field("query", "may hold after and limit only")),
            }
        }
        Ok(read)
    }

    /// The name after which to list.
    pub(crate) fn after_name(&self) -> Result<String, FieldsError> {
        let decoded = http_io::decode_path(self.after.unwrap_or_default());
        decoded.map(Into::into).map_err(|error| FieldsError::field("after", error.to_string()))
    }

    /// The number after which to go on.
    pub(crate) fn after_number(&self) -> Result<Option<u64>, FieldsError> {
        let number = self.after.map(str::parse::<u64>).transpose();
        let number = number.ok().filter(|number| number.is_none_or(|number| i64::try_from(number).is_ok()));
        number.ok_or_else(|| FieldsError::field("after", "must be a whole number"))
    }

    /// The maximum number of entries.
    pub(crate) fn limit(&self) -> Result<i64, FieldsError> {
        match self.limit.map(str::parse::<i64>) {
            None => Ok(PAGE_MAX),
            Some(Ok(limit)) if limit > 0 => Ok(limit.min(PAGE_MAX)),
            Some(_) => Err(FieldsError::field("limit", "must be a whole number above 0")),
        }
    }
}

impl From<Invalid> for FieldsError {
    fn from(Invalid { field, reason }: Invalid) -> Self {
        Self::field(field, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Role;

    #[test]
    fn a_change_distinguishes_unchanged_from_removed_values() {
        let all =
            change(br#"{"role": "admin", "disabled": true, "expires": "2027-01-31T18:00:00Z", "quota": 7}"#);
        let expected = Change {
            role: Some(Role::Admin),
            disabled: Some(true),
            expires_at_s: Some(Some(1_801_418_400)),
            quota_bytes: Some(Some(7)),
        };
        assert_eq!(all, Ok(expected));
        let away = Change { expires_at_s: Some(None), quota_bytes: Some(None), ..Change::default() };
        assert_eq!(change(br#"{"expires": null, "quota": null}"#), Ok(away));
        assert_eq!(change(b"{}").unwrap_err().status(), 400);
    }

    #[test]
    fn queries_are_read_or_refused_by_field() {
        let query = Query::read(Some("after=a%40b&limit=5000")).unwrap();
        assert_eq!((query.after_name(), query.limit()), (Ok("a@b".into()), Ok(PAGE_MAX)));
        let number = |query| Query::read(Some(query)).and_then(|query| query.after_number());
        assert_eq!((number(""), number("after=7")), (Ok(None), Ok(Some(7))));
        for wrong in ["after=-1", "after=x", "after=", "after=18446744073709551615", "before=1", "after"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        assert!(Query::read(Some("limit=0")).unwrap().limit().is_err());
    }
}
