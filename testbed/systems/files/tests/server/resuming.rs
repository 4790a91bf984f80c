//! Uploads that are interrupted and resumed, as in draft-ietf-httpbis-resumable-upload.

use std::{
    fs::{self, File, FileTimes},
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, SystemTime},
};

use engine::Model;

use crate::{
    support::{MODELS, PASSWORD, Response, ask, basic, send},
    uploads::{Place, staged},
};

const PART: &str = "Content-Type: application/partial-upload\r\n";

fn head(place: &Place, location: &str) -> Response {
    ask(place.to(), "HEAD", location, &basic("ann", PASSWORD))
}

fn patch(place: &Place, location: &str, offset: u64, complete: &str, body: &str) -> Response {
    let fields =
        format!("{}{PART}Upload-Offset: {offset}\r\nUpload-Complete: {complete}\r\n", basic("ann", PASSWORD));
    send(place.to(), "PATCH", location, &fields, body).unwrap()
}

/// Starts an upload whose connection is then lost. Returns its location.
fn break_off(place: &Place, fields: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(place.to()).unwrap();
    let head = format!(
        "PUT /files/users/ann/x HTTP/1.1\r\nHost: localhost\r\n{}Upload-Complete: ?1\r\n{fields}\r\n{body}",
        basic("ann", PASSWORD)
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 104 "), "{answer}");
    assert!(answer.contains("Upload-Limit: max-size="), "{answer}");
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    location.to_owned()
}

#[test]
fn an_upload_resumes_where_it_was_interrupted() {
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let text: String = (0..100_000).map(|n| format!("{n:06}")).collect();
        let location = break_off(&place, "Content-Length: 600000\r\n", &text[..400_000]);
        assert_eq!(place.get("users/ann/x").status, 404, "{model}: nothing is seen before it is whole");
        let asked = head(&place, &location);
        assert_eq!((asked.status, asked.field("upload-complete")), (204, Some("?0")), "{model}");
        assert_eq!(asked.field("upload-length"), Some("600000"));
        assert_eq!(asked.field("cache-control"), Some("no-store"));
        let came: usize = asked.field("upload-offset").unwrap().parse().unwrap();
        assert!(came > 0 && came <= 400_000, "{model}: {came}");

        let wrong = patch(&place, &location, 1, "?1", &text[1..]);
        assert_eq!(wrong.status, if came == 1 { 400 } else { 409 }, "{model}");
        assert_eq!(wrong.field("upload-offset"), Some(came.to_string().as_str()), "{model}");
        let more = patch(&place, &location, came as u64, "?0", &text[came..500_000]);
        assert_eq!((more.status, more.field("upload-offset")), (204, Some("500000")), "{model}");
        let last = patch(&place, &location, 500_000, "?1", &text[500_000..]);
        assert_eq!((last.status, last.field("upload-complete")), (201, Some("?1")), "{model}: {}", last.body);
        let read = place.get("users/ann/x");
        assert!(read.body == text && read.field("etag") == last.field("etag"), "{model}");

        // A client that lost the last response asks again.
        let asked = head(&place, &location);
        assert_eq!(
            (asked.field("upload-complete"), asked.field("upload-offset")),
            (Some("?1"), Some("600000"))
        );
        assert_eq!(patch(&place, &location, 600_000, "?1", "").status, 400, "{model}: complete already");
        assert_eq!(place.me("ann")["used"], 600_000, "{model}");
    }
}

#[test]
fn an_upload_of_unknown_length_is_sent_in_parts() {
    let place = Place::new(Model::Epoll, |_| ());
    let begun = place.put("users/ann/x", "Upload-Complete: ?0\r\n", "one ");
    assert_eq!(
        (begun.status, begun.field("upload-offset")),
        (104, None),
        "the first answer is an interim one"
    );
    let location = begun.field("location").unwrap().to_owned();
    assert!(begun.body.starts_with("HTTP/1.1 201 "), "{}", begun.body);
    assert_eq!(patch(&place, &location, 4, "?0", "two ").status, 204);
    assert_eq!(place.me("ann")["used"], 8, "what has arrived takes space");
    assert_eq!(patch(&place, &location, 8, "?1", "three").status, 201);
    assert_eq!(place.get("users/ann/x").body, "one two three");
}

#[test]
fn only_its_owner_resumes_an_upload_and_can_abandon_it() {
    let place = Place::new(Model::Epoll, |_| ());
    place.user("bob");
    let location = break_off(&place, "Content-Length: 10\r\n", "half");
    let bob = basic("bob", PASSWORD);
    let part = format!("{bob}{PART}Upload-Offset: 4\r\nUpload-Complete: ?1\r\n");
    assert_eq!(ask(place.to(), "HEAD", &location, &bob).status, 404);
    assert_eq!(send(place.to(), "PATCH", &location, &part, "theirs").unwrap().status, 404);
    assert_eq!(ask(place.to(), "DELETE", &location, &bob).status, 404);
    assert_eq!(ask(place.to(), "HEAD", &location, "").status, 401);
    for nothing in
        ["/uploads/", "/uploads/x", "/uploads/../users", "/uploads/00000000000000000000000000000000"]
    {
        assert_eq!(ask(place.to(), "HEAD", nothing, &basic("ann", PASSWORD)).status, 404, "{nothing}");
    }
    assert_eq!(ask(place.to(), "DELETE", &location, &basic("ann", PASSWORD)).status, 204);
    assert_eq!(head(&place, &location).status, 404);
    assert_eq!(staged(&place.path("")), [""; 0]);
}

#[test]
fn an_upload_is_abandoned_also_where_the_disk_is_full() {
    let place = Place::new(Model::Epoll, |_| ());
    let location = break_off(&place, "Content-Length: 10\r\n", "half");
    let Place { folder, server } = place;
    drop(server);
    let full = |options: &mut files::Options| options.uploads.keep_free_bytes = Some(u64::MAX);
    let place = Place { server: Place::serve(&folder, Model::Epoll, full), folder };
    assert_eq!(patch(&place, &location, 4, "?1", "-whole").status, 507);
    assert_eq!(ask(place.to(), "DELETE", &location, &basic("ann", PASSWORD)).status, 204);
    assert_eq!(head(&place, &location).status, 404);
    assert_eq!(staged(&place.path("")), [""; 0]);
}

#[test]
fn contradictory_requests_are_refused() {
    let place = Place::new(Model::Epoll, |_| ());
    let location = break_off(&place, "Content-Length: 10\r\n", "half");
    let ann = basic("ann", PASSWORD);
    for (fields, body, status) in [
        (format!("{PART}Upload-Offset: 4\r\n"), "123456", 400),
        (format!("{PART}Upload-Complete: ?1\r\n"), "123456", 400),
        ("Upload-Offset: 4\r\nUpload-Complete: ?1\r\n".into(), "123456", 415),
        (format!("{PART}Upload-Offset: 4\r\nUpload-Complete: ?1\r\n"), "12345", 400),
        (format!("{PART}Upload-Offset: 4\r\nUpload-Complete: ?1\r\n"), "1234567", 400),
        (format!("{PART}Upload-Offset: 4\r\nUpload-Complete: ?0\r\nUpload-Length: 11\r\n"), "1", 400),
        (format!("{PART}Upload-Offset: 3\r\nUpload-Complete: ?1\r\n"), "1234567", 409),
    ] {
        let answer = send(place.to(), "PATCH", &location, &(ann.clone() + &fields), body).unwrap();
        assert_eq!(answer.status, status, "{fields}{body}: {}", answer.body);
    }
    assert_eq!(head(&place, &location).field("upload-offset"), Some("4"), "nothing of it was taken");
    assert_eq!(patch(&place, &location, 4, "?1", "123456").status, 201);
}

#[test]
fn conditions_are_checked_when_the_upload_completes() {
    let place = Place::new(Model::Epoll, |_| ());
    let location = break_off(&place, "If-None-Match: *\r\nContent-Length: 8\r\n", "half");
    assert_eq!(place.put("users/ann/x", "", "first").status, 201);
    assert_eq!(patch(&place, &location, 4, "?1", "half").status, 412);
    assert_eq!(place.get("users/ann/x").body, "first");
    assert_eq!(staged(&place.path("")), [""; 0]);
}

/// After a power failure the length of a file may be on the disk without all of its bytes.
#[test]
fn after_a_power_failure_an_upload_goes_on_where_it_was_acknowledged() {
    let place = Place::new(Model::Epoll, |_| ());
    let text: String = (0..1000).map(|n| format!("{n:06}")).collect();
    let location = break_off(&place, "Content-Length: 6000\r\n", &text[..1000]);
    let offset = || head(&place, &location).field("upload-offset").unwrap().parse::<usize>().unwrap();
    let came = offset();
    assert_eq!(patch(&place, &location, came as u64, "?0", &text[came..2000]).status, 204);
    let part = place.path(".nstar-uploads").join(location.rsplit('/').next().unwrap());
    let file = File::options().write(true).open(&part).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 2000], 2000).unwrap();
    assert_eq!(offset(), 4000, "as long as the machine runs");

    let record = part.with_extension("json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let written = fs::read_to_string(&record).unwrap();
    fs::write(&record, written.replace(boot.trim(), "an earlier one")).unwrap();
    assert_eq!(offset(), 2000);
    assert_eq!(patch(&place, &location, 2000, "?1", &text[2000..]).status, 201);
    assert!(place.get("users/ann/x").body == text);
}

#[test]
fn an_upload_survives_a_restart_but_not_its_life() {
    let Place { folder, server } = Place::new(Model::Epoll, |_| ());
    let place = Place { folder, server };
    let location = break_off(&place, "Content-Length: 8\r\n", "half");
    fs::write(place.path(".nstar-uploads/0123456789abcdef0123456789abcdef"), "nobody can resume this")
        .unwrap();
    let Place { folder, server } = place;
    drop(server);
    let day = |options: &mut files::Options| options.uploads.life = Duration::from_secs(86_400);
    let place = Place { server: Place::serve(&folder, Model::Epoll, day), folder };
    assert_eq!(staged(&place.path("")).len(), 2, "a part and its record");
    assert_eq!(head(&place, &location).field("upload-offset"), Some("4"));
    assert_eq!(patch(&place, &location, 4, "?0", "ha").status, 204);

    let Place { folder, server } = place;
    drop(server);
    let yesterday = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(86_401));
    for name in staged(&folder.path().join("root")) {
        let path = folder.path().join("root/.nstar-uploads").join(name);
        File::options().write(true).open(path).unwrap().set_times(yesterday).unwrap();
    }
    let place = Place { server: Place::serve(&folder, Model::Epoll, day), folder };
    assert_eq!(head(&place, &location).status, 404);
    assert_eq!(staged(&place.path("")), [""; 0]);
}
