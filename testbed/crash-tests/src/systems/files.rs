//! Files.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use test_support::http::{Response, ask};

use super::{Client, System, words};
use crate::ledger::{Ledger, Value};

/// Longest file, bytes. A server writes in pieces of 64 KiB.
const LEN_MAX: usize = 300_000;
/// Folders that files lie in; at first none exists.
const FOLDERS: u64 = 60;
/// How many files to ask the server for after a crash.
const ASKED: usize = 12;
/// Where the server keeps uploads until they are complete.
const STAGING: &str = ".nstar-uploads";

/// The file server. A key is the number of a client and a path, its value the seed and the length of the bytes.
#[derive(Debug, Default)]
pub(super) struct Files {
    count: AtomicU64,
    /// Uploads in pieces that are not finished.
    unfinished: Mutex<Vec<Unfinished>>,
}

/// An upload in pieces.
#[derive(Debug)]
struct Unfinished {
    location: String,
    key: String,
    content: Content,
    /// How much was acknowledged, bytes.
    acknowledged: usize,
    /// Whether the last piece was sent, without an answer.
    is_ending: bool,
}

/// The bytes of a file, made from a seed.
#[derive(Debug, Clone, Copy)]
struct Content {
    seed: u64,
    len: usize,
}

impl Content {
    fn any(random: &mut fastrand::Rng) -> Self {
        // Most files are small.
        let most = if random.u8(..4) == 0 { LEN_MAX } else { 10_000 };
        Self { seed: random.u64(..), len: random.usize(1..most) }
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        fastrand::Rng::with_seed(self.seed).fill(&mut bytes);
        bytes
    }

    fn value(self) -> Value {
        Some(format!("{} {}", self.seed, self.len))
    }

    fn parse(value: &str) -> Option<Self> {
        let (seed, len) = value.split_once(' ')?;
        Some(Self { seed: seed.parse().ok()?, len: len.parse().ok()? })
    }
}

/// Which of these values the bytes are, or else how they differ.
fn recognised(bytes: &[u8], right: &[Value]) -> Value {
    let whole = |value: &&String| Content::parse(value).is_some_and(|content| content.bytes() == bytes);
    right.iter().flatten().find(whole).cloned().or_else(|| {
        let expected = right.iter().flatten().find_map(|value| Content::parse(value)).map(Content::bytes);
        let differs = expected.unwrap_or_default().iter().zip(bytes).position(|(one, other)| one != other);
        let differs = differs.map_or("from none on".to_owned(), |at| format!("from byte {at} on"));
        Some(format!("{} bytes, other ones {differs}", bytes.len()))
    })
}

/// The path in a key.
fn path(key: &str) -> &str {
    key.split_once(' ').map_or("", |(_, path)| path)
}

impl Files {
    /// A key that is new, or sometimes one that is known.
    fn key(&self, client: &mut Client<'_>) -> String {
        let own = client.ledger.any(&format!("{} ", client.number), &mut client.random);
        match own {
            Some((key, _)) if client.random.u8(..4) == 0 => key,
            _ => {
                let folder = client.random.u64(..FOLDERS);
                let number = self.count.fetch_add(1, Relaxed);
                format!("{} a{}/b{folder}/{number}", client.number, folder % 7)
            }
        }
    }

    fn put(&self, client: &mut Client<'_>) -> io::Result<()> {
        let (key, content) = (self.key(client), Content::any(&mut client.random));
        client.ledger.attempt(&key, content.value());
        let answer = client.ask(&format!("PUT /files/{}", path(&key)), "", &content.bytes())?;
        if matches!(answer.status, 201 | 204) {
            client.ledger.acknowledge(&key, content.value());
        }
        Ok(())
    }

    fn delete(&self, client: &mut Client<'_>) -> io::Result<()> {
        let own = client.ledger.any(&format!("{} ", client.number), &mut client.random);
        let Some((key, _)) = own else { return self.put(client) };
        client.ledger.attempt(&key, None);
        let answer = client.ask(&format!("DELETE /files/{}", path(&key)), "", b"")?;
        if answer.status == 204 {
            client.ledger.acknowledge(&key, None);
        }
        Ok(())
    }

    /// Removes a folder if it is empty, while others upload into it.
    fn delete_folder(client: &mut Client<'_>) -> io::Result<()> {
        let folder = client.random.u64(..FOLDERS);
        // Refused as long as there are files in it. No file depends on what becomes of it.
        client.ask(&format!("DELETE /files/a{}/b{folder}/", folder % 7), "", b"").map(drop)
    }

    /// Sends the first piece of a file.
    fn begin(&self, client: &mut Client<'_>) -> io::Result<()> {
        let (key, content) = (self.key(client), Content { len: LEN_MAX, ..Content::any(&mut client.random) });
        let piece = client.random.usize(1..content.len);
        let fields = format!("Upload-Complete: ?0\r\nUpload-Length: {}\r\n", content.len);
        let answer = client.ask(&format!("PUT /files/{}", path(&key)), &fields, &content.bytes()[..piece])?;
        if let (Some(location), Some(201)) = (answer.field("location"), last_status(&answer)) {
            let upload = Unfinished {
                location: location.to_owned(),
                key,
                content,
                acknowledged: piece,
                is_ending: false,
            };
            self.unfinished().push(upload);
        }
        Ok(())
    }

    /// Sends the next piece of a file, or the rest.
    fn resume(&self, client: &mut Client<'_>) -> io::Result<()> {
        let Some(mut upload) = self.take(client) else { return self.begin(client) };
        let Some(offset) = offset(client.to, client.ledger, &upload)? else { return Ok(()) };
        let is_last = client.random.u8(..2) == 0;
        let end = if is_last { upload.content.len } else { client.random.usize(offset..=upload.content.len) };
        let complete = u8::from(is_last);
        let fields = format!(
            "Content-Type: application/partial-upload\r\nUpload-Offset: {offset}\r\nUpload-Complete: ?{complete}\r\n"
        );
        if is_last {
            client.ledger.attempt(&upload.key, upload.content.value());
            upload.is_ending = true;
        }
        let piece = &upload.content.bytes()[offset..end];
        let answer = client.ask(&format!("PATCH {}", upload.location), &fields, piece);
        match &answer {
            Ok(answer) if is_last && matches!(answer.status, 201 | 204) => {
                client.ledger.acknowledge(&upload.key, upload.content.value());
                return Ok(());
            }
            Ok(answer) if answer.status == 204 => upload.acknowledged = end,
            _ => {}
        }
        self.unfinished().push(upload);
        answer.map(drop)
    }

    /// Takes an unfinished upload of a client.
    fn take(&self, client: &Client<'_>) -> Option<Unfinished> {
        let mut unfinished = self.unfinished();
        let own = format!("{} ", client.number);
        let place = unfinished.iter().position(|upload| upload.key.starts_with(&own))?;
        Some(unfinished.swap_remove(place))
    }

    fn unfinished(&self) -> MutexGuard<'_, Vec<Unfinished>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status of the response after those that only told of progress.
fn last_status(answer: &Response) -> Option<u16> {
    match answer.status {
        100..200 => answer.body.get(9..12)?.parse().ok(),
        status => Some(status),
    }
}

/// How much the server has of an upload: at least what it acknowledged. `None` if it is finished, or gone.
fn offset(to: SocketAddr, ledger: &Ledger, upload: &Unfinished) -> io::Result<Option<usize>> {
    let answer = ask(to, &format!("HEAD {}", upload.location), "", b"")?;
    let offset: Option<usize> = answer.field("upload-offset").and_then(|offset| offset.parse().ok());
    let key = &upload.key;
    match (answer.status, offset) {
        (204, Some(_)) if answer.field("upload-complete") == Some("?1") => Ok(None),
        (204, Some(offset)) if offset >= upload.acknowledged => Ok(Some(offset)),
        // It may have ended, and the server may not remember.
        (404, _) if upload.is_ending => Ok(None),
        (204 | 404, offset) => {
            let acknowledged = upload.acknowledged;
            ledger
                .fault(format!("{key}: the upload is at {offset:?}, after {acknowledged} were acknowledged"));
            Ok(None)
        }
        (status, _) => Err(io::Error::other(format!("{key}: {status} to a question about the upload"))),
    }
}

/// All files below a folder, by their paths.
fn walk(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if name == STAGING && prefix.is_empty() {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

impl System for Files {
    fn words(&self, data: &Path) -> Vec<OsString> {
        words("files", data, &["--root", "/", "--accounts", "none", "--open-uploads"])
    }

    fn act(&self, client: &mut Client<'_>) -> io::Result<()> {
        match client.random.u8(..9) {
            0 => self.delete(client),
            1 => self.begin(client),
            2 | 3 => self.resume(client),
            4 => Self::delete_folder(client),
            _ => self.put(client),
        }
    }

    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String> {
        let mut found = BTreeMap::new();
        walk(data, "", &mut found).map_err(|error| format!("the files cannot be read: {error}"))?;
        for (key, right) in ledger.entries() {
            let bytes = found.remove(path(&key));
            ledger.compare(&key, bytes.and_then(|bytes| recognised(&bytes, &right)));
        }
        found.into_keys().for_each(|path| ledger.fault(format!("nobody uploaded {path}")));
        Ok(())
    }

    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()> {
        for upload in self.unfinished().iter() {
            offset(to, ledger, upload)?;
        }
        let mut entries = ledger.entries();
        random.shuffle(&mut entries);
        for (key, right) in entries.into_iter().take(ASKED) {
            let answer = ask(to, &format!("GET /files/{}", path(&key)), "", b"")?;
            let found = (answer.status == 200).then(|| recognised(&answer.bytes, &right)).flatten();
            ledger.compare(&key, found);
        }
        Ok(())
    }
}
