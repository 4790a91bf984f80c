//! The log contains every request and no secrets.

use std::{
    fs,
    io::Write,
    sync::{Arc, Mutex},
};

use engine::Model;
use files::Options;

use crate::support::{any_port, ask, basic, get, post, send, serve_accounts, serve_files};

/// The log, to which all tests of this program write.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_log_contains_requests_and_no_secrets() {
    const SECRET: &str = "xyzzy-plugh-2718";
    let log = Log::default();
    let kept = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || kept.clone())
        .init();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("root/logged-file"), "hello").unwrap();
    let accounts = serve_accounts(any_port(), folder.path());
    let given = format!("http://{}", accounts.local_addr());
    let mut options = Options::new(folder.path().join("root"), given.parse().unwrap());
    options.uploads.keep_free_bytes = Some(0);
    let server = serve_files(Model::Epoll, options);
    let to = server.local_addr();

    post(to, "/accounts", "ann", SECRET);
    let token = post(to, "/sessions", "ann", SECRET).json()["token"].as_str().unwrap().to_owned();
    let credential = basic("ann", SECRET);
    get(to, &format!("/files/logged-file?key={SECRET}"), &credential);
    get(to, "/files/logged-file", &format!("Authorization: Bearer {token}\r\n"));
    get(to, "/files/logged-file", &basic("bob", SECRET));
    get(to, "/files/logged-file", &format!("Authorization: Basic !{SECRET}\r\n"));
    let fields = format!("{credential}Upload-Complete: ?0\r\n");
    let begun = send(to, "PUT", "/files/users/ann/part", &fields, "a part").unwrap();
    let location = begun.field("location").unwrap();
    assert_eq!(ask(to, "DELETE", location, &credential).status, 204);
    let id = location.rsplit('/').next().unwrap();

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("path=\"/files/logged-file\" status=200"), "{text}");
    assert!(text.contains("status=401"), "{text}");
    assert!(text.contains("path=\"/uploads/{id}\" status=204"), "{text}");
    let encoded = credential.trim().rsplit(' ').next().unwrap();
    for secret in [SECRET, &token, encoded, id] {
        assert!(!text.contains(secret), "a secret is in the log");
    }
}
