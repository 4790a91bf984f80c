//! `nstar lab|serve|share`: run by nstar-lab, where there is one of the same version.

use std::{fs, os::unix::process::ExitStatusExt, path::Path, process::Command};

use crate::common::program::{Folder, Nstar, tool_program};

/// nstar in a folder of its own, with this script beside it or, in `path`, on PATH as nstar-lab.
fn nstar(folder: &Folder, lab: Option<(&str, &str)>, args: &[&str]) -> Nstar {
    fs::create_dir_all(folder.path("bin")).expect("a folder");
    let program = folder.path("bin/nstar");
    if !program.exists() {
        install(&tool_program(), &program);
    }
    if let Some((place, script)) = lab {
        let script = folder.write("script", format!("#!/bin/sh\n{script}\n"));
        install(&script, &folder.path(place).join("nstar-lab"));
    }
    let path = format!("PATH={}:/usr/bin:/bin", folder.path("path").display());
    let words = ["env", &path, program.to_str().expect("text")];
    folder.call(words.iter().chain(args))
}

/// Copies a program. Another process does so: while this one has the copy open for writing, a child that another test
/// starts has it open as well, and it cannot be run.
fn install(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    let status = Command::new("install").args(["-m", "755"]).args([from, to]).status().expect("coreutils");
    assert!(status.success(), "{from:?} {to:?}");
}

/// A script that says it is of this version, and else does this.
fn of_our_version(then: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("[ \"$1\" = --version ] && {{ echo nstar-lab {version}; exit; }}\n{then}")
}

#[test]
fn without_the_testbed_its_commands_say_how_to_get_it() {
    for command in ["lab", "serve", "share"] {
        let outcome = nstar(&Folder::new(), None, &[command, "--list"]).run().exits(2);
        outcome.complains("needs nstar-lab").complains("/bin nor on PATH").complains("cargo build --release");
    }
    nstar(&Folder::new(), None, &["--help"]).run().exits(0).says("lab").says("serve").says("share");
}

#[test]
fn a_testbed_of_another_version_is_refused_with_both() {
    let ours = env!("CARGO_PKG_VERSION");
    for (script, theirs) in
        [("echo nstar-lab 0.0.7", "0.0.7"), ("echo hello", "unknown"), ("exit 1", "unknown")]
    {
        let outcome = nstar(&Folder::new(), Some(("bin", script)), &["lab"]).run().exits(2);
        outcome
            .complains(&format!("version {theirs}"))
            .complains(&format!("version {ours}"))
            .complains("same source");
    }
}

#[test]
fn everything_is_passed_on_and_comes_back() {
    let folder = Folder::new();
    let script = of_our_version("for word in \"$@\"; do echo \"[$word]\"; done; echo trouble >&2; exit 7");
    for place in ["path", "bin"] {
        for (typed, passed) in [
            (&["lab"][..], ""),
            (&["lab", "--list", "-c", "1,2"], "[--list]\n[-c]\n[1,2]\n"),
            (&["lab", "--help"], "[--help]\n"),
            (&["serve", "files", "--root", "a b"], "[serve]\n[files]\n[--root]\n[a b]\n"),
            (&["share", "get", "--", "-x"], "[share]\n[get]\n[--]\n[-x]\n"),
        ] {
            let outcome = nstar(&folder, Some((place, &script)), typed).run().exits(7).complains("trouble");
            assert_eq!(outcome.stdout, passed, "{outcome}");
        }
    }
}

#[test]
fn the_one_beside_goes_before_one_on_the_path() {
    let folder = Folder::new();
    nstar(&folder, Some(("path", &of_our_version("echo path"))), &["lab"]).run().exits(0).says("path");
    nstar(&folder, Some(("bin", &of_our_version("echo beside"))), &["lab"]).run().exits(0).says("beside");
}

#[test]
fn signals_reach_the_testbed() {
    let folder = Folder::new();
    let mut running =
        nstar(&folder, Some(("bin", &of_our_version("echo ready; exec sleep 100"))), &["lab"]).start();
    assert_eq!(running.first_line(), "ready\n");
    running.signal("TERM");
    assert_eq!(running.finish().status.signal(), Some(15));
}
