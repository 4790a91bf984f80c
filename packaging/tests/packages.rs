//! What the packages are made of is there, and all of what is shipped is in one. What they do when installed, upgraded and
//! removed is tried by `make packages-check`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

/// The programs, with the folders of their crates.
const PROGRAMS: [(&str, &str); 2] = [("nstar", "tool/nstar"), ("nstar-lab", "testbed/nstar-lab")];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

fn package(folder: &str) -> Table {
    let manifest = fs::read_to_string(repository().join(folder).join("Cargo.toml")).expect("a manifest");
    let manifest: Table = manifest.parse().expect("TOML");
    manifest["package"]["metadata"]["deb"].as_table().expect("a package").clone()
}

/// Files of a package: where they come from, below the repository, and where they are installed.
fn assets(folder: &str) -> Vec<(String, String)> {
    let package = package(folder);
    let pair = |asset: &Value| {
        let text = |n: usize| asset[n].as_str().expect("a path").to_owned();
        let from = text(0);
        // Paths begin at the crate, but those of what cargo builds.
        let from = from.strip_prefix("../../").map(str::to_owned).unwrap_or(from);
        (from, text(1))
    };
    package["assets"].as_array().expect("files").iter().map(pair).collect()
}

/// Whether one of the files, or patterns with one `*`, is `path`.
fn has(assets: &[(String, String)], path: &str) -> bool {
    assets.iter().any(|(from, _)| match from.split_once('*') {
        Some((begin, end)) => path.starts_with(begin) && path.ends_with(end),
        None => from == path,
    })
}

#[test]
fn units_and_configurations_are_in_the_package_of_the_servers() {
    let lab = assets("testbed/nstar-lab");
    let folders = ["packaging/systemd", "packaging/config", "packaging/systemd/nstar-.service.d"];
    for folder in folders {
        for entry in fs::read_dir(repository().join(folder)).expect("a folder") {
            let entry = entry.expect("a file");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            assert!(entry.path().is_dir() || has(&lab, &path), "{path} is in no package");
        }
    }
}

#[test]
fn what_is_written_is_in_the_packages_and_what_is_in_them_is_there() {
    for (program, folder) in PROGRAMS {
        let files = assets(folder);
        let written = ["man/x.1", "bash/P.bash", "zsh/_P", "fish/P.fish", "copyright"];
        for file in written.map(|file| format!("target/manual/{program}/{}", file.replace('P', program))) {
            assert!(has(&files, &file), "{file} is not in the package {program}");
        }
        assert!(has(&files, &format!("target/release/{program}")));
        for (from, to) in files.iter().filter(|(from, _)| !from.starts_with("target/")) {
            let at = repository().join(from.split('*').next().unwrap_or_default());
            assert!(at.parent().is_some_and(Path::exists), "{from} for {to} is not in the repository");
            assert!(from.contains('*') || at.exists(), "{from} for {to} is not in the repository");
        }
    }
}

#[test]
fn nothing_starts_by_itself_and_a_purge_takes_what_every_server_kept() {
    let package = package("testbed/nstar-lab");
    let units = &package["systemd-units"];
    assert_eq!((&units["enable"], &units["start"]), (&Value::Boolean(false), &Value::Boolean(false)));
    let scripts = package["maintainer-scripts"].as_str().expect("a folder");
    let removal = repository().join("testbed/nstar-lab").join(scripts).join("postrm");
    let removal = fs::read_to_string(removal).expect("a script");
    let purged =
        removal.split_once("for system in ").and_then(|(_, rest)| rest.split_once(';')).expect("a list").0;
    let mut served: Vec<_> = fs::read_dir(repository().join("packaging/config"))
        .expect("configurations")
        .map(|entry| {
            entry.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    served.sort();
    assert_eq!(purged.split(' ').collect::<Vec<_>>(), served);
}
