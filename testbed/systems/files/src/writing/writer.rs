//! Requests that change files: PUT, DELETE, and those about an upload in progress.

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
        identity::Caller,
        permissions::{self, Permissions},
    },
    audit::{Action, Note},
    refusal::Refusal,
    writing::{
        changes::{Change, Kind, Outcome},
        headers::{Condition, UploadHeaders},
        names,
        receive::receive,
        staging::{PartId, Record},
        upload::{self, NewUpload, Upload},
        uploads::Uploads,
    },
};

/// The path of uploads that can be resumed.
pub(crate) const UPLOADS_PATH: &str = "/uploads/";
/// The media type of a part of an upload.
const PART_TYPE: &[u8] = b"application/partial-upload";

/// Handles one request that changes files.
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
            return Err(Refusal::Name { reason: "is that of a folder: remove the slash at its end" }.into());
        }
        let path = self.may_write(path.0)?;
        let headers = UploadHeaders::of(exchange)?;
        if headers.offset.is_some_and(|offset| offset > 0) {
            return Err(Refusal::Request("an upload starts at its first byte: Upload-Offset: 0").into());
        }
        if exchange.header("content-encoding").is_some() {
            return Err(Problem::new(
                415,
                "files are stored as they arrive: send them without Content-Encoding",
            )
            .into());
        }
        let length = headers.total_length(0, exchange.body_length())?;
        self.check_length(length)?;
        let record = Record::new(path, self.user(), length, Condition::of(exchange));
        let quota = self.quota(&record.path);
        let new = NewUpload { record, resumable: headers.complete.is_some(), quota };
        let upload = Upload::begin(self.uploads, new).await?;
        if headers.complete.is_some() {
            let (location, limit) = (location(upload.id()), self.limit());
            exchange.interim(104, &[("Location", &location), ("Upload-Limit", &limit)])?;
        }
        let received = self.receive(exchange, &upload, 0).await?;
        match headers.complete {
            Some(false) => {
                upload.secure(self.uploads, received).await?;
                self.interrupted(exchange.respond(201), &upload, received)
            }
            _ => self.finish(exchange, &upload, received).await,
        }
    }

    /// `DELETE /files/NAME`. A name that ends with a slash is that of an empty folder.
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

    /// `HEAD /uploads/ID`: how much has arrived.
    pub(crate) async fn offset<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        let (_, record, received) = self.look(id).await?;
        let mut response = exchange
            .respond(204)
            .header("Upload-Offset", received.to_string())
            .header("Upload-Complete", if record.done.is_some() { "?1" } else { "?0" })
            .header("Upload-Limit", self.limit())
            .header("Cache-Control", "no-store");
        if let Some(length) = record.length {
            response = response.header("Upload-Length", length.to_string());
        }
        response.empty()
    }

    /// `PATCH /uploads/ID`: continues it.
    pub(crate) async fn resume<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        if exchange.header("content-type").is_none_or(|given| !given.eq_ignore_ascii_case(PART_TYPE)) {
            return Err(Problem::new(
                415,
                "continue an upload with the media type application/partial-upload",
            )
            .into());
        }
        let headers = UploadHeaders::of(exchange)?;
        let (Some(offset), Some(complete)) = (headers.offset, headers.complete) else {
            return Err(Refusal::Request("Upload-Offset and Upload-Complete are required").into());
        };
        let (id, record, _) = self.look(id).await?;
        self.note.path = Some(record.path.clone());
        self.check_write(&record.path)?;
        if record.done.is_some() {
            return Err(Refusal::Request("the upload is already complete").into());
        }
        let length = match (record.length, headers.total_length(offset, exchange.body_length())?) {
            (Some(said), Some(says)) if said != says => {
                return Err(Refusal::Request("the upload was announced with another length").into());
            }
            (said, says) => said.or(says),
        };
        self.check_length(length)?;
        let quota = self.quota(&record.path);
        let upload = Upload::resume(self.uploads, id, Record { length, ..record }, quota).await?;
        let received = upload.received()?;
        if received != offset {
            return Err(Refusal::Offset { expected: received }.into());
        }
        let received = self.receive(exchange, &upload, offset).await?;
        if complete {
            self.finish(exchange, &upload, received).await
        } else {
            upload.secure(self.uploads, received).await?;
            self.interrupted(exchange.respond(204), &upload, received)
        }
    }

    /// `DELETE /uploads/ID`: abandons it.
    pub(crate) async fn cancel<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        id: &str,
    ) -> Result<(), Error> {
        let (id, record, _) = self.look(id).await?;
        self.note.path = Some(record.path);
        if record.done.is_none() {
            upload::abandon(self.uploads, id).await?;
        }
        exchange.respond(204).empty()
    }

    async fn receive<C: Connection>(
        &self,
        exchange: &mut Exchange<'_, C>,
        upload: &Upload,
        offset: u64,
    ) -> Result<u64, Error> {
        match receive(self.uploads, exchange, upload, offset).await {
            // Names the limit of uploads instead of that of bodies.
            Err(error) if error.problem().is_some_and(|problem| problem.status() == 413) => {
                upload.discard();
                Err(Refusal::TooLong { most: self.uploads.settings.max_bytes }.into())
            }
            other => other,
        }
    }

    /// Moves the file to its place and responds.
    async fn finish<C: Connection>(
        &mut self,
        exchange: &mut Exchange<'_, C>,
        upload: &Upload,
        received: u64,
    ) -> Result<(), Error> {
        if upload.record().length.is_some_and(|length| length != received) {
            return Err(Refusal::Request("the upload is shorter than its Upload-Length").into());
        }
        let Outcome { replaced, etag, bytes } = upload.finish(self.uploads).await?;
        let (status, action) = if replaced { (204, Action::Replace) } else { (201, Action::Upload) };
        (self.note.action, self.note.bytes) = (Some(action), Some(bytes));
        let mut response = exchange.respond(status).header("ETag", etag.unwrap_or_default());
        if upload.is_resumable() {
            response = response.header("Upload-Complete", "?1").header("Upload-Offset", received.to_string());
        }
        response.empty()
    }

    /// Responds that the upload can be continued.
    fn interrupted<C: Connection>(
        &self,
        response: ResponseWriter<'_, '_, C>,
        upload: &Upload,
        received: u64,
    ) -> Result<(), Error> {
        response
            .header("Location", location(upload.id()))
            .header("Upload-Complete", "?0")
            .header("Upload-Offset", received.to_string())
            .header("Upload-Limit", self.limit())
            .empty()
    }

    /// The upload with this id, if it is the caller's.
    async fn look(&self, id: &str) -> Result<(PartId, Record, u64), Refusal> {
        self.check_uploads_accepted()?;
        let id = PartId::parse(id).ok_or(Refusal::NotFound)?;
        let (record, received) = upload::look(self.uploads, id.clone()).await?;
        let own = record.user == self.user();
        if own || self.is_admin() { Ok((id, record, received)) } else { Err(Refusal::NotFound) }
    }

    /// The decoded path, and whether it names a folder.
    fn target(&mut self, encoded: &str) -> Result<(String, bool), Error> {
        self.check_uploads_accepted()?;
        let target = folder::decode(encoded).map_err(|wrong| match wrong {
            BadTarget::Malformed(error) => Problem::new(400, error.to_string()),
            BadTarget::Nothing => Refusal::Name { reason: "contains an empty part, . or .." }.problem(),
        })?;
        let path = target.path.into_owned();
        self.note.path = Some(path.clone());
        Ok((path, target.directory))
    }

    fn may_write(&mut self, path: String) -> Result<String, Refusal> {
        names::check_new(&path)?;
        self.check_write(&path)?;
        if self.caller.user().is_some() && permissions::is_users_folder(&path) {
            return Err(Refusal::Conflict("this path is reserved for a user's folder"));
        }
        Ok(path)
    }

    fn check_write(&mut self, path: &str) -> Result<(), Refusal> {
        if folder::is_reserved(path) {
            return Err(Refusal::NotFound);
        }
        self.permissions.check_write(path, self.caller).inspect_err(|_| self.note.denied = true)
    }

    fn check_uploads_accepted(&self) -> Result<(), Refusal> {
        if self.uploads.accepts_from(self.caller) { Ok(()) } else { Err(Refusal::ReadOnly) }
    }

    fn check_length(&self, length: Option<u64>) -> Result<(), Refusal> {
        let most = self.uploads.settings.max_bytes;
        if length.is_some_and(|length| length > most) { Err(Refusal::TooLong { most }) } else { Ok(()) }
    }

    /// The quota that applies to a path, bytes. In another user's folder it is the default, as that user's own is not known
    /// here.
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
    format!("{UPLOADS_PATH}{}", id.as_str())
}
