//! Builds `nstar` for suites of other packages, whose tests Cargo builds without it.

use std::{ffi::OsStr, path::Path, process::Command};

/// Builds what is to be at this path, in the profile of the folder that it is in, where it is missing or older than its sources.
pub(crate) fn nstar(program: &Path) {
    if is_up_to_date(program) {
        return;
    }
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

/// Whether a program is newer than every source that Cargo lists beside it.
fn is_up_to_date(program: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified()).ok();
    let Some(built) = changed(program) else { return false };
    let listed = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = listed.split_once(": ").map_or("", |(_, sources)| sources);
    sources.split_whitespace().all(|source| changed(Path::new(source)).is_some_and(|at| at <= built))
}
