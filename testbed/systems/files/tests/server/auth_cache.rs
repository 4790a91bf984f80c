//! Which credentials are cached, and which are not.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    path::Path,
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

use engine::Model;
use files::{AccountsBackend, Options};

use crate::{
    fake_accounts::{FakeAccounts, answer},
    support::{MODELS, PASSWORD, basic, get, serve_files},
};

fn root() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "hello").unwrap();
    folder
}

fn behind(fake: &FakeAccounts, root: &Path) -> Options {
    Options::new(root, AccountsBackend::Remote(fake.address))
}

#[test]
fn a_valid_credential_is_checked_once() {
    let root = root();
    for model in MODELS {
        let fake = FakeAccounts::start(FakeAccounts::right);
        let server = serve_files(model, behind(&fake, root.path()));
        for _ in 0..5 {
            assert_eq!(get(server.local_addr(), "/files/a", &basic("ann", PASSWORD)).body, "hello");
        }
        assert_eq!(fake.asked(), 1, "{model:?}");
    }
}

#[test]
fn an_invalid_credential_is_checked_every_time() {
    let root = root();
    let fake = FakeAccounts::start(FakeAccounts::wrong);
    let server = serve_files(Model::Epoll, behind(&fake, root.path()));
    let ask = || get(server.local_addr(), "/files/a", &basic("ann", PASSWORD));
    for _ in 0..3 {
        let refused = ask();
        assert_eq!((refused.status, refused.fields("www-authenticate").count()), (401, 2));
    }
    assert_eq!(fake.asked(), 3);
    fake.follow(FakeAccounts::right);
    assert_eq!(ask().status, 200, "what was wrong is not remembered");
}

#[test]
fn without_the_cache_every_request_is_checked() {
    let root = root();
    let fake = FakeAccounts::start(FakeAccounts::right);
    let mut options = behind(&fake, root.path());
    options.auth_cache_ttl = Duration::ZERO;
    let server = serve_files(Model::Epoll, options);
    for _ in 0..4 {
        assert_eq!(get(server.local_addr(), "/files/a", &basic("ann", PASSWORD)).status, 200);
    }
    assert_eq!(fake.asked(), 4);
}

#[test]
fn a_changed_password_is_refused_after_the_cache_expires() {
    let root = root();
    for model in MODELS {
        let fake = FakeAccounts::start(FakeAccounts::right);
        let mut options = behind(&fake, root.path());
        options.auth_cache_ttl = Duration::from_millis(50);
        let server = serve_files(model, options);
        let ask = || get(server.local_addr(), "/files/a", &basic("ann", PASSWORD)).status;
        assert_eq!(ask(), 200);
        fake.follow(FakeAccounts::wrong);
        let changed = Instant::now();
        while ask() == 200 {
            assert!(changed.elapsed() < Duration::from_secs(30), "{model:?}: still let in");
        }
        assert_eq!(ask(), 401);
    }
}

#[test]
fn a_session_is_not_cached_beyond_its_end() {
    let root = root();
    let fake = FakeAccounts::start(|| answer(200, r#"{"name":"ann","expires_in_s":0}"#));
    let server = serve_files(Model::Epoll, behind(&fake, root.path()));
    for _ in 0..2 {
        assert_eq!(get(server.local_addr(), "/files/a", "Authorization: Bearer token\r\n").status, 200);
    }
    assert_eq!(fake.asked(), 2);
}

#[test]
fn similar_credentials_are_not_confused() {
    let root = root();
    let fake = FakeAccounts::start(FakeAccounts::right);
    let server = serve_files(Model::Epoll, behind(&fake, root.path()));
    assert_eq!(get(server.local_addr(), "/files/a", &basic("ab", "c")).status, 200);
    fake.follow(FakeAccounts::wrong);
    assert_eq!(get(server.local_addr(), "/files/a", &basic("a", "bc")).status, 401);
    assert_eq!(get(server.local_addr(), "/files/a", "Authorization: Bearer ab:c\r\n").status, 401);
    assert_eq!(get(server.local_addr(), "/files/a", &basic("ab", "c")).status, 200);
}

#[test]
fn fifty_first_requests_share_one_check() {
    let root = root();
    for model in MODELS {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let fake = FakeAccounts::start(move || {
            let _ = released.lock().unwrap().recv();
            FakeAccounts::right()
        });
        let server = serve_files(model, behind(&fake, root.path()));
        let request = format!(
            "GET /files/a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{}\r\n",
            basic("ann", PASSWORD)
        );
        let streams: Vec<_> = (0..50)
            .map(|_| {
                let mut stream = TcpStream::connect(server.local_addr()).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        drop(release);
        for stream in streams {
            let all = std::io::read_to_string(stream).unwrap();
            assert!(all.starts_with("HTTP/1.1 200") && all.ends_with("hello"), "{model:?}: {all}");
        }
        assert_eq!(fake.asked(), 1, "{model:?}");
    }
}

/// Waiting requests share the failure; the next one is checked again.
#[test]
fn a_failed_check_is_not_cached() {
    let root = root();
    for model in MODELS {
        let fake = FakeAccounts::start(Vec::new);
        let server = serve_files(model, behind(&fake, root.path()));
        let ask = || get(server.local_addr(), "/files/a", &basic("ann", PASSWORD)).status;
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().for_each(|asked| assert_eq!(asked.join().unwrap(), 503, "{model:?}"));
        });
        fake.follow(FakeAccounts::right);
        assert_eq!(ask(), 200);
    }
}
