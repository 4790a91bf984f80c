//! The units of systemd are valid, and leave a server few ways to do harm.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The most that `systemd-analyze security` may find: 0 is nothing, 10 everything.
const EXPOSURE_MAX: f64 = 2.0;

const SYSTEMS: [&str; 6] = ["accounts", "booking", "files", "index", "peer", "sink"];

/// The shipped units in a folder, starting a program that is there. `None` where systemd is not installed, which is told.
fn units() -> Option<tempfile::TempDir> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no systemd-analyze to check units");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd"), folder.path());
    Some(folder)
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("units") {
        let path = entry.expect("a unit").path();
        let copied = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&copied).expect("a folder");
            copy(&path, &copied);
        } else {
            let text = fs::read_to_string(&path).expect("a unit");
            fs::write(copied, text.replace("/usr/bin/nstar-lab", "/bin/true")).expect("a unit");
        }
    }
}

fn analyzed(words: &[&str], units: &[PathBuf]) -> (bool, String) {
    let output = Command::new("systemd-analyze").args(words).args(units).output().expect("systemd-analyze");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn units_are_valid() {
    let Some(folder) = units() else { return };
    let paths =
        SYSTEMS.iter().flat_map(|system| ["service", "socket"].map(|kind| format!("nstar-{system}.{kind}")));
    let paths: Vec<_> = paths.map(|name| folder.path().join(name)).collect();
    let (fits, said) = analyzed(&["verify", "--man=no"], &paths);
    let of_ours: Vec<_> = said.lines().filter(|line| line.contains("nstar-")).collect();
    assert!(fits && of_ours.is_empty(), "{said}");
}

#[test]
fn services_are_exposed_little() {
    let Some(folder) = units() else { return };
    for system in SYSTEMS {
        let unit = folder.path().join(format!("nstar-{system}.service"));
        let (_, said) = analyzed(&["security", "--offline=true", "--no-pager"], &[unit]);
        let level = said.lines().find_map(|line| line.split_once(".service: ")).map(|(_, level)| level);
        let level = level.and_then(|level| level.split(' ').next()?.parse::<f64>().ok());
        let level = level.unwrap_or_else(|| panic!("no level: {said}"));
        assert!(level <= EXPOSURE_MAX, "{system}: {level}: {said}");
    }
}
