//! The file `copyright` of a package: the terms of a program and of everything that is linked into it.

use std::{collections::BTreeMap, io};

use crate::licences::{self, Library};

/// The terms of this repository, which are those of MIT.
const OURS: &str = include_str!("../../LICENSE");

/// How the part of those begins that names nobody.
const MIT_BEGINS: &str = "Permission is hereby granted";

/// The terms of Apache-2.0, for libraries to which their authors added no file.
const APACHE: &str = include_str!("../licences/Apache-2.0.txt");

/// What is linked and in no list of packages.
const UNLISTED: &str = "
The standard library of Rust: MIT OR Apache-2.0, copyright its contributors (https://www.rust-lang.org/).
SQLite, where libsqlite3-sys is listed: in the public domain.
";

/// The text of the file for a program.
///
/// # Errors
/// When cargo does not say what is linked, or the terms of a library are not found.
pub(crate) fn text(program: &str) -> io::Result<String> {
    let libraries = licences::linked(program)?;
    match libraries.iter().find(|library| terms(library).is_empty()) {
        None => Ok(rendered(program, &libraries)),
        Some(Library { name, licence, .. }) => Err(io::Error::other(format!(
            "{name} ({licence}) came without its terms: add their text to packaging/licences"
        ))),
    }
}

fn rendered(program: &str, libraries: &[Library]) -> String {
    let mut text = format!("{program}\n\n{OURS}{}", title("Libraries inside"));
    text.extend(libraries.iter().map(line));
    text.push_str(UNLISTED);
    for (terms, names) in grouped(libraries) {
        text.push_str(&title(&names.join(", ")));
        text.push_str(terms.trim_end());
        text.push('\n');
    }
    text
}

fn title(text: &str) -> String {
    format!("\n{}\n{text}\n\n", "=".repeat(80))
}

/// A library in the list of all, with its authors where no file names them.
fn line(library: &Library) -> String {
    let Library { name, version, licence, authors, terms } = library;
    let by = match terms.is_empty() && !authors.is_empty() {
        true => format!(", copyright {}", authors.join(", ")),
        false => String::new(),
    };
    format!("{name} {version}: {licence}{by}\n")
}

/// All terms, each once, with the libraries that they are for.
fn grouped(libraries: &[Library]) -> Vec<(&str, Vec<String>)> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for library in libraries {
        for terms in terms(library) {
            // Lines are broken and indented in many ways.
            let words: Vec<_> = terms.split_whitespace().collect();
            let place = *places.entry(words).or_insert_with(|| {
                groups.push((terms, Vec::new()));
                groups.len() - 1
            });
            if let Some((_, names)) = groups.get_mut(place) {
                names.push(format!("{} {}", library.name, library.version));
            }
        }
    }
    groups
}

/// The terms that came with a library, or else the plain text of its licence.
fn terms(library: &Library) -> Vec<&str> {
    if !library.terms.is_empty() {
        return library.terms.iter().map(String::as_str).collect();
    }
    let mit = OURS.find(MIT_BEGINS).and_then(|at| OURS.get(at..)).unwrap_or(OURS);
    let named = |name: &str| library.licence.split([' ', '/', '(', ')']).any(|word| word == name);
    [("MIT", mit), ("Apache-2.0", APACHE)]
        .into_iter()
        .find(|(name, _)| named(name))
        .map(|(_, terms)| terms)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, licence: &str, terms: &[&str]) -> Library {
        Library {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            authors: vec!["Ann <ann@example.org>".to_owned()],
            terms: terms.iter().map(|&terms| terms.to_owned()).collect(),
        }
    }

    #[test]
    fn terms_are_there_once_for_all_whose_words_are_the_same() {
        let libraries = [
            library("a", "ISC", &["May be\nused."]),
            library("b", "ISC", &["May  be used.\n", "Not by me."]),
        ];
        let text = rendered("nstar", &libraries);
        assert!(text.starts_with("nstar\n\nMIT License"), "{text}");
        assert!(text.contains("a 1.0.0: ISC\nb 1.0.0: ISC\n"), "{text}");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n\nMay be\nused.\n"), "{text}");
        assert_eq!(text.matches("Not by me.").count(), 1, "{text}");
    }

    #[test]
    fn who_added_no_terms_is_named_with_those_of_the_licence() {
        let text =
            rendered("nstar", &[library("a", "Apache-2.0 OR MIT", &[]), library("b", "Apache-2.0", &[])]);
        assert!(text.contains("a 1.0.0: Apache-2.0 OR MIT, copyright Ann <ann@example.org>\n"), "{text}");
        assert!(text.contains("\na 1.0.0\n\nPermission is hereby granted"), "{text}");
        assert!(text.contains("\nb 1.0.0\n"), "{text}");
    }
}
