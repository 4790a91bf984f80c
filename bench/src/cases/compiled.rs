//! Yardsticks in C, compiled here and now.

use std::process::Command;

use crate::{Outcome, place::Place};

/// Compiles `c/NAME.c`; where the program is.
pub(super) fn program(place: &Place, name: &str) -> Outcome<String> {
    let program = place.path(name).display().to_string();
    let source = format!("{}/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let compiler = Command::new("cc").args(["-O2", "-pthread", "-o", &program, &source]).output();
    let output = compiler.map_err(|error| format!("no C compiler (cc): {error}"))?;
    if output.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}
