//! `GET /me`: the caller's name, role, space used and quota.

use std::sync::Arc;

use accounts::Role;
use engine::service::Connection;
use http_io::server::{Error, Exchange};
use serde::Serialize;

use crate::{
    access::{identity::Caller, permissions},
    writing::uploads::Uploads,
};

#[derive(Serialize)]
struct Me<'a> {
    /// `None` without accounts.
    name: Option<&'a str>,
    role: Option<Role>,
    /// Their own folder, below `/files/`.
    folder: Option<String>,
    /// Space used there, including uploads in progress, bytes.
    used: Option<u64>,
    /// The quota there, bytes. `None` if unlimited.
    quota: Option<u64>,
    /// Whether they may upload at all.
    uploads: bool,
    /// Maximum length of an upload, bytes.
    max_upload: u64,
}

/// Responds with who the caller is.
pub(crate) async fn answer<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    caller: &Caller,
    uploads: &Arc<Uploads>,
) -> Result<(), Error> {
    let user = caller.user();
    let folder = user.and_then(|user| permissions::own_folder(&user.name));
    let used = match user {
        Some(user) if uploads.accepts_from(caller) && folder.is_some() => {
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
        uploads: uploads.accepts_from(caller),
        max_upload: uploads.settings.max_bytes,
    };
    let response = exchange.respond(200).header("Cache-Control", "no-store");
    response.header("Cross-Origin-Resource-Policy", "same-origin").json_of(&me)
}
