//! Builds `nstar` for suites of other packages, whose tests Cargo builds without it.

use std::{ffi::OsStr, path::Path, process::Command};

/// Builds what is to be at this path, in the profile of the folder that it is in.
pub(crate) fn nstar(program: &Path) {
    let profile = program.parent().expect("a folder of programs");
    let target = profile.parent().expect("a target folder");
    let profile = match profile.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--locked", "--profile", profile, "--target-dir"])
        .arg(target)
        // With the testbed beside it, the libraries built for that are of use here as well.
        .args(["--package", "nstar", "--package", "nstar-lab", "--bin", "nstar"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "nstar does not build");
}
