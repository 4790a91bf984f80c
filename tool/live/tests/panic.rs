//! A panic gives the terminal back before it says anything.

use std::{
    env,
    process::Command,
    sync::{Arc, atomic::AtomicBool},
};

use live::{Screen, Shared, Style};

/// Set for the process that panics.
const PANICS: &str = "NSTAR_TEST_PANICS";

#[test]
fn a_panic_is_told_on_the_screen_that_stays() {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "the_one_that_panics", "--nocapture"])
        .env(PANICS, "1")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let (_, after) = said.split_once("\x1b[?1049h").expect("a screen of its own");
    let (_, after) = after.split_once("\x1b[?25h\x1b[?1049l").expect("given back");
    assert!(after.contains("on purpose"), "{said:?}");
    assert!(!after.contains("\x1b[?1049h") && !after.contains("Preparing"), "{said:?}");
}

#[test]
fn the_one_that_panics() {
    if env::var_os(PANICS).is_none() {
        return;
    }
    let shared = Shared::new("a server", Arc::new(AtomicBool::new(false)));
    let _screen = Screen::open(&shared, Style { colour: false, unicode: true }).expect("stderr takes it");
    panic!("on purpose");
}
