//! Parses and checks what peers send, field by field.

use std::net::{IpAddr, SocketAddr};

use http_io::{Fields, FieldsError};

use crate::entry::{Content, Entry, InvalidContent, InvalidName, Name};

/// Most files in one request.
pub(crate) const FILES_MAX: usize = 1000;
/// Longest body, bytes: enough for [`FILES_MAX`] files with the longest names, however they are encoded.
pub(crate) const BODY_LEN_MAX: u64 = 2 * 1024 * 1024;

/// Parses `{"peer", "files": [{"name", "hash", "size"}]}`.
pub(crate) fn registration(body: &[u8]) -> Result<(SocketAddr, Vec<Entry>), FieldsError> {
    let mut fields = Fields::read(body)?;
    let peer = peer(&mut fields)?;
    let files = files(&mut fields, |file| {
        let (name, content) = (name(file)?, content(file)?);
        let size = file.maybe_number("size")?.and_then(|size| u64::try_from(size).ok());
        let size = size.ok_or_else(|| FieldsError::field("size", "must be a number of bytes"))?;
        let entry = Entry { name, content, size };
        if entry.is_obtainable() { Ok(entry) } else { Err(impossible(&entry)) }
    })?;
    fields.finish("peer and files")?;
    Ok((peer, files))
}

/// What to deregister.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deregistration {
    /// These files.
    Files(Vec<(Name, Content)>),
    /// All files of the peer.
    All,
}

/// Parses `{"peer", "files": [{"name", "hash"}]}` or `{"peer", "all": true}`.
pub(crate) fn deregistration(body: &[u8]) -> Result<(SocketAddr, Deregistration), FieldsError> {
    let mut fields = Fields::read(body)?;
    let peer = peer(&mut fields)?;
    let what = match fields.maybe_truth("all")? {
        Some(true) => Deregistration::All,
        _ => Deregistration::Files(files(&mut fields, |file| Ok((name(file)?, content(file)?)))?),
    };
    fields.finish("peer, files and all").map_err(|error| match error {
        // `files` is left over only if `all` was true.
        FieldsError::Field { field, .. } if field == "files" => {
            FieldsError::field("files", "and all exclude each other: give either files or all")
        }
        other => other,
    })?;
    Ok((peer, what))
}

/// Parses `{"peer"}`.
pub(crate) fn renewal(body: &[u8]) -> Result<SocketAddr, FieldsError> {
    let mut fields = Fields::read(body)?;
    let peer = peer(&mut fields)?;
    fields.finish("peer")?;
    Ok(peer)
}

/// Parses the address of a peer, which must be one that can be connected to. IPv4-mapped addresses become IPv4, so that no
/// address has two names.
pub(crate) fn address(text: &str) -> Result<SocketAddr, FieldsError> {
    let usable = |address: &SocketAddr| !address.ip().is_unspecified() && address.port() != 0;
    let canonical = |address: SocketAddr| match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    };
    let address = text.parse().ok().map(canonical).filter(usable);
    address.ok_or_else(|| FieldsError::field("peer", "must be an address and a port, such as 127.0.0.1:8085"))
}

fn peer(fields: &mut Fields) -> Result<SocketAddr, FieldsError> {
    address(&fields.text("peer")?)
}

fn files<T>(
    fields: &mut Fields,
    read: impl Fn(&mut Fields) -> Result<T, FieldsError>,
) -> Result<Vec<T>, FieldsError> {
    let items = fields.items("files")?;
    if items.len() > FILES_MAX {
        return Err(FieldsError::field(
            "files",
            format!("must be {FILES_MAX} at most; send several requests"),
        ));
    }
    let one = |(number, mut item): (usize, Fields)| {
        let file = read(&mut item).and_then(|file| item.finish("name, hash and size").map(|()| file));
        file.map_err(|error| within(number, error))
    };
    items.into_iter().enumerate().map(one).collect()
}

/// Adds the position of the file to a field's name.
fn within(number: usize, error: FieldsError) -> FieldsError {
    match error {
        FieldsError::Field { field, reason } => {
            FieldsError::field(format!("files[{number}].{field}"), reason)
        }
        body => body,
    }
}

/// Why no file can have this size.
fn impossible(entry: &Entry) -> FieldsError {
    let why = match entry.size {
        0 => "is 0, but this is not the hash of an empty file".to_owned(),
        _ => format!("must be {} bytes (64 GiB) at most", Entry::SIZE_MAX),
    };
    FieldsError::field("size", why)
}

fn name(file: &mut Fields) -> Result<Name, FieldsError> {
    file.text("name")?.parse().map_err(|error: InvalidName| FieldsError::field("name", error.to_string()))
}

fn content(file: &mut Fields) -> Result<Content, FieldsError> {
    let invalid = |error: InvalidContent| FieldsError::field("hash", error.to_string());
    file.text("hash")?.parse().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_registration_is_read() {
        let hash = Content::of(b"x").to_string();
        let body = json!({"peer": "127.0.0.1:1", "files": [{"name": "a", "hash": hash, "size": 1}]});
        let (peer, files) = registration(body.to_string().as_bytes()).unwrap();
        assert_eq!(peer, "127.0.0.1:1".parse().unwrap());
        assert_eq!(files, [Entry { name: "a".parse().unwrap(), content: Content::of(b"x"), size: 1 }]);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_place() {
        let hash = Content::of(b"x").to_string();
        let good = json!({"name": "a", "hash": hash, "size": 1});
        let with = |file| json!({"peer": "127.0.0.1:1", "files": [good, file]});
        for (body, field) in [
            (with(json!({"name": "a/b", "hash": hash, "size": 1})), "files[1].name"),
            (with(json!({"name": "a", "hash": "x", "size": 1})), "files[1].hash"),
            (with(json!({"name": "a", "hash": hash, "size": -1})), "files[1].size"),
            (with(json!({"name": "a", "hash": hash})), "files[1].size"),
            (with(json!({"name": "a", "hash": hash, "size": 1, "x": 1})), "files[1].x"),
            (with(json!({"name": "a", "hash": hash, "size": 0})), "files[1].size"),
            (with(json!({"name": "a", "hash": hash, "size": Entry::SIZE_MAX + 1})), "files[1].size"),
            (with(json!({"name": "a", "hash": hash, "size": i64::MAX})), "files[1].size"),
            (json!({"peer": "127.0.0.1:0", "files": []}), "peer"),
            (json!({"peer": "0.0.0.0:1", "files": []}), "peer"),
            (json!({"peer": "example.org:1", "files": []}), "peer"),
            (json!({"files": []}), "peer"),
            (json!({"peer": "127.0.0.1:1"}), "files"),
            (json!({"peer": "127.0.0.1:1", "files": vec![good.clone(); FILES_MAX + 1]}), "files"),
        ] {
            let error = registration(body.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.status(), 422, "{error}");
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }

    #[test]
    fn files_and_all_at_once_are_told_to_exclude_each_other() {
        for files in [json!([]), json!("x")] {
            let both = json!({"peer": "127.0.0.1:1", "all": true, "files": files}).to_string();
            let error = deregistration(both.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("give either files or all"), "{error}");
        }
        let all = json!({"peer": "127.0.0.1:1", "all": true}).to_string();
        assert_eq!(deregistration(all.as_bytes()).unwrap().1, Deregistration::All);
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "\\PC{0,60}|[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = registration(body.as_bytes());
            let _ = deregistration(body.as_bytes());
            let _ = renewal(body.as_bytes());
        }
    }
}
