//! A release is refused unless its version is in the changelog and agrees with the tag. What it is made of is tried by
//! `make release`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// A repository with the script and these files, whose only commit has the tags.
fn checked(version: &str, changelog: &str, tags: &[&str]) -> Output {
    let place = tempfile::tempdir().expect("a folder");
    let scripts = place.path().join("scripts");
    fs::create_dir(&scripts).expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/release");
    fs::copy(script, scripts.join("release")).expect("a copy");
    let manifest =
        format!("[workspace]\n\n[workspace.package]\nversion = \"{version}\"\nedition = \"2024\"\n");
    fs::write(place.path().join("Cargo.toml"), manifest).expect("written");
    fs::write(place.path().join("CHANGELOG.md"), changelog).expect("written");
    let run = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        identity.into_iter().for_each(|name| _ = command.env(name, "nobody"));
        command.args(words).current_dir(place.path()).output().expect("it runs")
    };
    run("git", &["init", "--quiet"]);
    let commit = run("git", &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    assert!(commit.status.success(), "{}", String::from_utf8_lossy(&commit.stderr));
    tags.iter().for_each(|tag| _ = run("git", &["tag", tag]));
    run("scripts/release", &["--check"])
}

#[test]
fn a_version_is_released_only_with_its_changes_and_under_its_tag() {
    let changes = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-26\n";
    for tags in [&[][..], &["v1.2.3"], &["v1.2.3", "nightly"]] {
        let output = checked("1.2.3", changes, tags);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for (version, changelog, tags, said) in [
        ("1.2.4", changes, &[][..], "CHANGELOG.md has no '## [1.2.4] - YYYY-MM-DD'"),
        ("1.2", changes, &[], "has no '## [1.2] - YYYY-MM-DD'"),
        ("1.2.3", "## [1x2x3] - 2026-11-26\n", &[], "has no '## [1.2.3]"),
        ("1.2.3", "## [1.2.3]\n", &[], "has no '## [1.2.3]"),
        ("1.2.3", changes, &["v1.2.2"], "HEAD is tagged v1.2.2 but Cargo.toml says 1.2.3"),
    ] {
        let output = checked(version, changelog, tags);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(said), "{version} {tags:?}: {told}");
    }
}

/// The form of https://keepachangelog.com: releases, newest first, and in each the kinds of changes.
#[test]
fn the_changelog_keeps_its_form() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../CHANGELOG.md");
    let text = fs::read_to_string(path).expect("a changelog");
    let kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    let headings = |begin: &'static str| text.lines().filter_map(move |line| line.strip_prefix(begin));
    assert_eq!(headings("## ").next(), Some("[Unreleased]"));
    for release in headings("## ").skip(1) {
        let (version, date) = release.split_once("] - ").unwrap_or_else(|| panic!("{release}"));
        assert!(version.starts_with('[') && date.len() == "2026-11-26".len(), "{release}");
    }
    for kind in headings("### ") {
        assert!(kinds.contains(&kind), "'### {kind}' is none of {kinds:?}: make it '#### {kind}' below one");
    }
}
