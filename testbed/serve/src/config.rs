//! Configuration files: flags of a server in a file, under the same names.
//!
//! What a file may say is what clap knows of the flags, so that there is no second list of names, values or defaults. A file
//! becomes words of the command line, and what the command line says itself wins.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::ErrorKind::{ArgumentConflict, MissingRequiredArgument},
    parser::ValueSource,
};
use http_io::without_user;
use nstar::{
    document::{DeTable, DeValue, DocumentError, Field, Problem, Section, SourceText, wrong},
    exit::Failure,
    flags::is_trusted_owner,
};
use rustix::process::geteuid;

/// The flag that names a file.
const CONFIG: &str = "config";
/// The flag that prints what is in force.
const PRINT: &str = "print-config";
/// By which clap knows it.
pub(crate) const PRINT_ID: &str = "print_config";
/// Flags that mean nothing in a file.
const NOT_IN_FILES: [&str; 4] = [CONFIG, PRINT, "help", "version"];
/// Others may not change what a server does.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The words of a command line for `command`, with those of the file that `--config` names before them.
///
/// # Errors
/// When the file cannot be read, belongs to another user, may be changed by others, or says what the flags do not allow.
pub fn with_file(command: &Command, words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    // Where the words alone are wrong, parsing them as usual says so.
    let relaxed = command.clone().mut_args(|arg| arg.required(false)).no_binary_name(true);
    let Ok(given) = relaxed.clone().try_get_matches_from(&words) else { return Ok(words) };
    let path = given.get_raw(CONFIG).and_then(|mut paths| paths.next()).map(PathBuf::from);
    let Some(path) = path else { return Ok(words) };
    let text = read(&path).map_err(Failure::usage)?;
    let file = File { source: SourceText { path: &path, text: &text }, relaxed, given };
    let mut all = file.words().map_err(|error| Failure::usage(error.to_string()))?;
    all.extend(words);
    Ok(all)
}

/// The text of a file, if only its owner may change it, who is trusted. It is opened once, so that what is checked is what is
/// read.
fn read(path: &Path) -> Result<String, String> {
    let failed = |error: io::Error| format!("--config: {} cannot be read: {error}", path.display());
    let mut file = fs::File::open(path).map_err(failed)?;
    check_access(path, &file.metadata().map_err(failed)?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Refuses a file that somebody else may change.
fn check_access(path: &Path, metadata: &fs::Metadata) -> Result<(), String> {
    let shown = path.display();
    if metadata.permissions().mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(format!("others may change {shown}, and so what this server does: chmod go-w {shown}"));
    }
    if !is_trusted_owner(metadata.uid()) {
        return Err(format!(
            "{shown} belongs to another user, who may change it, and so what this server does: \
             chown {} {shown}, or name another file",
            geteuid().as_raw()
        ));
    }
    Ok(())
}

/// A file and the flags that it may set.
struct File<'a> {
    source: SourceText<'a>,
    /// The command, without flags that are required.
    relaxed: Command,
    /// What the command line says itself.
    given: ArgMatches,
}

impl File<'_> {
    /// The flags of the file that the command line does not have.
    fn words(&self) -> Result<Vec<OsString>, DocumentError> {
        let table = DeTable::parse(self.source.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.source.error(offset, Problem::Syntax(error.message().into()))
        })?;
        let mut words = Vec::new();
        for entry in Section::new(self.source, "the configuration".into(), 0, table.get_ref()).entries() {
            let arg = self.arg(entry)?;
            let of_flag = self.words_of(arg, entry)?;
            let is_given = self.given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
            if !is_given {
                words.extend(of_flag);
            }
        }
        Ok(words)
    }

    /// The flag of this name.
    fn arg(&self, entry: Field<'_>) -> Result<&Arg, DocumentError> {
        let mut args = settable(&self.relaxed);
        args.find(|arg| arg.get_long() == Some(entry.key)).ok_or_else(|| {
            let expected = settable(&self.relaxed).filter_map(Arg::get_long).map(str::to_owned).collect();
            let problem = Problem::UnknownName { what: "flag", name: entry.key.into(), expected };
            self.source.error(entry.offset, problem)
        })
    }

    /// The words that set a flag, each found to be valid.
    fn words_of(&self, arg: &Arg, entry: Field<'_>) -> Result<Vec<OsString>, DocumentError> {
        let words = match (arg.get_action(), entry.value) {
            (ArgAction::SetTrue, DeValue::Boolean(true)) => vec![format!("--{}", entry.key)],
            (ArgAction::SetTrue, DeValue::Boolean(false)) => Vec::new(),
            (ArgAction::SetTrue, _) => return Err(wrong(self.source, entry, "true or false")),
            (ArgAction::Append, DeValue::Array(values)) => {
                let words = values.iter().map(|value| word(entry.key, value.get_ref()));
                words
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong(self.source, entry, "a list of texts or numbers"))?
            }
            (action, value) => {
                let expected = match action {
                    ArgAction::Append => "a text, a number, or a list of them",
                    _ => "a text or a number",
                };
                vec![word(entry.key, value).ok_or_else(|| wrong(self.source, entry, expected))?]
            }
        };
        match self.relaxed.clone().try_get_matches_from(&words) {
            // Whether flags go together is seen once all are.
            Err(error) if !matches!(error.kind(), MissingRequiredArgument | ArgumentConflict) => {
                return Err(wrong(self.source, entry, valid(&error)));
            }
            _ => {}
        }
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

/// The flags that a file may set.
fn settable(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_settable = |arg: &&Arg| arg.get_long().is_some_and(|name| !NOT_IN_FILES.contains(&name));
    command.get_arguments().filter(is_settable)
}

/// The word that sets a flag to a value.
fn word(name: &str, value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(format!("--{name}={text}")),
        DeValue::Integer(number) => Some(format!("--{name}={}", number.as_str())),
        DeValue::Float(number) => Some(format!("--{name}={}", number.as_str())),
        _ => None,
    }
}

/// What a value must be, in clap's words. These begin with `error: ` and end with hints about the command line.
fn valid(error: &clap::Error) -> String {
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default();
    format!("valid: {}", first.strip_prefix("error: ").unwrap_or(first))
}

/// What is in force, as a file that would set it, with defaults as comments. Passwords in URLs are left out.
pub(crate) fn shown(command: &Command, matches: &ArgMatches) -> String {
    settable(command).filter_map(|arg| line(arg, matches)).collect()
}

/// The line of one flag. `None` where it is not set and has no default.
fn line(arg: &Arg, matches: &ArgMatches) -> Option<String> {
    let (name, id) = (arg.get_long()?, arg.get_id().as_str());
    let value = match arg.get_action() {
        ArgAction::SetTrue => matches.get_flag(id).to_string(),
        ArgAction::Append => {
            format!("[{}]", matches.get_raw(id)?.map(quoted).collect::<Vec<_>>().join(", "))
        }
        _ => quoted(matches.get_raw(id)?.next()?),
    };
    let is_default = matches.value_source(id) == Some(ValueSource::DefaultValue);
    let comment = if is_default { "# " } else { "" };
    Some(format!("{comment}{name} = {value}\n"))
}

/// A value as a text of TOML.
fn quoted(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    let text = if text.contains("://") { without_user(&text) } else { text };
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "made-up")]
    struct MadeUp {
        #[arg(long)]
        root: String,
        #[arg(long, default_value = "127.0.0.1:8080", value_parser = crate::values::listen)]
        listen: std::net::SocketAddr,
        #[arg(long, conflicts_with = "open")]
        read_only: bool,
        #[arg(long)]
        open: bool,
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        max_files: u32,
        #[arg(long = "trusted-proxy")]
        proxies: Vec<String>,
        #[arg(long, value_delimiter = ',', default_value = "epoll")]
        engine: Vec<String>,
        #[command(flatten)]
        configuration: crate::flags::Configuration,
    }

    fn expand(text: &str, words: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made-up.toml");
        fs::write(&path, text).unwrap();
        let named = ["--config".into(), path.clone().into_os_string()];
        let words = words.split_whitespace().map(OsString::from).chain(named).collect();
        let shorter = |error: Failure| error.to_string().replace(&path.display().to_string(), "FILE");
        let words = with_file(&MadeUp::command(), words).map_err(shorter)?;
        Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    fn parse(text: &str, words: &str) -> MadeUp {
        MadeUp::command().debug_assert();
        let words = expand(text, words).unwrap();
        MadeUp::try_parse_from(std::iter::once("made-up".to_owned()).chain(words)).unwrap()
    }

    const FILE: &str = "root = '/srv'\nread-only = true\nopen = false\nmax-files = 7\n\
        trusted-proxy = ['10.0.0.1', '10.0.0.2']\nengine = 'uring,epoll'\n";

    #[test]
    fn a_file_sets_flags_also_required_ones_and_the_command_line_wins() {
        let flags = parse(FILE, "");
        assert_eq!((flags.root.as_str(), flags.read_only, flags.open), ("/srv", true, false));
        assert_eq!((flags.max_files, flags.proxies), (7, vec!["10.0.0.1".into(), "10.0.0.2".into()]));
        assert_eq!(flags.engine, ["uring", "epoll"]);
        let flags = parse(FILE, "--root /home --trusted-proxy 10.0.0.3 --max-files 8 --engine poll");
        assert_eq!((flags.root.as_str(), flags.max_files), ("/home", 8));
        assert_eq!((flags.proxies, flags.engine), (vec!["10.0.0.3".into()], vec!["poll".to_owned()]));
    }

    #[test]
    fn mistakes_are_told_with_file_line_and_the_nearest_name() {
        for (text, said) in [
            ("root = 'x'\nmax-file = 7\n", "FILE:2: unknown flag `max-file`, did you mean `max-files`?"),
            ("max_files = 7\n", "did you mean `max-files`?"),
            ("config = 'other.toml'\n", "FILE:1: unknown flag `config`"),
            ("\n\nmax-files = 0\n", "FILE:3: `max-files` must be valid: invalid value '0'"),
            ("listen = '8080'\n", "FILE:1: `listen` must be valid: invalid value '8080'"),
            ("max-files = true\n", "FILE:1: `max-files` must be a text or a number"),
            ("max-files = [1]\n", "FILE:1: `max-files` must be a text or a number"),
            ("trusted-proxy = [true]\n", "a list of texts or numbers"),
            ("read-only = 'yes'\n", "FILE:1: `read-only` must be true or false"),
            ("root = \n", "FILE:1: not TOML"),
            ("[server]\nroot = 'x'\n", "FILE:1: unknown flag `server`"),
        ] {
            let error = expand(text, "").unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_others_may_change_is_refused_and_so_is_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("open.toml");
        fs::write(&path, "root = 'x'\n").unwrap();
        let expand = || with_file(&MadeUp::command(), vec!["--config".into(), path.clone().into()]);
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(expand().unwrap_err().to_string().contains("chmod go-w"));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(expand().is_ok());
        fs::remove_file(&path).unwrap();
        assert!(expand().unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_file_that_another_user_owns_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.toml");
        fs::write(&path, "root = 'x'\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
            eprintln!("skipped: only root gives files away");
            return;
        }
        let words = vec!["--config".into(), path.clone().into()];
        let error = with_file(&MadeUp::command(), words).unwrap_err().to_string();
        assert!(error.contains("another user") && error.contains("chown 0 "), "{error}");
    }

    #[test]
    fn what_is_in_force_is_printed_as_a_file_that_sets_the_same_without_passwords() {
        let show = |text: &str| {
            let words = expand(text, "").unwrap();
            let words =
                words.into_iter().filter(|word| !word.ends_with("made-up.toml") && word != "--config");
            let matches = MadeUp::command().no_binary_name(true).try_get_matches_from(words).unwrap();
            shown(&MadeUp::command(), &matches)
        };
        let once = show(FILE);
        let first = "root = \"/srv\"\n# listen = \"127.0.0.1:8080\"\nread-only = true\n# open = false\n";
        assert!(once.starts_with(first), "{once}");
        assert!(once.contains("engine = [\"uring\", \"epoll\"]\n"), "{once}");
        assert_eq!(show(&once), once);
        let odd = show("root = \"a\\\"b\\\\c\\n\"\n");
        assert!(odd.contains("root = \"a\\\"b\\\\c\\u000A\"\n"), "{odd}");
        assert_eq!(show(&odd), odd);
        let secret = show("root = 'mysql://ann:hush@host/db'\n");
        assert!(secret.contains("mysql://...@host/db") && !secret.contains("hush"), "{secret}");
    }

    #[test]
    fn without_a_file_nothing_changes_and_mistakes_are_left_to_the_usual_messages() {
        for words in [vec!["--root", "x"], vec!["--rot", "x"], vec!["--max-files", "0"], vec!["--help"]] {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            assert_eq!(with_file(&MadeUp::command(), words.clone()).unwrap(), words);
        }
    }
}
