//! Checks, before anything is started, that the programs of an experiment are on this machine.

use std::path::{Path, absolute};

use load::{Problem, document::DocumentError};

use crate::{
    definition::{Action, Experiment, Variant},
    process::program,
    resolve::{Places, TrialSetup},
};

/// Checks that at least one variant has all its programs here; the others are left out when the experiment runs. `own` is
/// this program, beside which others are looked for.
///
/// What only a run can name, such as a program in its folder, is not looked for. Nor is a program with a path, if
/// commands run before or once the programs are ready: they may make it.
///
/// # Errors
/// The first program that is missing, with file and line.
pub fn check(experiment: &Experiment, own: &Path) -> Result<(), DocumentError> {
    let mut first = None;
    for variant in &experiment.variants {
        match lacking(experiment, variant, own)? {
            None => return Ok(()),
            Some(missing) => {
                first.get_or_insert(missing);
            }
        }
    }
    first.map_or(Ok(()), |missing| Err(missing.into_error(&experiment.file)))
}

/// A program that a trial runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needed {
    name: String,
    /// Key of the command in the file, and its line.
    key: &'static str,
    line: usize,
    /// Whether it runs while the experiment measures.
    stays: bool,
}

impl Needed {
    fn new(words: Vec<String>, key: &'static str, line: usize) -> Self {
        Self { name: words.into_iter().next().unwrap_or_default(), key, line, stays: false }
    }

    fn has_path(&self) -> bool {
        self.name.contains('/')
    }

    fn into_error(self, file: &Path) -> DocumentError {
        let Self { name, key, line, .. } = &self;
        let what = match self.has_path() {
            false => format!(
                "`{name}` not found beside nstar, on PATH, in /usr/sbin or /sbin: install it, or give its full path"
            ),
            true if Path::new(name).is_absolute() => {
                format!("{name} is not there, or may not be executed")
            }
            true => format!(
                "{} is not there, or may not be executed; `${{here}}` is the folder of this file",
                absolute(name).unwrap_or_default().display()
            ),
        };
        let expected = format!("a program that can be started: {what}");
        let problem = Problem::Value { key: (*key).to_owned(), expected };
        DocumentError { file: file.to_owned(), line: *line, problem }
    }
}

/// What keeps a variant from being measured.
fn lacking(experiment: &Experiment, variant: &Variant, own: &Path) -> Result<Option<Needed>, DocumentError> {
    let makes_programs = makes_programs(experiment);
    let mut first_of_works = Vec::new();
    for work in &experiment.works {
        let mut missing = known(&TrialSetup { experiment, variant, work }, own)?;
        missing.retain(|one| {
            let may_be_made = one.has_path() && makes_programs;
            !may_be_made && program::find(&one.name, own).is_none()
        });
        // The runner leaves out a variant with all its workloads where one of them lacks a program without a path.
        if let Some(one) = missing.iter().find(|one| one.stays && !one.has_path()) {
            return Ok(Some(one.clone()));
        }
        first_of_works.push(missing.into_iter().next());
    }
    let all: Option<Vec<Needed>> = first_of_works.into_iter().collect();
    Ok(all.and_then(|all| all.into_iter().next()))
}

/// Whether commands run that may make a program before it is needed.
fn makes_programs(experiment: &Experiment) -> bool {
    let prepares = experiment.prepare.iter().any(|wanted| matches!(wanted.action, Action::Command(_)));
    prepares || experiment.processes.iter().any(|process| !process.before.is_empty())
}

/// The programs of a trial that are the same wherever and whenever it runs.
fn known(setup: &TrialSetup<'_>, own: &Path) -> Result<Vec<Needed>, DocumentError> {
    let places = Places { program: own.to_owned(), ..Places::example(setup.experiment) };
    let mut others = Places { folder: "/elsewhere".into(), trial: places.trial + 1, ..places.clone() };
    others.ports.values_mut().for_each(|port| *port += 1);
    let (here, elsewhere) = (needed(setup, &places)?, needed(setup, &others)?);
    let same = here.into_iter().zip(elsewhere).filter(|(one, other)| one == other);
    Ok(same.map(|(one, _)| one).collect())
}

/// The programs of a trial, in the order in which they run.
fn needed(setup: &TrialSetup<'_>, places: &Places) -> Result<Vec<Needed>, DocumentError> {
    let experiment = setup.experiment;
    let mut all = Vec::new();
    for one in setup.instances(places)? {
        let values = setup.values_of(one.process, one.number, places);
        for command in &one.process.before {
            all.push(Needed::new(setup.words(command, &values)?, "before", command.line));
        }
        let started = Needed::new(setup.start_words(&one, &values)?, "command", one.process.command.line);
        all.push(Needed { stays: true, ..started });
    }
    let mut values = setup.command_values(places)?;
    values.insert("totals".into(), "totals.json".into());
    let prepares = experiment.prepare.iter().filter_map(|wanted| match &wanted.action {
        Action::Command(command) => Some(command),
        Action::Load { .. } => None,
    });
    let proves = experiment.prove.iter().map(|prove| &prove.command);
    for command in prepares.chain(&experiment.reset).chain(proves) {
        all.push(Needed::new(setup.words(command, &values)?, "command", command.line));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Disk, read};

    /// What is told of an experiment with this command of its only program, on line 4, and with `more` sections.
    fn told(command: &str, more: &str) -> Option<String> {
        fault(&format!("title = \"One\"\n[[process]]\nname = \"web\"\ncommand = [{command}]\n{more}\n{WORK}"))
    }

    fn fault(text: &str) -> Option<String> {
        let experiment = read(Path::new("dir/mine.toml"), text, &Disk).expect("an experiment");
        check(&experiment, Path::new("/nowhere/nstar")).err().map(|error| error.to_string())
    }

    const WORK: &str = "[[work]]\nurl = \"http://127.0.0.1:9/\"\nusers = 1\n";
    const NONE: &str = "no-such-program-anywhere";

    /// Only the run said so, after whatever comes before that program, and without its line.
    #[test]
    fn a_program_that_is_not_there_is_told_with_its_line() {
        let missing = told(&format!("\"{NONE}\""), "").expect("a fault");
        assert!(missing.starts_with("dir/mine.toml:4: `command` must be a program"), "{missing}");
        assert!(missing.contains(&format!("`{NONE}` not found")), "{missing}");
        let missing = told("\"/no/such/program\", \"x\"", "").expect("a fault");
        assert!(missing.contains("mine.toml:4") && missing.contains("/no/such/program is not"), "{missing}");
        let relative = told("\"./no-such\"", "").expect("a fault");
        assert!(relative.contains("/no-such is not there") && relative.contains("`${here}`"), "{relative}");
        assert!(told("\"${here}/no-such\"", "").expect("a fault").contains("/dir/no-such is not"));
        // A folder is no program.
        assert!(told("\"/bin\"", "").is_some());
        assert_eq!(told("\"sh\"", ""), None);
        assert_eq!(told("\"/bin/sh\"", ""), None);
    }

    #[test]
    fn commands_are_looked_for_like_programs() {
        for (section, line) in [
            (format!("before = [[\"true\"], [\"{NONE}\"]]"), 5),
            (format!("[[prepare]]\ncommand = [\"{NONE}\"]"), 6),
            (format!("[[reset]]\ncommand = [\"{NONE}\"]"), 6),
            (format!("[prove]\ncommand = [\"{NONE}\", \"${{totals}}\"]"), 6),
        ] {
            let missing = told("\"sh\"", &section).unwrap_or_default();
            assert!(missing.starts_with(&format!("dir/mine.toml:{line}: ")), "{section}: {missing}");
        }
    }

    #[test]
    fn what_may_be_made_first_is_not_looked_for() {
        let ports = "ports = [\"web\"]";
        for (command, more) in [
            ("\"${folder}/made\"", ""),
            ("\"/no/such-${port.web}\"", ports),
            ("\"/no/such-${trial}\"", ""),
            ("\"/no/such\"", "before = [[\"sh\", \"-c\", \"make\"]]"),
            ("\"/no/such\"", "[[prepare]]\ncommand = [\"sh\", \"-c\", \"make\"]"),
        ] {
            assert_eq!(told(command, more), None, "{command} {more}");
        }
        // A load makes no program, and what has no path must be installed.
        let load = "[[prepare]]\nurl = \"http://127.0.0.1:9/\"\nusers = 1\nrequests = 1";
        assert!(told("\"/no/such\"", load).is_some());
        let before = "before = [[\"sh\", \"-c\", \"make\"]]";
        assert!(told(&format!("\"{NONE}\""), before).is_some());
    }

    #[test]
    fn variants_and_workloads_that_can_be_measured_keep_the_experiment() {
        let varied = |programs: &str| {
            let section = "[[process]]\nname = \"web\"\ncommand = [\"${program}\"]";
            fault(&format!("title = \"Some\"\n[axis]\nprogram = [{programs}]\n{section}\n{WORK}"))
        };
        assert_eq!(varied("\"no-such-a\", \"sh\""), None);
        assert!(varied("\"no-such-a\", \"no-such-b\"").expect("a fault").contains("`no-such-a` not found"));
        let works = |command: &str, prepared: [&str; 2]| {
            let work = |name: &str, program: &str| {
                format!("[[work]]\nname = \"{name}\"\nvalues = {{ program = \"{program}\" }}\n{}", &WORK[9..])
            };
            let [first, second] = prepared;
            fault(&format!("title = \"Two\"\n{command}\n{}{}", work("a", first), work("b", second)))
        };
        let prepare = "[[prepare]]\ncommand = [\"${program}\"]";
        assert_eq!(works(prepare, ["true", NONE]), None);
        assert!(works(prepare, [NONE, NONE]).is_some());
        // The runner leaves out both where one of them needs a program that is not installed.
        let process = "[[process]]\nname = \"web\"\ncommand = [\"${program}\"]";
        assert!(works(process, ["sh", NONE]).is_some());
    }
}
