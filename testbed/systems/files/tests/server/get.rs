//! Files, ranges, conditions and listings.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::{MetadataExt, PermissionsExt},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use engine::Model;
use files::{AccountsBackend, Options};

use crate::support::{MODELS, ask, get, send, serve_files, serve_open};

/// The lengths of a file sent from memory and of one sent by the kernel.
const SIZES: [(&str, usize); 3] = [("empty.txt", 0), ("small.txt", 1_000), ("large.bin", 300_000)];

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, length) in SIZES {
        fs::write(folder.path().join(name), bytes(length)).unwrap();
    }
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/a b.txt"), "inner").unwrap();
    folder
}

/// Runs a check twice, as the second response may come from the cache.
fn twice(mut check: impl FnMut()) {
    check();
    check();
}

#[test]
fn whole_files_and_their_heads() {
    let folder = tree();
    for model in MODELS {
        let server = serve_open(model, folder.path());
        let to = server.local_addr();
        for (name, length) in SIZES {
            let target = format!("/files/{name}");
            twice(|| {
                let (whole, head) = (get(to, &target, ""), ask(to, "HEAD", &target, ""));
                assert_eq!((whole.status, &whole.bytes), (200, &bytes(length)), "{model:?} {name}");
                assert_eq!(whole.field("content-length"), Some(length.to_string().as_str()));
                assert_eq!((head.status, head.bytes.len()), (200, 0));
                for field in ["content-length", "etag", "last-modified", "content-type", "accept-ranges"] {
                    assert!(whole.field(field).is_some(), "{field}");
                    assert_eq!(whole.field(field), head.field(field), "{field}");
                }
            });
        }
        assert_eq!(get(to, "/files/small.txt", "").field("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(get(to, "/files/sub/a%20b.txt?x=1", "").body, "inner");
    }
}

#[test]
fn parts() {
    let folder = tree();
    for model in MODELS {
        let server = serve_open(model, folder.path());
        let to = server.local_addr();
        for (name, length) in SIZES.into_iter().filter(|(_, length)| *length > 0) {
            let (target, all) = (format!("/files/{name}"), bytes(length));
            let part = |range: &str| get(to, &target, &format!("Range: {range}\r\n"));
            for (range, from, to) in
                [("bytes=0-0", 0, 1), ("bytes=10-", 10, length), ("bytes=-7", length - 7, length)]
            {
                let answer = part(range);
                assert_eq!((answer.status, &answer.bytes[..]), (206, &all[from..to]), "{name} {range}");
                let shown = format!("bytes {from}-{}/{length}", to - 1);
                assert_eq!(answer.field("content-range"), Some(shown.as_str()));
                assert!(answer.field("etag").is_some());
            }
            let beyond = part(&format!("bytes={length}-"));
            assert_eq!(beyond.status, 416);
            assert_eq!(beyond.field("content-range"), Some(format!("bytes */{length}").as_str()));
            for whole in ["bytes=0-0,2-2", "bytes=9-1", "lines=1-2"] {
                assert_eq!((part(whole).status, part(whole).bytes), (200, all.clone()), "{whole}");
            }
            let head = ask(to, "HEAD", &target, "Range: bytes=0-0\r\n");
            assert_eq!(head.status, 200, "a range is for GET only");
        }
    }
}

#[test]
fn conditions() {
    let folder = tree();
    let server = serve_open(Model::Epoll, folder.path());
    let to = server.local_addr();
    for (name, _) in SIZES {
        let target = format!("/files/{name}");
        let first = get(to, &target, "");
        let (etag, modified) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
        let with = |fields: String| get(to, &target, &fields);
        for fields in [format!("If-None-Match: {etag}\r\n"), format!("If-Modified-Since: {modified}\r\n")] {
            let unchanged = with(fields);
            assert_eq!((unchanged.status, unchanged.bytes.len()), (304, 0));
            assert_eq!(unchanged.field("etag"), Some(etag));
        }
        assert_eq!(with("If-None-Match: \"other\"\r\n".into()).status, 200);
        assert_eq!(with("If-Match: \"other\"\r\n".into()).status, 412);
        assert_eq!(with(format!("If-Match: {etag}\r\n")).status, 200);
        assert_eq!(with("If-Unmodified-Since: Thu, 01 Jan 1970 00:00:01 GMT\r\n".into()).status, 412);
        assert_eq!(with("Range: bytes=0-0\r\nIf-Range: \"other\"\r\n".into()).status, 200);
    }
}

#[test]
fn listings_for_people_and_programs() {
    let folder = tree();
    let server = serve_open(Model::Epoll, folder.path());
    let to = server.local_addr();
    let json = get(to, "/files/", "").json();
    let names: Vec<_> =
        json["entries"].as_array().unwrap().iter().map(|entry| entry["href"].as_str().unwrap()).collect();
    assert_eq!(names, ["sub/", "empty.txt", "large.bin", "small.txt"]);
    let html = get(to, "/files/sub/", "Accept: text/html,*/*\r\n");
    assert_eq!(html.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(html.field("content-security-policy").is_some());
    assert!(html.body.contains("<a href=\"a%20b.txt\">a b.txt</a>"), "{}", html.body);
    let unslashed = get(to, "/files/sub", "");
    assert_eq!((unslashed.status, unslashed.field("location")), (301, Some("/files/sub/")));
    assert_eq!(get(to, "/", "").field("location"), Some("/files/"));
}

#[test]
fn errors_are_json() {
    let folder = tree();
    let server = serve_open(Model::Threads, folder.path());
    let to = server.local_addr();
    for (method, target, status) in [
        ("GET", "/files/missing", 404),
        ("GET", "/files/small.txt/", 404),
        ("GET", "/files/small.txt/x", 404),
        ("GET", "/other", 404),
        ("GET", "/files/%zz", 400),
        ("GET", "/files/a%00b", 400),
        ("POST", "/files/small.txt", 405),
        ("PUT", "/healthz", 405),
        ("OPTIONS", "/accounts", 405),
    ] {
        let answer = ask(to, method, target, "");
        assert_eq!(answer.status, status, "{method} {target}");
        assert!(answer.json()["error"].is_string());
        assert_eq!(answer.field("allow").is_some(), status == 405, "{method} {target}");
    }
    assert_eq!(send(to, "POST", "/accounts", "", "{}").unwrap().status, 404, "open files have no accounts");
    assert_eq!(get(to, "/healthz", "").body, "ok\n");
    let metrics = get(to, "/metrics", "").body;
    for shown in ["nstar_files_requests_total{status=\"404\"}", "nstar_files_connections_accepted_total 12"] {
        assert!(metrics.contains(shown), "{shown} is missing in:\n{metrics}");
    }
}

#[test]
fn a_file_the_server_may_not_read_is_forbidden() {
    let folder = tree();
    let path = folder.path().join("small.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("SKIPPED: this user may read everything; run as another than root");
        return;
    }
    let server = serve_open(Model::Epoll, folder.path());
    assert_eq!(get(server.local_addr(), "/files/small.txt", "").status, 403);
}

#[test]
fn a_changed_file_is_sent_as_it_is_now() {
    for model in MODELS {
        let folder = tree();
        let mut options = Options::new(folder.path(), AccountsBackend::Open);
        options.file_check_every = Duration::ZERO;
        let server = serve_files(model, options);
        let to = server.local_addr();
        let path = folder.path().join("changing");
        for length in [10, 20, 5, 100_000, 50_000, 0, 40_000] {
            fs::write(&path, bytes(length)).unwrap();
            let answer = get(to, "/files/changing", "");
            assert_eq!((answer.status, answer.bytes.len()), (200, length), "{model:?}");
            assert_eq!(answer.field("content-length"), Some(length.to_string().as_str()));
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(get(to, "/files/changing", "").status, 404);
    }
}

/// A large cached file is compared with the disk before each response, as its bytes are not cached.
#[test]
fn a_large_file_changed_in_place_keeps_its_framing() {
    let folder = tree();
    let mut options = Options::new(folder.path(), AccountsBackend::Open);
    options.file_check_every = Duration::from_secs(3600);
    let server = serve_files(Model::Epoll, options);
    let to = server.local_addr();
    let file = fs::File::options().write(true).open(folder.path().join("large.bin")).unwrap();
    for length in [300_000_u64, 200_000, 250_000] {
        file.set_len(length).unwrap();
        for _ in 0..2 {
            let answer = get(to, "/files/large.bin", "");
            assert_eq!(answer.field("content-length"), Some(length.to_string().as_str()));
            assert_eq!(answer.bytes.len() as u64, length);
            settle(&file);
        }
    }
}

/// Waits until the file can be cached: for more than one tick of the file system's clock since its last change.
fn settle(file: &fs::File) {
    let changed = file.metadata().unwrap();
    let changed = Duration::new(changed.ctime().unsigned_abs(), changed.ctime_nsec().unsigned_abs() as u32);
    while SystemTime::now().duration_since(UNIX_EPOCH).unwrap() < changed + Duration::from_millis(100) {
        std::thread::yield_now();
    }
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let folder = tree();
    for model in MODELS {
        let server = serve_open(model, folder.path());
        let mut request = String::new();
        for name in ["small.txt", "large.bin", "missing", "small.txt"] {
            request.push_str(&format!("GET /files/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        }
        request.push_str("GET /files/empty.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let all = raw(server.local_addr(), request.as_bytes());
        let statuses: Vec<_> = String::from_utf8_lossy(&all)
            .match_indices("HTTP/1.1 ")
            .map(|(at, _)| String::from_utf8_lossy(&all).get(at + 9..at + 12).unwrap().to_owned())
            .collect();
        assert_eq!(statuses.len(), 5, "{model:?}: {statuses:?}");
        let large = bytes(300_000);
        assert!(all.windows(large.len()).any(|window| window == large), "{model:?}: the large file is whole");
    }
}

fn raw(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(request).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}
