//! The short form of the suite: what nstar has to get right on any machine, also a slow and noisy one.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The nstar of these sources, built where it is missing or old.
fn nstar() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_truth")).with_file_name("nstar");
    let profile = program.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let profile = profile.filter(|name| *name != "debug").unwrap_or("dev");
    let target = program.parent().and_then(Path::parent).expect("a target folder");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--locked", "--profile", profile, "--target-dir"])
        .arg(target)
        // With the testbed beside it, the libraries built for that are of use here as well.
        .args(["--package", "nstar", "--package", "nstar-lab", "--bin", "nstar"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "nstar does not build");
    program
}

#[test]
fn nstar_is_not_wrong_while_sure() {
    let output = Command::new(env!("CARGO_BIN_EXE_truth"))
        .args(["--short", "--nstar"])
        .arg(nstar())
        .output()
        .expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("| pool "), "{said}\n{errors}");
}
