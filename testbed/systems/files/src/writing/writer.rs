//! Requests that change files: PUT, DELETE, and what belongs to an upload that is resumed.

use std::sync::Arc;

use accounts::Role;
use engine::service::Connection;
use folder::BadTarget;
use http_io::{
    Problem,
    server::{Error, Exchange, ResponseWriter},
};

use crate::{
    access::{
        caller::Caller,
        permissions::{self, Permissions},
    },
    audit::{Action, Note},
    writing::{
        changes::{Change, Kind, Outcome},
        condition::Condition,
        names,
        record::Record,
        refusal::Refusal,
        staging::PartId,
        upload::{Begun, Fields, Plan, Uploads},
    },
};

/// Where uploads lie that can be resumed.
pub(crate) const RESUMED: &str = "/uploads/";
/// What a part of an upload is sent as.
const PART_TYPE: &[u8] = b"application/partial-upload";

/// One request that changes files.
pub(crate) struct Writer<'r> {
    pub(crate) uploads: &'r Arc<Uploads>,
    pub(crate) permissions: &'r Permissions,
    pub(crate) caller: &'r Caller,
    pub(crate) note: &'r mut Note,
}

impl Writer<'_> {
    /// `PUT /files/NAME`.
    pub(crate) async fn put<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        encoded: &str,
    ) -> Result<(), Error> {
        let path = self.target(encoded)?;
        if path.1 {
            return Err(
                Refusal::Name { reason: "is that of a folder: leave out the slash at its end" }.into()
            );
        }
        let path = self.may_write(path.0)?;
        let fields = Fields::of(exchange)?;
        if fields.offset.is_some_and(|offset| offset > 0) {
            return Err(Refusal::Request("an upload begins at its first byte: Upload-Offset: 0").into());
        }
        if exchange.header("content-encoding").is_some() {
            return Err(
                Problem::new(415, "a file is kept as it comes: send it without Content-Encoding").into()
            );
        }
        let length = fields.whole(0, exchange.body_length())?;
        self.check_length(length)?;
        let record =
            Record { path, user: self.user(), length, condition: Condition::of(exchange), done: None };
        let quota = self.quota(&record.path);
        let begun = self.uploads.begin(Plan { record, resumable: fields.complete.is_some(), quota }).await?;
        if fields.complete.is_some() {
            let (location, limit) = (location(begun.id()), self.limit());
            exchange.interim(104, &[("Location", &location), ("Upload-Limit", &limit)])?;
        }
        let came = self.receive(exchange, &begun, 0).await?;
        match fields.complete {
            Some(false) => self.interrupted(exchange.respond(201), &begun, came),
            _ => self.finish(exchange, &begun, came).await,
        }
    }

    /// `DELETE /files/NAME`; a name that ends in a slash is that of an empty folder.
    pub(crate) async fn delete<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        encoded: &str,
    ) -> Result<(), Error> {
        let (path, is_folder) = self.target(encoded)?;
        if path.is_empty() {
            return Err(Refusal::Forbidden.into());
        }
        self.check_write(&path)?;
        let owner = permissions::owner(&path).map(str::to_owned);
        let kind = if is_folder { Kind::DeleteFolder } else { Kind::Delete };
        let change = Change { path, owner, condition: Condition::of(exchange), kind };
        let outcome = self.uploads.change(change).await?;
        (self.note.action, self.note.bytes) = (Some(Action::Delete), Some(outcome.bytes));
        exchange.respond(204).empty()
    }

    /// `HEAD /uploads/ID`: how far it came.
    pub(crate) async fn offset<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        let (_, record, came) = self.look(id).await?;
        let mut response = exchange
            .respond(204)
            .header("Upload-Offset", came.to_string())
            .header("Upload-Complete", if record.done.is_some() { "?1" } else { "?0" })
            .header("Upload-Limit", self.limit())
            .header("Cache-Control", "no-store");
        if let Some(length) = record.length {
            response = response.header("Upload-Length", length.to_string());
        }
        response.empty()
    }

    /// `PATCH /uploads/ID`: more of it.
    pub(crate) async fn resume<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        if exchange.header("content-type").is_none_or(|given| !given.eq_ignore_ascii_case(PART_TYPE)) {
            return Err(Problem::new(415, "more of an upload is sent as application/partial-upload").into());
        }
        let fields = Fields::of(exchange)?;
        let (Some(offset), Some(complete)) = (fields.offset, fields.complete) else {
            return Err(Refusal::Request("Upload-Offset and Upload-Complete are needed").into());
        };
        let (id, record, _) = self.look(id).await?;
        self.note.path = Some(record.path.clone());
        self.check_write(&record.path)?;
        if record.done.is_some() {
            return Err(Refusal::Request("the upload is complete already").into());
        }
        let length = match (record.length, fields.whole(offset, exchange.body_length())?) {
            (Some(said), Some(says)) if said != says => {
                return Err(Refusal::Request("the upload was to have another length").into());
            }
            (said, says) => said.or(says),
        };
        self.check_length(length)?;
        let quota = self.quota(&record.path);
        let begun = self.uploads.take_up(id, Record { length, ..record }, quota).await?;
        let came = begun.came()?;
        if came != offset {
            return Err(Refusal::Offset { expected: came }.into());
        }
        let came = self.receive(exchange, &begun, offset).await?;
        if complete {
            self.finish(exchange, &begun, came).await
        } else {
            self.interrupted(exchange.respond(204), &begun, came)
        }
    }

    /// `DELETE /uploads/ID`: it is not to go on.
    pub(crate) async fn cancel<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        let (id, record, _) = self.look(id).await?;
        if record.done.is_none() {
            self.uploads.take_up(id, record, None).await?.discard();
        }
        exchange.respond(204).empty()
    }

    async fn receive<C: Connection>(
        &self,
        exchange: &mut Exchange<'_, C>,
        begun: &Begun,
        offset: u64,
    ) -> Result<u64, Error> {
        match self.uploads.receive(exchange, begun, offset).await {
            // The limit that was met is that of uploads, not of bodies.
            Err(error) if error.problem().is_some_and(|problem| problem.status() == 413) => {
                begun.discard();
                Err(Refusal::TooLong { most: self.uploads.settings.max_bytes }.into())
            }
            other => other,
        }
    }

    /// Puts the file in its place and says so.
    async fn finish<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        begun: &Begun,
        came: u64,
    ) -> Result<(), Error> {
        if begun.record().length.is_some_and(|length| length != came) {
            return Err(Refusal::Request("less came than Upload-Length says").into());
        }
        let Outcome { replaced, etag, bytes } = begun.finish(self.uploads).await?;
        let (status, action) = if replaced { (204, Action::Replace) } else { (201, Action::Upload) };
        (self.note.action, self.note.bytes) = (Some(action), Some(bytes));
        let mut response = exchange.respond(status).header("ETag", etag.unwrap_or_default());
        if begun.is_resumable() {
            response = response.header("Upload-Complete", "?1").header("Upload-Offset", came.to_string());
        }
        response.empty()
    }

    /// Says that more is to come.
    fn interrupted<C: Connection>(
        &self,
        response: ResponseWriter<'_, '_, C>,
        begun: &Begun,
        came: u64,
    ) -> Result<(), Error> {
        response
            .header("Location", location(begun.id()))
            .header("Upload-Complete", "?0")
            .header("Upload-Offset", came.to_string())
            .header("Upload-Limit", self.limit())
            .empty()
    }

    /// The upload of this name, if it is the caller's.
    async fn look(&self, id: &str) -> Result<(PartId, Record, u64), Refusal> {
        self.check_taken()?;
        let id = PartId::parse(id).ok_or(Refusal::NotFound)?;
        let (record, came) = self.uploads.look(id.clone()).await?;
        let own = record.user == self.user();
        if own || self.is_admin() { Ok((id, record, came)) } else { Err(Refusal::NotFound) }
    }

    /// The path beneath the root, and whether it names a folder.
    fn target(&mut self, encoded: &str) -> Result<(String, bool), Error> {
        self.check_taken()?;
        let target = folder::decode(encoded).map_err(|wrong| match wrong {
            BadTarget::Malformed(error) => Problem::new(400, error.to_string()),
            BadTarget::Nothing => {
                Refusal::Name { reason: "holds an empty part, or one that is . or .." }.problem()
            }
        })?;
        let path = target.path.into_owned();
        self.note.path = Some(path.clone());
        Ok((path, target.directory))
    }

    fn may_write(&mut self, path: String) -> Result<String, Refusal> {
        names::check_new(&path)?;
        self.check_write(&path)?;
        if self.caller.user().is_some() && permissions::is_users_folder(&path) {
            return Err(Refusal::Conflict("this is the place of a user's folder"));
        }
        Ok(path)
    }

    fn check_write(&mut self, path: &str) -> Result<(), Refusal> {
        if folder::is_reserved(path) {
            return Err(Refusal::NotFound);
        }
        self.permissions.check_write(path, self.caller).inspect_err(|_| self.note.denied = true)
    }

    fn check_taken(&self) -> Result<(), Refusal> {
        if self.uploads.takes_from(self.caller) { Ok(()) } else { Err(Refusal::Off) }
    }

    fn check_length(&self, length: Option<u64>) -> Result<(), Refusal> {
        let most = self.uploads.settings.max_bytes;
        if length.is_some_and(|length| length > most) { Err(Refusal::TooLong { most }) } else { Ok(()) }
    }

    /// What may be kept in the folder in which the path lies, bytes. Another's folder has the measure of all: that of its
    /// owner is not known here.
    fn quota(&self, path: &str) -> Option<u64> {
        let user = self.caller.user()?;
        let settings = &self.uploads.settings;
        if permissions::owner(path) == Some(user.name.as_str()) {
            return settings.quota_of(self.caller);
        }
        settings.quota_bytes.filter(|_| !self.is_admin())
    }

    fn limit(&self) -> String {
        let settings = &self.uploads.settings;
        format!("max-size={}, max-age={}", settings.max_bytes, settings.life.as_secs())
    }

    fn user(&self) -> Option<String> {
        self.caller.user().map(|user| user.name.clone())
    }

    fn is_admin(&self) -> bool {
        self.caller.user().is_some_and(|user| user.role == Role::Admin)
    }
}

fn location(id: &PartId) -> String {
    format!("{RESUMED}{}", id.as_str())
}
