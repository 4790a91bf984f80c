//! Uploaded files are complete on the file server, whatever happens to it.

use std::{fs, sync::Mutex, thread};

use engine::Model;

use crate::{
    client::{Client, chunked_request, get, request},
    content::{LARGE, content},
    models::{Crowd, every_model},
    server::{Served, Setup, eventually},
};

fn setup(model: Model) -> Setup {
    Setup::files(model, &[]).with("--open-uploads").with(Crowd::of(model).flags)
}

fn put(name: &str, fields: &str, length: usize) -> String {
    request("PUT", &format!("/files/{name}"), &format!("{fields}Content-Length: {length}\r\n"))
}

fn put_whole(name: &str, body: &[u8]) -> Vec<u8> {
    [put(name, "", body.len()).as_bytes(), body].concat()
}

fn assert_holds(server: &Served, name: &str, expected: &[u8]) {
    let read = server.connect().get(&format!("/files/{name}"), "Connection: close\r\n");
    assert!(read.status == 200 && read.body == expected, "{}: {name} is not what was put", server.model);
}

/// The files in the folder of uploads, except the record and its lock.
fn staged(folder: &crate::program::Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("shared/.nstar-uploads")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "book").collect()
}

#[test]
fn files_put_in_any_framing_are_read_back() {
    every_model(|model| {
        let server = setup(model).start();
        let mut client = server.connect();
        client.send(put_whole("new/large", content(LARGE)));
        assert_eq!(client.response().status, 201, "{model}");
        client.send(chunked_request("PUT", "/files/new/chunked", content(3_000_000), 100_003));
        assert_eq!(client.response().status, 201, "{model}");
        // Read on the connection that uploaded it, and then replaced: no worker or process serves the old file.
        for length in [1_000, 2_000, 0] {
            client.send(put_whole("replaced", content(length)));
            assert!(matches!(client.response().status, 201 | 204), "{model}");
            assert_holds(&server, "replaced", content(length));
            client.send(get("/files/replaced", ""));
            assert_eq!(client.response().body, content(length), "{model}");
        }
        assert_holds(&server, "new/large", content(LARGE));
        assert_holds(&server, "new/chunked", content(3_000_000));
        client.send(request("DELETE", "/files/new/large", ""));
        assert_eq!(client.head().status, 204, "{model}");
        client.send(get("/files/new/large", ""));
        assert_eq!(client.response().status, 404, "{model}");
        drop(client);
        assert_eq!(staged(&server.folder), [""; 0], "{model}");
        server.stop();
    });
}

#[test]
fn a_killed_server_has_kept_what_it_acknowledged_and_shows_no_part_of_the_rest() {
    every_model(|model| {
        let server = setup(model).start();
        let mut halves: Vec<Client> = (0..4).map(|_| server.connect()).collect();
        for (number, half) in halves.iter_mut().enumerate() {
            half.send(put(&format!("half{number}"), "", 1_000_000));
            half.send(content(500_000));
        }
        let putting: Vec<Client> = (0..3).map(|_| server.connect()).collect();
        let acknowledged = Mutex::new(Vec::new());
        let folder = thread::scope(|scope| {
            for (number, mut client) in putting.into_iter().enumerate() {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    for file in 0.. {
                        let name = format!("whole{number}-{file}");
                        let sent = client.try_send(put_whole(&name, content(50_000 + file)));
                        if sent.is_err() || !client.is_answered() {
                            return;
                        }
                        assert_eq!(client.response().status, 201, "{model}");
                        acknowledged.lock().unwrap().push((name, 50_000 + file));
                    }
                });
            }
            eventually("some are acknowledged", || acknowledged.lock().unwrap().len() >= 12);
            server.kill()
        });
        // The last process ends with its connections.
        halves.iter_mut().for_each(|half| assert_eq!(half.until_broken(), b"", "{model}"));

        let again =
            Setup::files_in(model, folder).with("--open-uploads").with(Crowd::of(model).flags).start();
        for (name, length) in acknowledged.into_inner().unwrap() {
            assert_holds(&again, &name, content(length));
        }
        for entry in fs::read_dir(again.folder.path("shared")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some((_, file)) = name.split_once('-').filter(|_| name.starts_with("whole")) else {
                assert_eq!(name, ".nstar-uploads", "{model}: nothing else is seen");
                continue;
            };
            assert_holds(&again, &name, content(50_000 + file.parse::<usize>().unwrap()));
        }
        assert_eq!(staged(&again.folder), [""; 0], "{model}: what was left over is swept away");
        again.stop();
    });
}

#[test]
fn an_upload_goes_on_after_the_server_was_killed() {
    const LENGTH: usize = 3_000_000;
    every_model(|model| {
        let server = setup(model).start();
        let mut client = server.connect();
        client.send(put("resumed", "Upload-Complete: ?1\r\n", LENGTH));
        let begun = client.head();
        assert_eq!(begun.status, 104, "{model}");
        let location = begun.field("location").unwrap().to_owned();
        client.send(content(1_000_000));
        let offset = |server: &Served| -> usize {
            let mut asking = server.connect();
            asking.send(request("HEAD", &location, "Connection: close\r\n"));
            asking.head().field("upload-offset").unwrap().parse().unwrap()
        };
        eventually("a part of it is kept", || offset(&server) > 500_000);
        let folder = server.kill();
        client.until_broken();

        let again =
            Setup::files_in(model, folder).with("--open-uploads").with(Crowd::of(model).flags).start();
        let came = offset(&again);
        assert!((500_000..=1_000_000).contains(&came), "{model}: {came}");
        let fields = format!(
            "Content-Type: application/partial-upload\r\nUpload-Offset: {came}\r\nUpload-Complete: ?1\r\n\
             Content-Length: {}\r\nConnection: close\r\n",
            LENGTH - came
        );
        let mut client = again.connect();
        client.send(request("PATCH", &location, &fields));
        client.send(&content(LENGTH)[came..]);
        assert_eq!(client.head().status, 201, "{model}");
        assert_holds(&again, "resumed", content(LENGTH));
        again.stop();
    });
}
