//! Checks of the whole: every name is defined in every variant, and everything that is named is there.

use std::collections::{BTreeMap, BTreeSet};

use load::{Problem, Url, document::DocumentError};

use crate::{
    definition::{Action, Experiment, Process, Processors, Ready, Target, Users},
    names::slug,
    resolve::{Instance, Places, TrialSetup, instance_name},
    template::{self, Value, Values},
};

/// Checks an experiment by filling it in for every measurement, with places that stand for those it will get.
pub(super) fn check(experiment: &Experiment) -> Result<(), DocumentError> {
    check_processes(experiment)?;
    check_reserved(experiment)?;
    check_run_files(experiment)?;
    let places = Places::example(experiment);
    for variant in &experiment.variants {
        for work in &experiment.works {
            check_trial(&TrialSetup { experiment, variant, work }, &places)?;
        }
    }
    // Last: where a name is misspelt, the place that names it says more than the value that is left over.
    check_when(experiment)?;
    check_used(experiment)
}

/// Checks that a value can be given from outside. What is wrong then is the flag, and no line of the file.
pub(super) fn check_settable(experiment: &Experiment, name: &str) -> Result<(), DocumentError> {
    let varied = experiment.variants.iter().any(|variant| variant.values.contains_key(name))
        || experiment.works.iter().any(|work| work.values.contains_key(name));
    if varied {
        let expected = "left to the experiment, which varies it".to_owned();
        let problem = Problem::Value { key: name.into(), expected };
        return Err(DocumentError { file: "--set".into(), line: 0, problem });
    }
    if experiment.values.contains_key(name) {
        return Ok(());
    }
    // What varies cannot be given, and is told as well: whoever misspells it learns so.
    let expected: BTreeSet<String> = all_values(experiment).map(|(name, _)| name.clone()).collect();
    let expected = expected.into_iter().collect();
    let problem = Problem::UnknownName { what: "value", name: name.into(), expected };
    Err(DocumentError { file: "--set".into(), line: 0, problem })
}

/// Names that the runner gives a meaning of its own.
const RESERVED: [&str; 7] = ["folder", "here", "nstar", "number", "totals", "trial", "urls"];

fn check_reserved(experiment: &Experiment) -> Result<(), DocumentError> {
    let variants = experiment.variants.iter().map(|variant| &variant.values);
    let works = experiment.works.iter().map(|work| &work.values);
    let names = [&experiment.values].into_iter().chain(variants).chain(works).flat_map(Values::keys);
    let is_reserved = |name: &&String| {
        RESERVED.contains(&name.as_str()) || name.starts_with("port.") || name.starts_with("address.")
    };
    match names.into_iter().find(is_reserved) {
        None => Ok(()),
        Some(name) => {
            let line = experiment.lines.get(name).copied().unwrap_or(1);
            Err(at(experiment, line, name, "given another name: the runner gives this one a meaning".into()))
        }
    }
}

/// The values of the experiment, of its variants and of its works.
fn all_values(experiment: &Experiment) -> impl Iterator<Item = (&String, &Value)> {
    let variants = experiment.variants.iter().map(|variant| &variant.values);
    let works = experiment.works.iter().map(|work| &work.values);
    [&experiment.values].into_iter().chain(variants).chain(works).flatten()
}

/// A value that nothing names is most likely misspelt where it should be: variants would not differ.
fn check_used(experiment: &Experiment) -> Result<(), DocumentError> {
    let mut used: BTreeSet<&str> = texts(experiment).into_iter().flat_map(template::names).collect();
    used.extend(experiment.processes.iter().flat_map(|one| &one.when).map(|(name, _)| name.as_str()));
    let Some((name, _)) = all_values(experiment).find(|(name, _)| !used.contains(name.as_str())) else {
        return Ok(());
    };
    let line = experiment.lines.get(name).copied().unwrap_or(1);
    let expected = format!("used: nothing names `${{{name}}}`");
    Err(at(experiment, line, name, expected))
}

/// Every text that names may be filled into.
fn texts(experiment: &Experiment) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for (_, value) in all_values(experiment) {
        match value {
            Value::Text(text) => all.push(text),
            Value::List(words) => all.extend(words.iter().map(String::as_str)),
        }
    }
    for process in &experiment.processes {
        let words = process.command.words.iter().chain(&process.join);
        let before = process.before.iter().flat_map(|command| &command.words);
        let environment = process.environment.iter().map(|variable| &variable.text);
        let (iops, mb_per_s) = (&process.disk_iops, &process.disk_mb_per_s);
        let limits = [&process.count, &process.memory, iops, mb_per_s, &process.link_mbit];
        let processors = match &process.processors {
            Processors::Some(text) => std::slice::from_ref(text),
            Processors::These(numbers) => numbers,
        };
        let limits = limits.into_iter().chain(processors);
        all.extend(words.chain(before).chain(environment).chain(limits).map(String::as_str));
        if let Ready::Line(sign) | Ready::Http(sign) = &process.ready {
            all.push(sign);
        }
    }
    all.push(&experiment.room);
    all.extend(experiment.texts.iter().flat_map(|file| [&file.path, &file.text]).map(String::as_str));
    all.extend(experiment.generators.iter().chain(&experiment.observe).map(|one| one.text.as_str()));
    all.extend(
        experiment.data.iter().flat_map(|data| [&data.folder, &data.files, &data.size]).map(String::as_str),
    );
    let proving = experiment.prove.iter().map(|prove| &prove.command);
    let mut commands: Vec<_> = experiment.reset.iter().chain(proving).collect();
    let mut targets = Vec::new();
    for preparation in &experiment.prepare {
        match &preparation.action {
            Action::Command(command) => commands.push(command),
            Action::Load { target, users, .. } => {
                targets.push(target);
                all.push(users);
            }
        }
    }
    all.extend(commands.into_iter().flat_map(|command| &command.words).map(String::as_str));
    for work in &experiment.works {
        targets.push(&work.target);
        all.extend([work.watch_database.as_str(), &work.database_password_file]);
        match &work.users {
            Users::Fixed(users) => all.push(users),
            Users::Swept(users) => all.extend(users.iter().map(String::as_str)),
        }
    }
    for target in targets {
        all.push(&target.url);
        all.extend(target.scenario.iter().map(|scenario| scenario.text.as_str()));
    }
    all
}

/// What `when` asks of something that varies must be there: a misspelt value would silently never start its program.
fn check_when(experiment: &Experiment) -> Result<(), DocumentError> {
    for process in &experiment.processes {
        for (name, allowed) in &process.when {
            let varied = experiment.variants.iter().map(|variant| &variant.values);
            let varied = varied.chain(experiment.works.iter().map(|work| &work.values));
            let mut known: Vec<String> = Vec::new();
            for values in varied {
                match values.get(name) {
                    Some(Value::Text(text)) if !known.contains(text) => known.push(text.clone()),
                    _ => {}
                }
            }
            // One of [values] may be given with --set.
            if known.is_empty() || experiment.values.contains_key(name) {
                continue;
            }
            if let Some(missing) = allowed.iter().find(|value| !known.contains(value)) {
                let problem = Problem::UnknownName { what: "value", name: missing.clone(), expected: known };
                let (file, line) = (experiment.file.clone(), process.command.line);
                return Err(DocumentError { file, line, problem });
            }
        }
    }
    Ok(())
}

/// Each trial needs a run file of its own.
fn check_run_files(experiment: &Experiment) -> Result<(), DocumentError> {
    let mut seen = BTreeSet::new();
    for work in &experiment.works {
        for variant in &experiment.variants {
            if !seen.insert(slug(&format!("{} {}", work.name, variant.name))) {
                let expected = format!(
                    "different: with variant `{}` it gives the same file name as another workload and variant",
                    variant.name
                );
                return Err(at(experiment, work.target.line, "name", expected));
            }
        }
    }
    Ok(())
}

/// Programs that run together need names that differ, also as names of their logs.
fn check_together(setup: &TrialSetup<'_>, instances: &[Instance<'_>]) -> Result<(), DocumentError> {
    let mut seen = BTreeSet::new();
    for one in instances {
        if !seen.insert(slug(&instance_name(one.process, one.number))) {
            let expected =
                "a name of its own: another process of that name, or nearly, runs as well".to_owned();
            return Err(at(setup.experiment, one.process.command.line, "name", expected));
        }
    }
    Ok(())
}

fn check_processes(experiment: &Experiment) -> Result<(), DocumentError> {
    let mut owners = BTreeMap::new();
    for process in &experiment.processes {
        for port in &process.ports {
            // Several ways to start a process may share its ports.
            if owners.insert(port, &process.name).is_some_and(|owner| *owner != process.name) {
                return Err(at(
                    experiment,
                    process.command.line,
                    "ports",
                    format!("other names: `{port}` is there already"),
                ));
            }
        }
    }
    let works = experiment.works.iter().map(|work| &work.target);
    let prepared = experiment.prepare.iter().filter_map(|preparation| match &preparation.action {
        Action::Load { target, .. } => Some(target),
        Action::Command(_) => None,
    });
    let each = works.chain(prepared).map(|Target { each, line, .. }| (each, *line));
    let of = experiment.data.iter().map(|data| (&data.of, data.line));
    let after =
        experiment.prove.iter().flat_map(|prove| prove.after.iter().map(|name| (name, prove.command.line)));
    for (name, line) in each.chain(of).chain(after) {
        if !name.is_empty() && !experiment.processes.iter().any(|process| process.name == *name) {
            let expected = experiment.processes.iter().map(|process| process.name.clone()).collect();
            let problem = Problem::UnknownName { what: "process", name: name.clone(), expected };
            return Err(DocumentError { file: experiment.file.clone(), line, problem });
        }
    }
    Ok(())
}

fn at(experiment: &Experiment, line: usize, key: &str, expected: String) -> DocumentError {
    DocumentError {
        file: experiment.file.clone(),
        line,
        problem: Problem::Value { key: key.into(), expected },
    }
}

fn check_trial(setup: &TrialSetup<'_>, places: &Places) -> Result<(), DocumentError> {
    let TrialSetup { experiment, work, .. } = setup;
    let instances = setup.instances(places)?;
    check_together(setup, &instances)?;
    for instance in instances {
        let values = setup.values_of(instance.process, instance.number, places);
        setup.start_words(&instance, &values)?;
        process(setup, instance.process, &values)?;
    }
    check_conditions(setup, places)?;
    setup.data(places)?;
    setup.room(places)?;
    setup.texts(places)?;
    setup.scenario(&work.target, places)?;
    setup.users_max(places)?;
    setup.database(places)?;
    setup.database_password_file(places)?;
    setup.generators(places)?;
    setup.observers(places)?;
    let mut values = setup.command_values(places)?;
    for preparation in &experiment.prepare {
        match &preparation.action {
            Action::Command(command) => drop(setup.words(command, &values)?),
            Action::Load { target, users, .. } => {
                setup.scenario(target, places)?;
                setup.users(target, users, places)?;
            }
        }
    }
    experiment.reset.iter().try_for_each(|command| setup.words(command, &values).map(drop))?;
    values.insert("totals".into(), "totals.json".into());
    experiment.prove.iter().try_for_each(|prove| setup.words(&prove.command, &values).map(drop))
}

fn process(setup: &TrialSetup<'_>, process: &Process, values: &Values) -> Result<(), DocumentError> {
    process.before.iter().try_for_each(|command| setup.words(command, values).map(drop))?;
    for variable in &process.environment {
        setup.variable(variable, values)?;
    }
    setup.processors(process, None, values)?;
    if let Ready::Line(sign) | Ready::Http(sign) = &process.ready {
        let sign = setup.of_process(sign, "ready", process, values)?;
        let is_url = sign.parse::<Url>().is_ok();
        if matches!(process.ready, Ready::Http(_)) && !is_url {
            let expected = format!("{{ http = \"..\" }} with a URL, not {sign}");
            return Err(at(setup.experiment, process.command.line, "ready", expected));
        }
    }
    Ok(())
}

/// Names in `when` are values: a misspelt one would silently never start its program.
fn check_conditions(setup: &TrialSetup<'_>, places: &Places) -> Result<(), DocumentError> {
    let values = setup.values(places);
    for process in &setup.experiment.processes {
        for (name, _) in &process.when {
            if !values.contains_key(name) {
                let expected = setup.experiment.values_of(setup.variant, setup.work).into_keys().collect();
                let problem = Problem::UnknownName { what: "value", name: name.clone(), expected };
                return Err(DocumentError {
                    file: setup.experiment.file.clone(),
                    line: process.command.line,
                    problem,
                });
            }
        }
    }
    Ok(())
}
