//! `GET /me`: who somebody is here, and how much they keep and may keep.

use std::sync::Arc;

use accounts::Role;
use engine::service::Connection;
use http_io::server::{Error, Exchange};
use serde::Serialize;

use crate::{
    access::{caller::Caller, permissions},
    writing::upload::Uploads,
};

#[derive(Serialize)]
struct Me<'a> {
    /// None where there are no accounts.
    name: Option<&'a str>,
    role: Option<Role>,
    /// The folder of their own, below `/files/`.
    folder: Option<String>,
    /// What they keep there, uploads under way included, bytes.
    used: Option<u64>,
    /// What they may keep there, bytes; none: what the disk holds.
    quota: Option<u64>,
    /// Whether they may upload at all.
    uploads: bool,
    /// Longest upload, bytes.
    max_upload: u64,
}

/// Answers with who the caller is.
pub(crate) async fn answer<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    caller: &Caller,
    uploads: &Arc<Uploads>,
) -> Result<(), Error> {
    let user = caller.user();
    let folder = user.and_then(|user| permissions::own_folder(&user.name));
    let used = match user {
        Some(user) if uploads.takes_from(caller) && folder.is_some() => {
            Some(uploads.used(user.name.clone()).await?)
        }
        _ => None,
    };
    let me = Me {
        name: user.map(|user| user.name.as_str()),
        role: user.map(|user| user.role),
        folder: folder.map(|folder| format!("{folder}/")),
        used,
        quota: uploads.settings.quota_of(caller),
        uploads: uploads.takes_from(caller),
        max_upload: uploads.settings.max_bytes,
    };
    exchange.respond(200).header("Cache-Control", "no-store").json_of(&me)
}
