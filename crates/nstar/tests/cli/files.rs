//! `nstar serve files` with uploads, through the real program.

use std::fs;

use crate::{
    serve::{ask, listening},
    support::Place,
};

#[test]
fn flags_that_make_no_sense_are_told_before_anything_starts() {
    let place = Place::new();
    fs::create_dir(place.path("shared")).expect("a folder");
    place.write("rules.toml", "[[rule]]\npath = \"/a\"\nmay = [\"raed\"]\n");
    place.write("good.toml", "[[rule]]\npath = \"/a\"\nmay = [\"read\"]\n");
    for (flags, complaint) in [
        ("--accounts sqlite:a.db --open-uploads", "--accounts none"),
        ("--accounts none --open-uploads --read-only", "--read-only"),
        ("--accounts none --quota many", "many"),
        ("--accounts none --upload-life never", "never"),
        ("--accounts none --max-upload=-1", "--max-upload"),
        ("--accounts sqlite:a.db --permissions rules.toml", "rules.toml, line 3: "),
        ("--accounts sqlite:a.db --permissions missing.toml", "missing.toml"),
        ("--accounts none --permissions good.toml", "--accounts none knows none"),
    ] {
        let words = ["serve", "files", "--root", "shared", "--listen", "127.0.0.1:0"].into_iter();
        let outcome = place.nstar(words.chain(flags.split(' '))).run();
        outcome.exits(2).complains(complaint);
    }
    let words = "serve files --root shared --accounts none --audit missing/audit --listen 127.0.0.1:0";
    place.nstar(words.split(' ')).run().exits(1).complains("missing/audit");
}

#[test]
fn a_load_puts_files_each_under_a_name_of_its_own() {
    let place = Place::new();
    fs::create_dir(place.path("shared")).expect("a folder");
    let words = "serve files --root shared --accounts none --open-uploads --audit audit --listen 127.0.0.1:0";
    let mut running = place.nstar(words.split(' ')).start();
    let address = listening(&mut running);
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/put-files.toml");
    let url = format!("http://{address}");
    place.nstar(["load", scenario, "--base", &url, "-c", "3", "-n", "4"]).run().has_not_panicked();
    let audit = fs::read_to_string(place.path("audit")).expect("a trail");
    let uploads = audit
        .lines()
        .filter(|line| line.contains("\"upload\"") && line.contains("\"bytes\":100000,"))
        .count();
    assert!(uploads >= 12 && uploads == audit.lines().count(), "{audit}");
    let listing = ask(&address, "GET /files/put/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(listing.contains("user0") && listing.contains("user2"), "{listing}");
    running.signal("TERM");
    running.finish().exits(0);
}
