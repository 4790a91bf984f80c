//! The manual pages and completions are those of the programs, and the programs that read them find no fault.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The folder that everything is written to, once for all tests.
fn written() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual");
        let _ = fs::remove_dir_all(&folder);
        let output = Command::new(env!("CARGO_BIN_EXE_packaging")).arg(&folder).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Has a program check a file; its `words` come before the file. Returns false, and says so, where it is not installed.
fn passes(program: &str, words: &[&str], path: &Path) -> bool {
    let output = match Command::new(program).args(words).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no {program} to check {} ({error}): run scripts/setup-tests", path.display());
            return false;
        }
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{program} {}: {said}", path.display());
    true
}

#[test]
fn manual_pages_are_well_formed() {
    let folder = written();
    for program in ["nstar", "nstar-lab"] {
        for page in files(&folder.join(program).join("man")) {
            let is_link = fs::read_to_string(&page).expect("a page").starts_with(".so ");
            if !is_link && !passes("mandoc", &["-T", "lint", "-W", "error"], &page) {
                return;
            }
        }
    }
}

#[test]
fn completions_are_well_formed() {
    let folder = written();
    for program in ["nstar", "nstar-lab"] {
        let path = |shell: &str, name: String| folder.join(program).join(shell).join(name);
        passes("bash", &["-n"], &path("bash", format!("{program}.bash")));
        passes("zsh", &["-n"], &path("zsh", format!("_{program}")));
        passes("fish", &["--no-execute"], &path("fish", format!("{program}.fish")));
    }
}

#[test]
fn every_command_has_a_page_with_its_flags_and_no_page_is_in_both_packages() {
    let folder = written();
    let names = |program: &str| -> Vec<String> {
        let pages = files(&folder.join(program).join("man"));
        pages.iter().map(|page| page.file_name().expect("a name").to_string_lossy().into_owned()).collect()
    };
    let (tool, lab) = (names("nstar"), names("nstar-lab"));
    for name in ["nstar.1", "nstar-sweep.1", "nstar-scenario-import.1"] {
        assert!(tool.iter().any(|page| page == name), "{name} in {tool:?}");
    }
    for name in ["nstar-lab.1", "nstar-lab-serve-files.1", "nstar-lab-share-get.1", "nstar-serve.1"] {
        assert!(lab.iter().any(|page| page == name), "{name} in {lab:?}");
    }
    assert!(tool.iter().all(|page| !lab.contains(page)), "in both: {tool:?} {lab:?}");
    assert!(!tool.iter().chain(&lab).any(|page| page.contains("guard")), "a hidden command has no page");
    let files = fs::read_to_string(folder.join("nstar-lab/man/nstar-lab-serve-files.1")).expect("a page");
    assert!(files.contains(r"\-\-root") && files.contains(r"\-\-tls\-cert"), "{files}");
}

#[test]
fn the_terms_of_everything_inside_are_with_each_program() {
    let folder = written();
    let terms = |program: &str| fs::read_to_string(folder.join(program).join("copyright")).expect("terms");
    let (tool, lab) = (terms("nstar"), terms("nstar-lab"));
    for text in [&tool, &lab] {
        for part in [
            "MIT License",
            "\nhdrhistogram 7",
            "\nclap_builder 4",
            "standard library of Rust",
            "Apache License",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // What runs in the compiler is linked into nothing, nor is what only tests use.
        assert!(!text.contains("\nserde_derive 1") && !text.contains("\nproptest 1"), "{text}");
    }
    assert!(lab.contains("\nlibsqlite3-sys 0") && !tool.contains("\nlibsqlite3-sys 0"));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_packaging")).arg("/proc/none").output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to /proc/none"));
}
