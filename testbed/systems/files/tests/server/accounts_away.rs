//! The accounts server goes down, sends nonsense, and comes back.

use std::{fs, net::TcpListener, time::Duration};

use engine::Model;
use files::{AccountsBackend, Options};

use crate::{
    fake_accounts::{FakeAccounts, answer},
    support::{MODELS, PASSWORD, any_port, basic, get, post, serve_accounts, serve_files},
};

fn root() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("root/a"), "hello").unwrap();
    folder
}

#[test]
fn files_come_back_with_the_accounts_server() {
    for model in MODELS {
        let folder = root();
        let accounts = serve_accounts(any_port(), folder.path());
        let address = accounts.local_addr();
        let mut options = Options::new(folder.path().join("root"), AccountsBackend::Remote(address));
        options.auth_cache_ttl = Duration::ZERO;
        let server = serve_files(model, options);
        let to = server.local_addr();
        assert_eq!(post(to, "/accounts", "ann", PASSWORD).status, 201);
        let ask = || get(to, "/files/a", &basic("ann", PASSWORD));
        assert_eq!(ask().body, "hello");

        accounts.drain(Duration::ZERO);
        accounts.join();
        let away = ask();
        assert_eq!((away.status, away.field("retry-after")), (503, Some("1")), "{model:?}");
        assert_eq!(post(to, "/accounts", "bob", PASSWORD).status, 503);
        assert_eq!(get(to, "/healthz", "").status, 200);

        let _again = serve_accounts(address, folder.path());
        assert_eq!(ask().body, "hello", "{model:?}");
        assert_eq!(post(to, "/accounts", "bob", PASSWORD).status, 201);
    }
}

#[test]
fn nobody_is_admitted_by_an_invalid_response() {
    let folder = root();
    let answers: [(&str, Vec<u8>); 8] = [
        ("closed", Vec::new()),
        ("garbage", b"\x00\x01garbage\r\n\r\n".to_vec()),
        ("another protocol", b"SSH-2.0-x\r\n".to_vec()),
        ("no body", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
        ("no JSON", answer(200, "<html>welcome</html>")),
        ("an error", answer(500, "{}")),
        ("a redirect", answer(302, "{}")),
        ("not allowed", answer(403, "{}")),
    ];
    for (what, bytes) in answers {
        let fake = FakeAccounts::start(move || bytes.clone());
        let options = Options::new(folder.path().join("root"), AccountsBackend::Remote(fake.address));
        let server = serve_files(Model::Epoll, options);
        for _ in 0..2 {
            assert_eq!(get(server.local_addr(), "/files/a", &basic("ann", PASSWORD)).status, 503, "{what}");
        }
    }
}

#[test]
fn a_silent_accounts_server_times_out() {
    let folder = root();
    let silent = TcpListener::bind(any_port()).unwrap();
    for model in MODELS {
        let backend = AccountsBackend::Remote(silent.local_addr().unwrap());
        let mut options = Options::new(folder.path().join("root"), backend);
        options.accounts_timeout = Duration::from_millis(50);
        let server = serve_files(model, options);
        let answer = get(server.local_addr(), "/files/a", &basic("ann", PASSWORD));
        assert_eq!(answer.status, 503, "{model:?}");
    }
}
