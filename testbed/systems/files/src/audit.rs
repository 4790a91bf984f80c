//! The audit file: one line of JSON for each change and each refused request.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        PoisonError, RwLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Instant,
};

use engine::{service::Connection, shared::Atomics};
use http_io::{Method, Problem, server::Exchange};
use serde::Serialize;
use serve::Reloads;

use crate::access::identity::Caller;

/// How much of what the client of a refused request chose is recorded, bytes each. What was changed is recorded whole.
const REFUSED_SHOWN_MAX: usize = 512;

/// The audit file.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    file: RwLock<File>,
    reloads: Reloads,
    /// How many of them this process has followed.
    followed: AtomicU64,
    strangers: Allowance,
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
    /// The decoded path that the request is about, if it is known and differs from the request's own path.
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
    /// Refusals of unknown clients that were not recorded since the last one that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<u64>,
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
    /// Opens the file for appending, and anew with the first line after each of the `reloads`.
    pub(crate) fn open(path: &Path, reloads: Reloads) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: RwLock::new(open(path)?),
            followed: AtomicU64::new(reloads.count()),
            reloads,
            strangers: Allowance::new(),
            failing: AtomicBool::new(false),
        })
    }

    /// Records a finished request, if it changed something or was refused. Anybody may cause refusals without end, so that those
    /// of unknown clients are limited. `path` is its own path, without secrets.
    pub(crate) fn write<C: Connection>(&self, exchange: &Exchange<'_, C>, path: &str, note: &Note) {
        let status = exchange.status().unwrap_or(0);
        let Some(action) = note.action(exchange, status) else { return };
        let user = note.caller.as_ref().and_then(Caller::user).map(|user| user.name.as_str());
        let path = note.path.as_deref().unwrap_or(path);
        let is_refused = action == Action::Refuse;
        let suppressed = if is_refused && user.is_none() {
            let Some(suppressed) = self.strangers.admit(Instant::now()) else { return };
            (suppressed > 0).then_some(suppressed)
        } else {
            None
        };
        let line = Line {
            time: jiff::Timestamp::now().to_string(),
            peer: exchange.peer().to_string(),
            client: Some(exchange.requester().address)
                .filter(|&client| client != exchange.peer().ip().to_canonical()),
            user,
            action,
            method: cut(exchange.method_text()),
            path: if is_refused { cut(path) } else { path },
            bytes: note.bytes,
            status,
            reason: note.reason.as_deref().map(cut),
            suppressed,
        };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        self.append(&text);
    }

    fn append(&self, line: &[u8]) {
        self.follow();
        // With a single write, lines of several processes never mix (O_APPEND).
        match (&*self.file.read().unwrap_or_else(PoisonError::into_inner)).write_all(line) {
            Ok(()) => self.failing.store(false, Relaxed),
            Err(error) => {
                if !self.failing.swap(true, Relaxed) {
                    tracing::error!(%error, "the audit file cannot be written");
                }
            }
        }
    }

    /// Opens the file anew if that was asked for since the last line. The old one stays in use if that fails.
    fn follow(&self) {
        let asked = self.reloads.count();
        if self.followed.swap(asked, SeqCst) == asked {
            return;
        }
        match open(&self.path) {
            Ok(file) => *self.file.write().unwrap_or_else(PoisonError::into_inner) = file,
            Err(error) => {
                tracing::error!(%error, "the audit file cannot be opened anew; the old one stays in use");
            }
        }
    }
}

/// Opens a file to append. A new one is readable by its owner only, as it says who was refused what.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(REFUSED_SHOWN_MAX)]
}

/// How many lines about unknown clients are written: one a second, or as many as in a minute at once. All processes share it.
#[derive(Debug)]
struct Allowance {
    begun: Instant,
    /// When the next line is due if each waits for its second, ms since the beginning; and how many were suppressed.
    cells: Atomics,
}

const DUE: usize = 0;
const SUPPRESSED: usize = 1;
const LINE_EVERY_MS: u64 = 1_000;
const LINES_AT_ONCE: u64 = 60;

impl Allowance {
    fn new() -> Self {
        Self { begun: Instant::now(), cells: Atomics::new(2) }
    }

    /// The number of lines suppressed before the one at `now`, or `None` if that one is suppressed too.
    fn admit(&self, now: Instant) -> Option<u64> {
        let now = u64::try_from(now.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX);
        let next = |due: u64| {
            let due = due.max(now);
            (due - now < LINES_AT_ONCE * LINE_EVERY_MS).then(|| due.saturating_add(LINE_EVERY_MS))
        };
        if self.cells[DUE].fetch_update(SeqCst, SeqCst, next).is_ok() {
            return Some(self.cells[SUPPRESSED].swap(0, SeqCst));
        }
        self.cells[SUPPRESSED].fetch_add(1, SeqCst);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    #[test]
    fn refusals_of_unknown_clients_fill_no_disk() {
        let allowance = Allowance::new();
        let written = |second: u64, requests: usize| -> Vec<u64> {
            let at = allowance.begun + Duration::from_secs(second);
            (0..requests).filter_map(|_| allowance.admit(at)).collect()
        };
        assert_eq!(written(0, 1_000), [0; 60]);
        assert_eq!(written(1, 1_000), [940]);
        assert_eq!(written(2, 1), [999]);
        assert_eq!(written(3_600, 1_000), [0; 60], "no more than at first, however long it was quiet");
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_anew_when_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["audit", "audit.1"].map(|name| folder.path().join(name));
        let reloads = Reloads::default();
        let audit = Audit::open(&path, reloads.clone()).unwrap();
        audit.append(b"one\n");
        fs::rename(&path, &moved).unwrap();
        audit.append(b"two\n");
        reloads.ask();
        audit.append(b"three\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn of_a_long_path_the_beginning_is_shown_in_whole_characters() {
        assert_eq!(cut("/files/a"), "/files/a");
        assert_eq!(cut(&"é".repeat(4_000)), "é".repeat(256));
        let shifted = format!("a{}", "é".repeat(4_000));
        assert_eq!(cut(&shifted).len(), 511);
    }
}
