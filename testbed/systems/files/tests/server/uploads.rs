//! Uploads: atomic, with valid names only, under conditions, and visible to readers at once.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path};

use engine::{Model, Server};
use files::{AccountsBackend, Options, Uploaders};

use crate::support::{MODELS, PASSWORD, Response, ask, basic, get, post, send, serve_files};

/// A server of a folder with accounts in its process and a user ann.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Server,
}

impl Place {
    pub(crate) fn new(model: Model, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let place = Self { server: Self::serve(&folder, model, change), folder };
        place.user("ann");
        place
    }

    pub(crate) fn serve(
        folder: &tempfile::TempDir,
        model: Model,
        change: impl FnOnce(&mut Options),
    ) -> Server {
        let accounts = AccountsBackend::Local(folder.path().join("accounts.db"));
        let mut options = Options::new(folder.path().join("root"), accounts);
        // The disk of whoever runs the tests may be nearly full.
        options.uploads.keep_free_bytes = Some(0);
        change(&mut options);
        serve_files(model, options)
    }

    pub(crate) fn user(&self, name: &str) {
        assert_eq!(post(self.to(), "/accounts", name, PASSWORD).status, 201);
    }

    pub(crate) fn to(&self) -> SocketAddr {
        self.server.local_addr()
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("root").join(path)
    }

    pub(crate) fn put(&self, path: &str, fields: &str, body: &str) -> Response {
        put(self.to(), path, &(basic("ann", PASSWORD) + fields), body)
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        get(self.to(), &format!("/files/{path}"), &basic("ann", PASSWORD))
    }

    pub(crate) fn me(&self, name: &str) -> serde_json::Value {
        get(self.to(), "/me", &basic(name, PASSWORD)).json()
    }
}

pub(crate) fn put(to: SocketAddr, path: &str, fields: &str, body: &str) -> Response {
    send(to, "PUT", &format!("/files/{path}"), fields, body).unwrap()
}

/// The contents of the folder of uploads, without the usage files.
pub(crate) fn staged(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(".nstar-uploads")) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with("book")).collect()
}

#[test]
fn a_file_is_uploaded_replaced_read_and_deleted() {
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let made = place.put("users/ann/new/folder/a.txt", "", "hello");
        assert_eq!((made.status, &*made.body), (201, ""), "{model}");
        let read = place.get("users/ann/new/folder/a.txt");
        assert_eq!((read.status, &*read.body), (200, "hello"));
        assert_eq!(read.field("etag"), made.field("etag"));

        let replaced = place.put("users/ann/new/folder/a.txt", "", "hello again");
        assert_eq!(replaced.status, 204, "{model}");
        assert_ne!(replaced.field("etag"), made.field("etag"));
        let read = place.get("users/ann/new/folder/a.txt");
        assert_eq!((&*read.body, read.field("etag")), ("hello again", replaced.field("etag")));

        assert_eq!(place.put("users/ann/empty", "", "").status, 201);
        assert_eq!(place.get("users/ann/empty").body, "");
        let ann = basic("ann", PASSWORD);
        let delete = |path: &str| ask(place.to(), "DELETE", &format!("/files/users/ann/{path}"), &ann).status;
        assert_eq!((delete("new/folder/"), delete("new/folder")), (409, 409), "it holds a file");
        assert_eq!((delete("new/folder/a.txt"), delete("new/folder/a.txt")), (204, 404));
        assert_eq!(place.get("users/ann/new/folder/a.txt").status, 404);
        assert_eq!((delete("new/folder/"), delete("new/")), (204, 204));
        assert_eq!(staged(&place.path("")), [""; 0], "{model}");
    }
}

#[test]
fn a_chunked_body_is_stored_completely() {
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let text: String = (0..40_000).map(|n| format!("{n:06}")).collect();
        let (one, other) = text.split_at(100_000);
        let body = format!("{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n", one.len(), other.len());
        let fields = basic("ann", PASSWORD) + "Transfer-Encoding: chunked\r\n";
        // Written by hand, as `send` announces a length.
        let answer = crate::support::raw(
            place.to(),
            &format!(
                "PUT /files/users/ann/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n{body}"
            ),
        );
        assert_eq!(answer.status, 201, "{model}: {}", answer.body);
        assert!(place.get("users/ann/a").body == text, "{model}");
    }
}

#[test]
fn conditions_are_checked() {
    let place = Place::new(Model::Epoll, |_| ());
    let path = "users/ann/a";
    assert_eq!(place.put(path, "If-Match: *\r\n", "no").status, 412, "it is not there");
    let tag = place.put(path, "If-None-Match: *\r\n", "one").field("etag").unwrap().to_owned();
    assert_eq!(place.put(path, "If-None-Match: *\r\n", "two").status, 412, "it is there");
    let changed = place.put(path, &format!("If-Match: {tag}\r\n"), "two").field("etag").unwrap().to_owned();
    assert_eq!(place.put(path, &format!("If-Match: {tag}\r\n"), "three").status, 412, "it has changed");
    let ann = basic("ann", PASSWORD);
    let delete =
        |tag: &str| ask(place.to(), "DELETE", "/files/users/ann/a", &format!("{ann}If-Match: {tag}\r\n"));
    assert_eq!(place.get(path).body, "two");
    assert_eq!((delete(&tag).status, delete(&changed).status), (412, 204));
    assert_eq!(staged(&place.path("")), [""; 0]);
}

#[test]
fn uploaded_files_are_not_for_every_user_of_the_machine() {
    let place = Place::new(Model::Epoll, |_| ());
    assert_eq!(place.put("users/ann/a", "", "private").status, 201);
    let mode = place.path("users/ann/a").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
    for made in ["users", "users/ann"] {
        let mode = place.path(made).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{made}: {mode:o}");
    }
}

/// Uploads must leave room for logs, databases and whatever else the machine needs.
#[test]
fn uploads_are_refused_where_the_disk_is_to_stay_free() {
    for model in MODELS {
        let place = Place::new(model, |options| options.uploads.keep_free_bytes = Some(u64::MAX));
        for fields in ["", "Upload-Complete: ?0\r\n"] {
            let refused = place.put("users/ann/x", fields, "x");
            assert_eq!(refused.status, 507, "{model}: {}", refused.body);
            assert!(refused.body.contains("keeps free"), "{model}: {}", refused.body);
        }
        assert_eq!(place.get("users/ann/x").status, 404, "{model}");
        assert_eq!(staged(&place.path("")), [""; 0], "{model}");
    }
}

#[test]
fn impossible_uploads_are_refused_with_the_reason() {
    let place = Place::new(Model::Epoll, |options| options.uploads.max_bytes = 100);
    fs::write(place.path("outside"), "kept").unwrap();
    place.put("users/ann/file", "", "x");
    std::os::unix::fs::symlink("..", place.path("users/ann/up")).unwrap();
    std::os::unix::fs::symlink("../../outside", place.path("users/ann/link")).unwrap();
    let long = "n".repeat(256);
    for (path, fields, status, reason) in [
        ("users/ann/a%00b", "", 400, ""),
        ("users/ann/a%0ab", "", 422, "control"),
        ("users/ann/%ff", "", 400, "UTF-8"),
        ("users/ann/../bob/x", "", 422, ".."),
        ("users/ann//x", "", 422, "empty"),
        ("users/ann/x/", "", 422, "slash"),
        ("users/ann/.nstar-uploads/x", "", 422, ".nstar"),
        ("users/ann/.NSTAR", "", 422, ".nstar"),
        (&format!("users/ann/{long}"), "", 422, "too long"),
        ("users/ann", "", 409, "folder"),
        ("users/ann/file/x", "", 409, "not a folder"),
        ("users/ann/up/ann/x", "", 409, "link"),
        ("users/bob/x", "", 404, ""),
        ("x", "", 403, "may not"),
        ("outside", "", 403, "may not"),
        ("users/ann/x", "Content-Range: bytes 0-0/1\r\n", 400, "Upload-Offset"),
        ("users/ann/x", "Content-Encoding: gzip\r\n", 415, "Content-Encoding"),
        ("users/ann/x", "Upload-Complete: yes\r\n", 400, "Upload-Complete"),
        ("users/ann/x", "Upload-Complete: ?1\r\nUpload-Offset: 5\r\n", 400, "first byte"),
        ("users/ann/x", "Upload-Complete: ?1\r\nUpload-Length: 2\r\n", 400, "Upload-Length"),
    ] {
        let answer = place.put(path, fields, "x");
        assert_eq!(answer.status, status, "{path} {fields}: {}", answer.body);
        assert!(answer.body.contains(reason), "{path} {fields}: {}", answer.body);
    }
    let long = place.put("users/ann/x", "", &"x".repeat(101));
    assert_eq!((long.status, long.body.contains("100 bytes")), (413, true), "{}", long.body);
    // A link itself is replaced; its target stays.
    assert_eq!(place.put("users/ann/link", "", "new").status, 204);
    assert_eq!(fs::read_to_string(place.path("outside")).unwrap(), "kept");
    assert_eq!(staged(&place.path("")), [""; 0]);
    assert!(!place.path("users/bob").exists());
}

#[test]
fn uploads_follow_the_options() {
    let off = Place::new(Model::Epoll, |options| options.uploads.of = Uploaders::Nobody);
    assert_eq!(off.put("users/ann/x", "", "x").status, 403);
    assert_eq!(off.me("ann")["uploads"], false);
    assert_eq!(put(off.to(), "users/ann/x", "", "x").status, 401);
    assert!(!off.path(".nstar-uploads").exists(), "nothing is made where nothing is taken");

    let folder = tempfile::tempdir().unwrap();
    let open = |of| {
        let mut options = Options::new(folder.path(), AccountsBackend::Open);
        options.uploads.of = of;
        serve_files(Model::Epoll, options)
    };
    assert_eq!(put(open(Uploaders::Users).local_addr(), "x", "", "x").status, 403);
    assert_eq!(put(open(Uploaders::Everybody).local_addr(), "x", "", "x").status, 201);
    assert_eq!(fs::read_to_string(folder.path().join("x")).unwrap(), "x");
}

#[test]
fn the_reserved_folder_is_hidden() {
    let place = Place::new(Model::Epoll, |_| ());
    place.put("users/ann/x", "", "x");
    assert!(place.path(".nstar-uploads").is_dir());
    assert_eq!(place.get(".nstar-uploads/").status, 404);
    let names: Vec<_> =
        place.get("").json()["entries"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["users"]);
}

#[test]
fn an_interrupted_upload_leaves_nothing() {
    use std::io::{Read, Write};
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let mut stream = std::net::TcpStream::connect(place.to()).unwrap();
        let head = format!(
            "PUT /files/users/ann/x HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: 1000000\r\n\r\n",
            basic("ann", PASSWORD)
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[b'x'; 300_000]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 2"), "{model}");
        assert_eq!(place.get("users/ann/x").status, 404, "{model}");
        assert_eq!(staged(&place.path("")), [""; 0], "{model}");
        assert_eq!(place.me("ann")["used"], 0, "{model}");
    }
}

#[test]
fn of_two_uploads_to_one_name_one_survives_complete() {
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let bodies: Vec<String> = (0..8).map(|n| n.to_string().repeat(200_000 + n)).collect();
        std::thread::scope(|scope| {
            let putting: Vec<_> =
                bodies.iter().map(|body| scope.spawn(|| place.put("users/ann/x", "", body).status)).collect();
            // Readers get one of them, never a mixture.
            for _ in 0..50 {
                let read = place.get("users/ann/x");
                assert!(read.status == 404 || bodies.contains(&read.body), "{model}: a mixture");
            }
            let statuses: Vec<_> = putting.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert_eq!(statuses.iter().filter(|&&status| status == 201).count(), 1, "{model}: {statuses:?}");
            assert!(statuses.iter().all(|status| matches!(status, 201 | 204)), "{model}: {statuses:?}");
        });
        let last = place.get("users/ann/x").body;
        assert!(bodies.contains(&last), "{model}");
        assert_eq!(place.me("ann")["used"], last.len(), "{model}");
        // Only one of many concurrent uploads is the first.
        std::thread::scope(|scope| {
            let first: Vec<_> = bodies
                .iter()
                .map(|body| scope.spawn(|| place.put("users/ann/y", "If-None-Match: *\r\n", body).status))
                .collect();
            let won =
                first.into_iter().filter_map(|thread| (thread.join().unwrap() == 201).then_some(())).count();
            assert_eq!(won, 1, "{model}");
        });
    }
}
