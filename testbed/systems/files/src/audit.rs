//! The audit file: one line of JSON for each change and each refused request.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use engine::service::Connection;
use http_io::{Method, Problem, server::Exchange};
use serde::Serialize;

use crate::access::identity::Caller;

/// The audit file.
#[derive(Debug)]
pub(crate) struct Audit {
    file: File,
    /// Whether the last line could not be written. Avoids a message for every line.
    failing: AtomicBool,
}

/// What to record of a request, gathered while it is handled.
#[derive(Debug, Default)]
pub(crate) struct Note {
    /// Who sent it, once known.
    pub(crate) caller: Option<Caller>,
    /// What was changed.
    pub(crate) action: Option<Action>,
    /// The decoded path that the request is about, if it differs from the request's own path.
    pub(crate) path: Option<String>,
    /// Length of what was uploaded or deleted, bytes.
    pub(crate) bytes: Option<u64>,
    /// Whether the caller lacked permission, even if the response does not say so.
    pub(crate) denied: bool,
    /// Why it was refused.
    pub(crate) reason: Option<String>,
}

/// What the request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// It created a file.
    Upload,
    /// It replaced a file.
    Replace,
    /// It removed a file or folder.
    Delete,
    /// It was refused.
    Refuse,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    peer: String,
    /// The client behind a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    action: Action,
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Note {
    /// Notes that the request was refused.
    pub(crate) fn refused(&mut self, problem: &Problem) {
        self.action = None;
        self.reason = Some(problem.to_string());
    }

    /// The action to record, if any.
    fn action<C: Connection>(&self, exchange: &Exchange<'_, C>, status: u16) -> Option<Action> {
        let writes = matches!(exchange.method(), Method::Put | Method::Patch | Method::Delete);
        let refused = (writes && status >= 400) || matches!(status, 401 | 403) || self.denied;
        if refused { Some(Action::Refuse) } else { self.action }
    }
}

impl Audit {
    /// Opens the file for appending. A new file is readable by its owner only, as it says who was refused what.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file, failing: AtomicBool::new(false) })
    }

    /// Records a finished request, if it changed something or was refused.
    pub(crate) fn write<C: Connection>(&self, exchange: &Exchange<'_, C>, note: &Note) {
        let status = exchange.status().unwrap_or(0);
        let Some(action) = note.action(exchange, status) else { return };
        let line = Line {
            time: jiff::Timestamp::now().to_string(),
            peer: exchange.peer().to_string(),
            client: Some(exchange.requester().address)
                .filter(|&client| client != exchange.peer().ip().to_canonical()),
            user: note.caller.as_ref().and_then(Caller::user).map(|user| user.name.as_str()),
            action,
            method: exchange.method_text(),
            path: note.path.as_deref().unwrap_or_else(|| exchange.path()),
            bytes: note.bytes,
            status,
            reason: note.reason.as_deref(),
        };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        // With a single write, lines of several processes never mix (O_APPEND).
        match (&self.file).write_all(&text) {
            Ok(()) => self.failing.store(false, Relaxed),
            Err(error) => {
                if !self.failing.swap(true, Relaxed) {
                    tracing::error!(%error, "the audit file cannot be written");
                }
            }
        }
    }
}
