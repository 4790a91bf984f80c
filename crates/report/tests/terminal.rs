//! What a person sees in a terminal.

use report::{TerminalOptions, terminal};

mod samples;

#[test]
fn every_run_fits_the_width() {
    for (name, run) in samples::all() {
        let options = TerminalOptions { width: 100, ..Default::default() };
        for line in terminal(&run, &options).lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}
