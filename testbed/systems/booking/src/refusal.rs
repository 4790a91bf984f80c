//! Why a request is refused: what is wrong, in which field, and what to do next.

use std::{borrow::Cow, time::Duration};

use http_io::{FieldsError, Response};
use serde::Serialize;
use store::StoreError;

use crate::values::room::Period;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    #[serde(skip)]
    pub(crate) status: u16,
    /// What is wrong.
    error: Cow<'static, str>,
    #[serde(flatten)]
    details: Box<Details>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Details {
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<Cow<'static, str>>,
    /// What is wrong with the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'static, str>>,
    /// The next free period.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_next: Option<Period>,
    /// When to try again, seconds; in the header of the response.
    #[serde(skip)]
    retry_after_s: Option<u64>,
}

impl Refusal {
    /// A refusal with this status.
    pub(crate) fn new(status: u16, error: impl Into<Cow<'static, str>>) -> Self {
        Self { status, error: error.into(), details: Box::default() }
    }

    /// 422: a field is invalid. The message never contains its value.
    pub(crate) fn field(field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let mut refusal = Self::new(422, format!("{field} {reason}"));
        (refusal.details.field, refusal.details.reason) = (Some(field), Some(reason));
        refusal
    }

    /// 409: the room is taken. Says when it is free next, and never who booked it.
    pub(crate) fn taken(what: &'static str, free_next: Option<Period>) -> Self {
        let hint = match &free_next {
            Some(Period { day, slot: None }) => format!("it is free on {day}"),
            Some(Period { day, slot: Some(slot) }) => format!("it is free on {day}, {}", slot.as_str()),
            None => "it is taken for a long time; choose another room or a much later day".into(),
        };
        let mut refusal = Self::new(409, what).hint(hint);
        refusal.details.free_next = free_next;
        refusal
    }

    /// 429: the client has booked too often, and must wait so long.
    pub(crate) fn too_often(wait: Duration) -> Self {
        let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
        let mut refusal = Self::new(429, "too many bookings were made from this address");
        refusal.details.retry_after_s = Some(seconds);
        refusal.hint(format!("try again in {seconds} s"))
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.details.hint = Some(hint.into());
        self
    }
}

impl From<FieldsError> for Refusal {
    fn from(error: FieldsError) -> Self {
        match error {
            FieldsError::Field { field, reason } => Self::field(field, reason),
            error @ FieldsError::Body(_) => Self::new(error.status(), error.to_string()),
        }
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        let response = Self::json(refusal.status, &refusal);
        match (refusal.status, refusal.details.retry_after_s) {
            (401, _) => response.with("WWW-Authenticate", r#"Bearer realm="nstar booking""#),
            (_, Some(seconds)) => response.with("Retry-After", seconds.to_string()),
            _ => response,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::DiskFull => 507,
            _ => 503,
        };
        Self::new(status, error.to_string()).hint(match error {
            StoreError::DiskFull => "nothing was changed; tell the administrator",
            StoreError::Uncertain => {
                "check before you try again; with an Idempotency-Key it is always safe to try again"
            }
            _ => "nothing was changed; try again in a moment",
        })
    }
}
