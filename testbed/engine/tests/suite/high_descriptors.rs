//! A model that is limited to low descriptors refuses the others and keeps working.

use std::{fs::File, io::Write, net::TcpStream, os::fd::AsRawFd};

use engine::Model;

use crate::{commands::Commands, common::*};

/// The first descriptor beyond the sets of select(2).
const TOO_HIGH: i32 = 1_024;

#[test]
fn select_refuses_what_is_beyond_its_sets_and_serves_the_others() {
    run_apart("high_descriptors::refused_beyond_the_sets", Model::Select);
}

#[test]
#[ignore = "run by the test above"]
fn refused_beyond_the_sets() {
    let model = model_to_try();
    let server = start(model, Commands::new());
    let mut early = connect(&server);
    assert_eq!(ask(&mut early, "hello you"), "hello you");

    let low = take_low_descriptors();
    for refused in 1..=3 {
        let mut late = connect(&server);
        // A reset may come before this is sent.
        let _ = late.write_all(b"hello you\n");
        assert_eq!(rest(&mut late), b"");
        eventually("the refusal is counted", || server.counters().refused() == refused);
    }
    let asked = ask(&mut early, &format!("ask {} hello", server.local_addr()));
    assert!(asked.starts_with("failed: select(2) takes descriptors below 1024 only"), "{asked}");
    let unstartable = engine::start(model, &options(), Same(Commands::new().into())).unwrap_err();
    assert!(unstartable.to_string().contains("below 1024 only"), "{unstartable}");

    drop(low);
    assert_eq!(ask(&mut early, "still here"), "still here");
    let asked = ask(&mut early, &format!("ask {} hello", server.local_addr()));
    assert_eq!(asked, "hello  and hello ");
    assert_eq!(ask(&mut connect(&server), "hello again"), "hello again");
    assert_eq!(server.counters().refused(), 3);
}

#[test]
fn the_others_serve_any_descriptor() {
    for &model in Model::ALL.iter().filter(|&&model| model != Model::Select) {
        run_apart("high_descriptors::served_beyond_the_sets", model);
    }
}

#[test]
#[ignore = "run by the test above"]
fn served_beyond_the_sets() {
    let _low = take_low_descriptors();
    let server = start(model_to_try(), Commands::new());
    let mut client: TcpStream = connect(&server);
    assert!(client.as_raw_fd() >= TOO_HIGH);
    assert_eq!(ask(&mut client, "hello you"), "hello you");
    let asked = ask(&mut client, &format!("ask {} hello", server.local_addr()));
    assert_eq!(asked, "hello  and hello ");
}

/// Opens files until every descriptor below the limit is taken.
fn take_low_descriptors() -> Vec<File> {
    lift_descriptor_limit();
    let mut taken = Vec::new();
    while taken.last().is_none_or(|file: &File| file.as_raw_fd() < TOO_HIGH) {
        taken.push(File::open("/dev/null").expect("a descriptor"));
    }
    taken
}
