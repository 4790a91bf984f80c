//! The short form of the suite: what nstar has to get right on any machine, also a slow and noisy one.

use std::{path::Path, process::Command};

#[path = "../../tool/nstar/tests/common/build.rs"]
mod build;

#[test]
fn nstar_is_not_wrong_while_sure() {
    let nstar = Path::new(env!("CARGO_BIN_EXE_truth")).with_file_name("nstar");
    build::nstar(&nstar);
    let output = Command::new(env!("CARGO_BIN_EXE_truth"))
        .args(["--short", "--nstar"])
        .arg(nstar)
        .output()
        .expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("| pool "), "{said}\n{errors}");
}
