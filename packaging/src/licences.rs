//! Libraries that a program is linked with, and the terms on which they may be passed on.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

/// How files with terms begin, in capitals.
const TERMS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Terms that a library offers beside others, and that are not taken: in capitals, as in names of files.
const NOT_TAKEN: [&str; 2] = ["GPL", "BOOST"];

/// A library.
pub(crate) struct Library {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    pub authors: Vec<String>,
    /// The files with its terms, whole. Empty where none came with it.
    pub terms: Vec<String>,
}

/// What cargo knows of all packages.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<PathBuf>,
    authors: Vec<String>,
    manifest_path: PathBuf,
    /// `None` for packages of this repository.
    source: Option<String>,
}

/// The libraries of others that are linked into a program, by name and version.
///
/// # Errors
/// When cargo fails, or a file cannot be read.
pub(crate) fn linked(program: &str) -> io::Result<Vec<Library>> {
    let reached = tree(program)?;
    let known = cargo(&["metadata", "--format-version=1", "--locked"])?;
    let known: Metadata = serde_json::from_slice(&known)?;
    let mut packages = known.packages;
    packages.retain(|package| {
        package.source.is_some() && reached.contains(&(package.name.clone(), package.version.clone()))
    });
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    packages.into_iter().map(library).collect()
}

/// Names and versions of all packages that end up in a program: no build scripts, and nothing that runs in the compiler.
fn tree(program: &str) -> io::Result<BTreeSet<(String, String)>> {
    let edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let listed = cargo(&[&["tree", "--locked", "--package", program], &edges[..]].concat())?;
    let listed = String::from_utf8_lossy(&listed);
    let named = listed.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    });
    Ok(named.collect())
}

/// What a run of cargo in this repository prints.
fn cargo(words: &[&str]) -> io::Result<Vec<u8>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("cargo {}: {}", words.join(" "), said.trim_end())))
}

fn library(package: Package) -> io::Result<Library> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
    let mut paths: BTreeSet<_> = package.license_file.iter().map(|path| folder.join(path)).collect();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && has_terms(&entry.file_name().to_string_lossy()) {
            paths.insert(entry.path());
        }
    }
    let terms = paths.iter().map(|path| Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()));
    Ok(Library {
        terms: terms.collect::<io::Result<_>>()?,
        licence: package.license.unwrap_or_default(),
        name: package.name,
        version: package.version,
        authors: package.authors,
    })
}

/// Whether a file of this name holds terms that are taken.
fn has_terms(name: &str) -> bool {
    let name = name.to_uppercase();
    TERMS.iter().any(|begin| name.starts_with(begin)) && !NOT_TAKEN.iter().any(|other| name.contains(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_their_names() {
        for name in ["LICENSE-MIT", "license.txt", "COPYING", "NOTICE", "UNLICENSE", "LICENSE-APACHE.md"] {
            assert!(has_terms(name), "{name}");
        }
        for name in ["LICENSE-GPLv2", "LICENSE_BOOST", "README.md", "src"] {
            assert!(!has_terms(name), "{name}");
        }
    }
}
