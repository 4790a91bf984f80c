//! The units of systemd are valid, and leave a server few ways to do harm.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The most that `systemd-analyze security` may find: 0 is nothing, 10 everything.
const EXPOSURE_MAX: f64 = 2.0;

const SYSTEMS: [&str; 6] = ["accounts", "booking", "files", "index", "peer", "sink"];

/// Flags that name files with what others may not know, or belong to one.
const SECRETS: [&str; 6] = [
    "accounts-token-file",
    "database-password-file",
    "secret-file",
    "service-token-file",
    "tls-cert",
    "tls-key",
];

/// How a unit is shipped, and how it is with the credentials that its comments describe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credentials {
    None,
    All,
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

/// The units in a folder, starting a program that is there. `None` where systemd is not installed, which is told.
fn units(credentials: Credentials) -> Option<tempfile::TempDir> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no systemd-analyze to check units");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    copy(&shipped(), folder.path(), credentials);
    Some(folder)
}

fn copy(from: &Path, to: &Path, credentials: Credentials) {
    for entry in fs::read_dir(from).expect("units") {
        let path = entry.expect("a unit").path();
        let copied = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&copied).expect("a folder");
            copy(&path, &copied, credentials);
        } else {
            let mut text = fs::read_to_string(&path).expect("a unit");
            if credentials == Credentials::All {
                for setting in ["LoadCredential", "ExecStart"] {
                    text = text.replace(&format!("\n#{setting}="), &format!("\n{setting}="));
                }
            }
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
    for credentials in [Credentials::None, Credentials::All] {
        let Some(folder) = units(credentials) else { return };
        let paths = SYSTEMS
            .iter()
            .flat_map(|system| ["service", "socket"].map(|kind| format!("nstar-{system}.{kind}")));
        let paths: Vec<_> = paths.map(|name| folder.path().join(name)).collect();
        let (fits, said) = analyzed(&["verify", "--man=no"], &paths);
        let of_ours: Vec<_> = said.lines().filter(|line| line.contains("nstar-")).collect();
        assert!(fits && of_ours.is_empty(), "{said}");
    }
}

/// The values of a setting of a unit, be it one or what a comment shows of it.
fn settings<'u>(unit: &'u str, name: &str) -> Vec<&'u str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)).collect()
}

#[test]
fn a_unit_needs_no_credentials_and_shows_how_every_secret_of_its_flags_may_be_one() {
    let command = nstar_lab::command();
    let serve = command.find_subcommand("serve").expect("serve");
    for system in SYSTEMS {
        let unit = shipped().join(format!("nstar-{system}.service"));
        let unit = fs::read_to_string(unit).expect("a unit");
        assert!(settings(&unit, "LoadCredential=").is_empty(), "{system} does not start without credentials");
        let usual = settings(&unit, "ExecStart=");
        let with_all = settings(&unit, "#ExecStart=");
        let ([usual], ["", with_all]) = (usual.as_slice(), with_all.as_slice()) else {
            panic!("{system}: {usual:?}, {with_all:?}");
        };
        let flags = with_all.strip_prefix(*usual).expect("the same and more flags");
        let flags: Vec<_> = flags.split_whitespace().collect();
        let named: Vec<_> = flags.chunks(2).map(|pair| pair[0].trim_start_matches("--")).collect();
        let used = flags.chunks(2).map(|pair| pair[1].strip_prefix("%d/").expect("a credential"));
        let used: Vec<_> = used.collect();
        let loaded = settings(&unit, "#LoadCredential=");
        let loaded: Vec<_> = loaded.iter().map(|one| one.split(':').next().expect("a name")).collect();
        assert_eq!(used, loaded, "{system}");

        let has = |flag: &str| {
            let mut arguments = serve.find_subcommand(system).expect("a server").get_arguments();
            arguments.any(|argument| argument.get_long() == Some(flag))
        };
        for flag in SECRETS {
            assert_eq!(has(flag), named.contains(&flag), "{system}: --{flag}");
        }
        assert!(named.iter().all(|flag| has(flag)), "{system}: {named:?}");
    }
}

#[test]
fn services_are_exposed_little() {
    let Some(folder) = units(Credentials::None) else { return };
    for system in SYSTEMS {
        let unit = folder.path().join(format!("nstar-{system}.service"));
        let (_, said) = analyzed(&["security", "--offline=true", "--no-pager"], &[unit]);
        let level = said.lines().find_map(|line| line.split_once(".service: ")).map(|(_, level)| level);
        let level = level.and_then(|level| level.split(' ').next()?.parse::<f64>().ok());
        let level = level.unwrap_or_else(|| panic!("no level: {said}"));
        assert!(level <= EXPOSURE_MAX, "{system}: {level}: {said}");
    }
}
