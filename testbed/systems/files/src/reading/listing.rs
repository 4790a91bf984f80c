//! The contents of a directory, as JSON for programs and as HTML for people.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    os::unix::fs::MetadataExt,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use engine::offload::{self, Pool, Ticket};
use folder::{FindError, OpenError, Root};
use http_io::Problem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::fs::FileType;
use serde::Serialize;

use crate::{
    access::{
        identity::Caller,
        permissions::{OpenFiles, Permissions},
    },
    reading::sending,
};

/// Maximum number of entries in a listing. A listing that is cut says so.
const ENTRIES_MAX: usize = 10_000;

/// The characters that are encoded in a segment of a path: all but the unreserved ones (RFC 3986 section 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The contents of a directory, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Its path below the root, with a slash at the end.
    path: String,
    /// Whether the caller may upload here.
    writable: bool,
    entries: Vec<Entry>,
    /// Whether there are more entries.
    truncated: bool,
}

/// An entry, as it waits to be sent: its reference is made only then, as it may be three times as long as the name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    kind: Kind,
    /// Length of a file, bytes.
    size: Option<u64>,
    /// Unix seconds.
    modified_s: i64,
}

/// An entry as JSON.
#[derive(Serialize)]
struct ShownEntry<'a> {
    name: &'a str,
    /// Relative to the directory.
    href: String,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    modified_s: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Directory,
    File,
}

impl Listing {
    /// Reads a directory. Leaves out what cannot be downloaded (links that lead out, pipes, names that are not UTF-8) and what
    /// the caller may not see.
    pub(crate) fn read(files: &OpenFiles, path: &str, caller: &Caller) -> Result<Self, OpenError> {
        let (root, permissions) = (files.root(), files.rules());
        let mut entries = Vec::new();
        let mut truncated = false;
        let through_link = root.link_target(path)?.is_some();
        for item in root.open_directory(path)? {
            let item = item?;
            let is_link =
                through_link || !matches!(item.file_type(), FileType::RegularFile | FileType::Directory);
            let Ok(name) = item.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || folder::is_reserved_name(name) {
                continue;
            }
            truncated = entries.len() >= ENTRIES_MAX;
            if truncated {
                break;
            }
            let shown = |entry: &Entry| {
                entry.is_shown(&join(path, name), permissions, caller)
                    && (!is_link || entry.target_is_shown(&join(path, name), files, caller))
            };
            entries.extend(entry(root, path, name).filter(shown));
        }
        entries.sort_by(|one: &Entry, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        let slash = if path.is_empty() { "" } else { "/" };
        let writable = permissions.rights(&permissions.place(path), caller).write;
        Ok(Self { path: format!("{path}{slash}"), writable, entries, truncated })
    }

    /// Renders it for programs, a piece at a time. What has been rendered is no longer held.
    pub(crate) fn into_json(self) -> impl Iterator<Item = String> {
        let Self { path, writable, entries, truncated } = self;
        let begin = format!("{{\"path\":{},\"writable\":{writable},\"entries\":[", json(&path));
        let entry = |(number, entry): (usize, Entry)| {
            let comma = if number > 0 { "," } else { "" };
            format!("{comma}{}", entry.to_json())
        };
        let end = format!("],\"truncated\":{truncated}}}");
        std::iter::once(begin).chain(entries.into_iter().enumerate().map(entry)).chain([end])
    }

    /// Renders it for people, a piece at a time.
    pub(crate) fn into_html(self) -> impl Iterator<Item = String> {
        let title = format!("/{}", escape(&self.path));
        let up = if self.path.is_empty() { "" } else { "<tr><td><a href=\"../\">../</a><td><td>\n" };
        let more = if self.truncated { "<p>There are more entries than shown here.\n" } else { "" };
        let begin = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <h1>{title}</h1>\n<table>\n<thead><tr><th>Name<th>Size<th>Modified</thead>\n{up}"
        );
        let rows = self.entries.into_iter().map(|entry| entry.to_html());
        std::iter::once(begin).chain(rows).chain([format!("</table>\n{more}")])
    }
}

/// Text and numbers always have a JSON form.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;margin:2rem;color-scheme:light dark}\
                     td,th{text-align:left;padding:0 1.5rem 0 0}td:nth-child(2){text-align:right}";

impl Entry {
    fn is_shown(&self, path: &str, permissions: &Permissions, caller: &Caller) -> bool {
        match self.kind {
            Kind::Directory => permissions.shows_folder(path, caller),
            Kind::File => permissions.shows_file(path, caller),
        }
    }

    /// Whether a caller may also see what a path is that may lead through a symbolic link.
    fn target_is_shown(&self, path: &str, files: &OpenFiles, caller: &Caller) -> bool {
        match files.root().link_target(path) {
            Ok(None) => true,
            Ok(Some(target)) => {
                !folder::is_reserved(&target) && self.is_shown(&target, files.rules(), caller)
            }
            Err(_) => false,
        }
    }

    /// Its path relative to the directory, percent-encoded.
    fn href(&self) -> String {
        format!("{}{}", utf8_percent_encode(&self.name, SEGMENT), self.slash())
    }

    fn slash(&self) -> &'static str {
        if self.kind == Kind::Directory { "/" } else { "" }
    }

    fn to_json(&self) -> String {
        json(&ShownEntry {
            name: &self.name,
            href: self.href(),
            kind: self.kind,
            size: self.size,
            modified_s: self.modified_s,
        })
    }

    fn to_html(&self) -> String {
        let (name, href, slash) = (escape(&self.name), escape(&self.href()), self.slash());
        let size = self.size.map(|bytes| bytes.to_string()).unwrap_or_default();
        let modified = u64::try_from(self.modified_s).unwrap_or(0);
        let modified =
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(modified.min(folder::DATE_S_MAX)));
        format!("<tr><td><a href=\"{href}\">{name}{slash}</a><td>{size}<td>{modified}\n")
    }
}

fn entry(root: &Root, directory: &str, name: &str) -> Option<Entry> {
    let metadata = root.metadata(&join(directory, name))?;
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_file() => Kind::File,
        _ => return None,
    };
    Some(Entry {
        name: name.to_owned(),
        kind,
        size: (kind == Kind::File).then_some(metadata.len()),
        modified_s: metadata.mtime(),
    })
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Escapes text for HTML, in an element or a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Maximum number of directories that wait to be read.
const WAITING_MAX: usize = 256;

/// The thread that reads directories, as a large one would hold up an event loop. Users take turns.
#[derive(Debug)]
pub(crate) struct Lister {
    thread: Pool,
    /// Random, so that nobody can choose a name that shares the turns of another.
    hash: RandomState,
}

impl Default for Lister {
    fn default() -> Self {
        Self { thread: Pool::new("files-list", 1, WAITING_MAX), hash: RandomState::new() }
    }
}

impl Lister {
    /// Reads the directory at this decoded path for a caller.
    pub(crate) async fn list(
        &self,
        files: &Arc<OpenFiles>,
        path: String,
        caller: &Caller,
    ) -> Result<Listing, Problem> {
        let (files, user) = (Arc::clone(files), caller.user().cloned());
        let listed = self.run_for(caller, move || Listing::read(&files, &path, &user.into())).await;
        listed.map_err(problem)?.map_err(|error| sending::problem(FindError::Open(error)))
    }

    /// Queues a job for the caller's turn.
    fn run_for<T: Send + 'static>(
        &self,
        caller: &Caller,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> offload::Run<T> {
        let group = caller.user().map_or(0, |user| self.hash.hash_one(&user.name));
        self.thread.run_for(Ticket { group, is_known: true }, job)
    }
}

/// Why a directory is not read now. That too many are waiting is no error of the server, and any client may cause it as often
/// as it likes: the log says nothing of it.
fn problem(error: offload::Error) -> Problem {
    match error {
        offload::Error::Full => accounts::problem(503, "too many listings are waiting for the disk"),
        error => sending::problem(FindError::Open(OpenError::System(io::Error::other(error)))),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, sync::mpsc};

    use accounts::{Role, User};
    use engine::block_on;

    use super::*;

    fn listing(fill: impl FnOnce(&std::path::Path), path: &str) -> Listing {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let root = Root::open(folder.path()).unwrap();
        let files = OpenFiles::new(root, Permissions::default(), Duration::ZERO, 0);
        Listing::read(&files, path, &Caller::Anyone).unwrap()
    }

    #[test]
    fn files_that_can_be_downloaded_are_listed_after_folders() {
        let listing = listing(
            |at| {
                fs::write(at.join("b.txt"), "12345").unwrap();
                fs::create_dir(at.join("sub")).unwrap();
                symlink("b.txt", at.join("link")).unwrap();
                symlink("/etc/passwd", at.join("out")).unwrap();
                symlink("missing", at.join("dangling")).unwrap();
            },
            "",
        );
        let shown: Vec<_> =
            listing.entries.iter().map(|entry| (entry.href(), entry.kind, entry.size)).collect();
        let expected =
            [("sub/", Kind::Directory, None), ("b.txt", Kind::File, Some(5)), ("link", Kind::File, Some(5))];
        assert_eq!(shown, expected.map(|(href, kind, size)| (href.to_owned(), kind, size)));
        assert!(!listing.truncated);
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let listing = listing(|at| fs::write(at.join("<script>\"'&%?#.txt"), "").unwrap(), "");
        let html: String = listing.into_html().collect();
        assert!(!html.contains("<script>"), "{html}");
        assert!(html.contains("href=\"%3Cscript%3E%22%27%26%25%3F%23.txt\""), "{html}");
        assert!(html.contains("&lt;script&gt;&quot;&#39;&amp;%?#.txt"), "{html}");
    }

    #[test]
    fn json_has_the_same_entries() {
        let listing = listing(
            |at| {
                fs::create_dir(at.join("sub")).unwrap();
                fs::write(at.join("sub/é"), "12").unwrap();
            },
            "sub",
        );
        let json: String = listing.into_json().collect();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["path"], "sub/");
        assert_eq!(json["entries"][0]["name"], "é");
        assert_eq!(json["entries"][0]["href"], "%C3%A9");
        assert_eq!(json["entries"][0]["size"], 2);
        assert_eq!(json["entries"][0]["kind"], "file");
        assert_eq!(json["truncated"], false);
    }

    #[test]
    fn an_entry_that_waits_to_be_sent_holds_its_name_once() {
        assert_eq!(size_of::<Entry>(), size_of::<(String, Option<u64>, i64, Kind)>());
    }

    #[test]
    fn a_user_who_fills_the_queue_leaves_room_for_others() {
        let [ann, bob] = ["ann", "bob"]
            .map(|name| Caller::from(Some(User { name: name.into(), role: Role::User, quota_bytes: None })));
        let lister = Lister::default();
        let (release, held) = mpsc::channel::<()>();
        let first = lister.run_for(&ann, move || held.recv().is_err());
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| lister.run_for(&ann, || ())).collect();
        let one_more = lister.run_for(&ann, || ());
        let other = lister.run_for(&bob, || ());
        drop(release);
        assert_eq!((block_on(first), block_on(other)), (Ok(true), Ok(())));
        assert_eq!(block_on(one_more), Err(offload::Error::Full));
        let refused = waiting.into_iter().map(block_on).filter(Result::is_err).count();
        assert_eq!(refused, 1, "the other user has its place");
    }

    #[test]
    fn a_full_queue_is_told_to_the_client_and_not_to_the_log() {
        let log = Arc::new(tempfile::tempfile().unwrap());
        let subscriber = tracing_subscriber::fmt().with_writer(Arc::clone(&log)).finish();
        let refused = tracing::subscriber::with_default(subscriber, || problem(offload::Error::Full));
        assert_eq!((refused.status(), log.metadata().unwrap().len()), (503, 0));
    }
}
