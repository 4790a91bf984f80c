//! JSON in and out.

use engine::service::Connection;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::error::Category;

use super::{Error, Exchange, ResponseWriter};
use crate::Problem;

impl<C: Connection> Exchange<'_, C> {
    /// The whole body, of at most `limit` bytes, read as JSON. The `Content-Type` is not looked at.
    ///
    /// # Errors
    /// 400 when it is not JSON, 422 when it is not the JSON that `T` asks for, and as
    /// [`next_piece`](Self::next_piece). The messages give the place, never the content: it may be a password.
    pub async fn read_json<T: DeserializeOwned>(&mut self, limit: u64) -> Result<T, Error> {
        let body = self.read_body(limit).await?;
        serde_json::from_slice(body).map_err(|error| misread(&error).into())
    }
}

impl<C: Connection> ResponseWriter<'_, '_, C> {
    /// Answers with `value` as JSON.
    ///
    /// # Errors
    /// As [`empty`](Self::empty), or when `value` has no JSON form (500).
    pub fn json_of(self, value: &impl Serialize) -> Result<(), Error> {
        let body =
            serde_json::to_vec(value).map_err(|_| Problem::new(500, "the answer cannot be shown as JSON"))?;
        self.json(body)
    }
}

fn misread(error: &serde_json::Error) -> Problem {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Data => {
            Problem::new(422, format!("the JSON body lacks a field or has a wrong one, at {place}"))
        }
        _ => Problem::new(400, format!("the body is not JSON, at {place}")),
    }
}
