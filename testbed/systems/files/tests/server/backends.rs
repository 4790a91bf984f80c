//! The same requests with an accounts server, with accounts in the same process, and with none.

use std::fs;

use engine::Model;
use files::{AccountsBackend, FilesError, Options, Uploaders};
use test_support::http::exchange;

use crate::support::{MODELS, PASSWORD, any_port, basic, get, post, serve_accounts, serve_files, serve_open};

fn root() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("root/a"), "hello").unwrap();
    folder
}

/// Creates an account through the file server, and gets a file by password and by token.
fn new_then_get(model: Model, options: Options) {
    let server = serve_files(model, options);
    let to = server.local_addr();
    let anonymous = get(to, "/files/a", "");
    assert_eq!((anonymous.status, anonymous.fields("www-authenticate").count()), (401, 2));
    assert_eq!(get(to, "/files/missing", "").status, 401, "a stranger does not learn what there is");
    assert_eq!(post(to, "/accounts", "ann", "short").json()["field"], "password");
    let made = post(to, "/accounts", "ann", PASSWORD);
    assert_eq!((made.status, made.body.as_str()), (201, "{\"name\":\"ann\"}\n"));
    let taken = post(to, "/accounts", "ann", PASSWORD);
    assert_eq!((taken.status, taken.field("content-type")), (409, Some("application/json")));

    for _ in 0..2 {
        assert_eq!(get(to, "/files/a", &basic("ann", PASSWORD)).body, "hello", "{model:?}");
    }
    assert_eq!(get(to, "/files/a", &basic("ann", "wrong horse")).status, 401);
    assert_eq!(get(to, "/files/a", &basic("bob", PASSWORD)).status, 401);
    assert_eq!(get(to, "/files/missing", &basic("ann", PASSWORD)).status, 404);

    let session = post(to, "/sessions", "ann", PASSWORD).json();
    let bearer = format!("Authorization: Bearer {}\r\n", session["token"].as_str().unwrap());
    for _ in 0..2 {
        assert_eq!(get(to, "/files/a", &bearer).body, "hello");
    }
    assert_eq!(post(to, "/sessions", "ann", "wrong horse").status, 401);
    let metrics = get(to, "/metrics", "").body;
    assert!(metrics.contains("credential_checks_total{outcome=\"remembered\"} 3"), "{metrics}");
}

#[test]
fn the_metrics_of_accounts_in_the_same_process_are_shown() {
    let folder = root();
    let database = AccountsBackend::Local(folder.path().join("local.db"));
    let server = serve_files(Model::Epoll, Options::new(folder.path().join("root"), database));
    assert_eq!(post(server.local_addr(), "/accounts", "ann", PASSWORD).status, 201);
    let metrics = get(server.local_addr(), "/metrics", "").body;
    assert!(metrics.contains("nstar_accounts_hash_seconds_count 1"), "{metrics}");
    assert_eq!(metrics.matches("# EOF").count(), 1);
}

#[test]
fn an_accounts_server() {
    for model in MODELS {
        let folder = root();
        let accounts = serve_accounts(any_port(), folder.path());
        let given = format!("http://{}", accounts.local_addr());
        new_then_get(model, Options::new(folder.path().join("root"), given.parse().unwrap()));
    }
}

#[test]
fn accounts_in_the_same_process() {
    for model in MODELS {
        let folder = root();
        let given = format!("sqlite:{}", folder.path().join("local.db").display());
        new_then_get(model, Options::new(folder.path().join("root"), given.parse().unwrap()));
    }
}

#[test]
fn open_files_need_no_credential() {
    for model in MODELS {
        let folder = root();
        let server = serve_open(model, &folder.path().join("root"));
        assert_eq!(get(server.local_addr(), "/files/a", "").body, "hello");
        assert_eq!(get(server.local_addr(), "/files/a", &basic("any", "body")).body, "hello");
    }
}

#[test]
fn problems_show_before_the_server_starts() {
    let folder = root();
    let fails = |options| match files::factory(options) {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    };
    let missing = fails(Options::new(folder.path().join("no"), AccountsBackend::Open));
    assert!(matches!(missing, FilesError::RootMissing { .. }));
    let database = AccountsBackend::Local(folder.path().join("no/accounts.db"));
    let no_folder = fails(Options::new(folder.path().join("root"), database));
    assert!(no_folder.to_string().contains("mkdir -p"), "{no_folder}");
}

/// Another site points a name of its own to this machine, or makes a browser send a request.
#[test]
fn a_server_without_accounts_answers_to_no_name_of_others_and_to_no_other_site() {
    for model in MODELS {
        let folder = root();
        let mut options = Options::new(folder.path().join("root"), AccountsBackend::Open);
        options.uploads.of = Uploaders::Everybody;
        options.host_names = vec!["Files.Example".into()];
        let server = serve_files(model, options);
        for (request, host, fields, status) in [
            ("GET /files/a", "127.0.0.1:8080", "", 200),
            ("GET /files/a", "localhost", "", 200),
            ("GET /files/a", "files.example:8080", "", 200),
            ("GET /files/a", "evil.example:8080", "", 421),
            ("PUT /files/b", "evil.example", "Origin: http://evil.example\r\n", 421),
            ("PUT /files/b", "127.0.0.1", "Origin: http://evil.example\r\n", 403),
            ("PUT /files/b", "127.0.0.1", "Sec-Fetch-Site: cross-site\r\n", 403),
            ("PUT /files/b", "127.0.0.1", "Origin: http://127.0.0.1\r\n", 201),
            ("GET /healthz", "files.svc.cluster.local", "", 200),
        ] {
            let length = if request.starts_with("PUT") { "Content-Length: 0\r\n" } else { "" };
            let text =
                format!("{request} HTTP/1.1\r\nHost: {host}\r\n{length}{fields}Connection: close\r\n\r\n");
            let answer = exchange(server.local_addr(), text.as_bytes()).unwrap();
            assert_eq!(answer.status, status, "{model:?} {request} {host} {fields}: {}", answer.body);
        }
    }
}

/// Longer than one piece, so that it is sent in chunks.
#[test]
fn a_long_listing_comes_whole() {
    for model in MODELS {
        let folder = root();
        for number in 0..700 {
            fs::write(folder.path().join(format!("root/{number}")), "").unwrap();
        }
        let server = serve_files(model, Options::new(folder.path().join("root"), AccountsBackend::Open));
        let listed = get(server.local_addr(), "/files/", "");
        assert_eq!(listed.json()["entries"].as_array().unwrap().len(), 701, "{model:?}");
        let page = get(server.local_addr(), "/files/", "Accept: text/html\r\n");
        assert_eq!(page.body.matches("<tr><td><a href").count(), 701, "{model:?}");
        assert!(page.body.ends_with("</table>\n") && page.field("content-length").is_none(), "{model:?}");
    }
}
