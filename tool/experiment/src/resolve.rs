//! One measurement with every name filled in: what runs, with which files, and who is driven.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::{Component, Path, PathBuf},
};

use analysis::search::UsersRange;
use bytesize::ByteSize;
use load::{Problem, RequestTemplate, Scenario, Url, document::DocumentError};
use sweep::{
    cores::{self, Split},
    database::DatabaseUrl,
    elsewhere::{Endpoint, EndpointError},
    fleet,
};

use crate::{
    definition::{
        Command, Data, Elsewhere, Experiment, Process, Processors, ScenarioText, Target, USERS_MAX, Users,
        Variable, Variant, Workload,
    },
    process::limit::Limit,
    template::{self, TemplateError, Value, Values},
};

/// The most instances of one program.
pub(crate) const INSTANCES_MAX: u32 = 64;
/// The most files of one kind.
const FILES_MAX: u64 = 1_000_000;
/// The block of most file systems, bytes.
const BLOCK: u64 = 4096;
/// The most bytes that an experiment may put on the disk.
const BYTES_MAX: u64 = 64 << 30;

/// Reads where load is made, or observed.
type ReadEndpoint = fn(&str) -> Result<Endpoint, EndpointError>;

/// Where things are while an experiment runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The experiment's folder, which is removed with all that is in it.
    pub(crate) folder: PathBuf,
    /// This program.
    pub(crate) program: PathBuf,
    /// Number of the trial, from 1: for what must not be the same twice.
    pub(crate) trial: u32,
    /// Ports by name and instance.
    pub(crate) ports: BTreeMap<(String, u32), u16>,
    /// Addresses of the programs that are not on loopback, by name and instance.
    pub(crate) addresses: BTreeMap<(String, u32), IpAddr>,
}

/// One measurement: a variant on a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialSetup<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) variant: &'a Variant,
    pub(crate) work: &'a Workload,
}

/// A program to run.
#[derive(Debug, Clone)]
pub(crate) struct Instance<'a> {
    pub(crate) process: &'a Process,
    /// From 0.
    pub(crate) number: u32,
    /// What it may use at most.
    pub(crate) limits: Vec<Limit>,
    /// Rate of the link to it, Mb/s.
    pub(crate) link_mbit: Option<u32>,
}

impl Instance<'_> {
    /// What tells it from the others of an experiment.
    pub(crate) fn key(&self) -> (String, u32) {
        (self.process.name.clone(), self.number)
    }

    pub(crate) fn limits_memory(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit, Limit::Memory(_)))
    }
}

/// Files of random bytes to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataSet {
    pub(crate) folder: PathBuf,
    pub(crate) files: u64,
    pub(crate) size: u64,
    /// Number of the first file: those of one instance follow those of another, so that no two hold the same.
    pub(crate) first: u64,
}

impl DataSet {
    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.saturating_mul(self.size)
    }

    /// What they take on the disk, where each file takes whole blocks and an entry of its own.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let blocks = self.size.div_ceil(BLOCK).saturating_add(1);
        self.files.saturating_mul(blocks.saturating_mul(BLOCK))
    }
}

/// A place in the experiment's file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    file: &'a Path,
    line: usize,
    /// Known names, for messages.
    known: &'a Values,
    /// Names to fill in with their lines.
    names: &'a [(String, usize)],
}

impl At<'_> {
    fn problem(&self, problem: Problem) -> DocumentError {
        DocumentError { file: self.file.into(), line: self.line, problem }
    }

    fn wrong(&self, key: &str, expected: impl Into<String>) -> DocumentError {
        self.problem(Problem::Value { key: key.into(), expected: expected.into() })
    }

    /// The known names, but ports of the second and later instances, which would drown the rest.
    fn known_names(&self) -> impl Iterator<Item = String> {
        let numbered = |known: &&String| known.ends_with(|c: char| c.is_ascii_digit()) && known.contains('.');
        self.known.keys().filter(move |known| !numbered(known)).cloned()
    }

    fn template(&self, key: &str, error: TemplateError) -> DocumentError {
        match error {
            TemplateError::Unknown { name } => {
                // A text or a command may go on over many lines.
                let named = self.names.iter().find(|(known, line)| *known == name && *line >= self.line);
                let at = At { line: named.map_or(self.line, |(_, line)| *line), ..*self };
                at.problem(Problem::UnknownName {
                    what: "name",
                    name,
                    expected: self.known_names().collect(),
                })
            }
            TemplateError::Unclosed => self.problem(Problem::UnclosedSlot { key: key.into() }),
            other => self.wrong(key, format!("a text that can be filled in: {other}")),
        }
    }
}

impl<'a> TrialSetup<'a> {
    /// What every name stands for.
    pub(crate) fn values(&self, places: &Places) -> Values {
        let mut all = self.experiment.values_of(self.variant, self.work);
        // Programs run elsewhere, so a relative path would not lead there.
        let file =
            std::path::absolute(&self.experiment.file).unwrap_or_else(|_| self.experiment.file.clone());
        all.insert("here".into(), shown(file.parent().unwrap_or(Path::new("/"))));
        all.insert("folder".into(), shown(&places.folder));
        all.insert("nstar".into(), shown(&places.program));
        all.insert("trial".into(), places.trial.to_string().into());
        for process in &self.experiment.processes {
            all.insert(
                format!("address.{}", process.name),
                places.address(&process.name, 0).to_string().into(),
            );
        }
        for ((name, number), port) in &places.ports {
            if *number == 0 {
                all.insert(format!("port.{name}"), port.to_string().into());
            }
            all.insert(format!("port.{name}.{number}"), port.to_string().into());
        }
        all
    }

    /// The same for one instance of a program, whose own ports and address come first.
    pub(crate) fn values_of(&self, process: &Process, number: u32, places: &Places) -> Values {
        let mut all = self.values(places);
        all.insert("number".into(), number.to_string().into());
        all.insert(
            format!("address.{}", process.name),
            places.address(&process.name, number).to_string().into(),
        );
        for name in &process.ports {
            if let Some(port) = places.ports.get(&(name.clone(), number)) {
                all.insert(format!("port.{name}"), port.to_string().into());
            }
        }
        all
    }

    /// The same for commands of the whole experiment, which may name where the load goes.
    pub(crate) fn command_values(&self, places: &Places) -> Result<Values, DocumentError> {
        let mut all = self.values(places);
        all.insert("urls".into(), Value::List(self.urls(&self.work.target, places)?));
        Ok(all)
    }

    /// The programs to run, in the order in which they start.
    pub(crate) fn instances(&self, places: &Places) -> Result<Vec<Instance<'a>>, DocumentError> {
        let values = self.values(places);
        let mut all = Vec::new();
        for process in self.experiment.processes.iter().filter(|process| process.starts_with(&values)) {
            let at = self.at(process.command.line, &values);
            let count = self.number(&process.count, "count", at, 1..=u64::from(INSTANCES_MAX))?;
            let limits = self.limits(process, at)?;
            let link = self.text(&process.link_mbit, "link_mbit", at)?;
            let link_mbit = match link.as_str() {
                "" => None,
                text => Some(text.parse().ok().filter(|rate| *rate > 0).ok_or_else(|| {
                    at.wrong("link_mbit", "a number of megabits per second, 1 or more, or empty")
                })?),
            };
            let count = u32::try_from(count).unwrap_or(INSTANCES_MAX);
            let instance = |number| Instance { process, number, limits: limits.clone(), link_mbit };
            all.extend((0..count).map(instance));
        }
        Ok(all)
    }

    /// What a program may use at most.
    fn limits(&self, process: &Process, at: At<'_>) -> Result<Vec<Limit>, DocumentError> {
        let rate = |text: &str, key: &str| match self.text(text, key, at)?.as_str() {
            "" => Ok(None),
            rate => {
                let rate = rate.parse().ok().filter(|rate: &u32| *rate > 0);
                rate.map(|rate| Some(u64::from(rate)))
                    .ok_or_else(|| at.wrong(key, "a whole number, 1 or more, or empty"))
            }
        };
        let memory = match self.text(&process.memory, "memory", at)?.as_str() {
            "" => None,
            text => {
                let bytes =
                    size(text).ok_or_else(|| at.wrong("memory", "a size such as \"512 MB\", or empty"))?;
                Some(Limit::Memory(bytes))
            }
        };
        let iops = rate(&process.disk_iops, "disk_iops")?;
        let bytes_per_s =
            rate(&process.disk_mb_per_s, "disk_mb_per_s")?.map(|megabytes| megabytes * 1_000_000);
        let is_limited = iops.is_some() || bytes_per_s.is_some();
        let disk = is_limited.then_some(Limit::Disk { iops, bytes_per_s });
        Ok(memory.into_iter().chain(disk).collect())
    }

    /// The files to make.
    pub(crate) fn data(&self, places: &Places) -> Result<Vec<DataSet>, DocumentError> {
        let instances = self.instances(places)?;
        let mut all = Vec::new();
        let mut bytes = 0_u64;
        for data in &self.experiment.data {
            let numbers: Vec<u32> = match data.of.as_str() {
                "" => vec![0],
                name => {
                    instances.iter().filter(|one| one.process.name == name).map(|one| one.number).collect()
                }
            };
            for number in numbers {
                let set = self.data_set(data, number, places)?;
                if all.iter().any(|other: &DataSet| other.folder == set.folder) {
                    let known = Values::new();
                    let expected =
                        "a folder that no other files are made in; with `of`, one with ${number} in its name";
                    return Err(self.at(data.line, &known).wrong("folder", expected));
                }
                bytes = bytes.saturating_add(set.bytes());
                all.push(set);
            }
            if bytes > BYTES_MAX {
                let known = Values::new();
                return Err(self
                    .at(data.line, &known)
                    .wrong("files", format!("few enough for {} in all", ByteSize(BYTES_MAX))));
            }
        }
        Ok(all)
    }

    /// What the programs put on the disk besides, bytes.
    pub(crate) fn room(&self, places: &Places) -> Result<u64, DocumentError> {
        let values = self.values(places);
        let at = self.at(1, &values);
        match self.text(&self.experiment.room, "room", at)?.as_str() {
            "" => Ok(0),
            text => size(text).ok_or_else(|| at.wrong("room", "a size such as \"2 GB\", or empty")),
        }
    }

    fn data_set(&self, data: &Data, number: u32, places: &Places) -> Result<DataSet, DocumentError> {
        let mut values = self.values(places);
        values.insert("number".into(), number.to_string().into());
        let at = self.at(data.line, &values);
        let files = self.number(&data.files, "files", at, 0..=FILES_MAX)?;
        let text = self.text(&data.size, "size", at)?;
        let size = size(&text).ok_or_else(|| at.wrong("size", "a size such as \"100 KB\" or \"1 MiB\""))?;
        let inner = self.text(&data.folder, "folder", at)?;
        // Everything in it is removed: never a folder of somebody else's.
        if !is_inner(Path::new(&inner)) {
            return Err(at.wrong("folder", "a path within the experiment's folder, such as \"files\""));
        }
        let folder = places.folder.join(inner);
        Ok(DataSet { folder, files, size, first: u64::from(number) * files })
    }

    /// The text files to write: path and text.
    pub(crate) fn texts(&self, places: &Places) -> Result<Vec<(PathBuf, String)>, DocumentError> {
        let values = self.values(places);
        let one = |file: &crate::definition::TextFile| {
            let at = self.at(file.line, &values);
            let path = self.text(&file.path, "path", at)?;
            if !is_inner(Path::new(&path)) {
                return Err(
                    at.wrong("path", "a path within the experiment's folder, such as \"server.conf\"")
                );
            }
            Ok((places.folder.join(path), self.text(&file.text, "text", at)?))
        };
        self.experiment.texts.iter().map(one).collect()
    }

    /// The words of a command.
    pub(crate) fn words(&self, command: &Command, values: &Values) -> Result<Vec<String>, DocumentError> {
        let at = self.at(command.line, values);
        template::fill_words(&command.words, values).map_err(|error| at.template("command", error))
    }

    /// The program that each process starts, by the process's name.
    pub(crate) fn programs(&self, places: &Places) -> Result<Vec<(String, String)>, DocumentError> {
        let first = |one: &Instance<'_>| {
            let words = self.start_words(one, &self.values_of(one.process, one.number, places))?;
            Ok((instance_name(one.process, one.number), words.into_iter().next().unwrap_or_default()))
        };
        self.instances(places)?.iter().filter(|one| one.number == 0).map(first).collect()
    }

    /// The words that start an instance of a program.
    pub(crate) fn start_words(
        &self,
        one: &Instance<'_>,
        values: &Values,
    ) -> Result<Vec<String>, DocumentError> {
        let mut command = one.process.command.clone();
        if one.number > 0 {
            command.words.extend(one.process.join.iter().cloned());
        }
        self.words(&command, values)
    }

    /// The value of an environment variable.
    pub(crate) fn variable(&self, variable: &Variable, values: &Values) -> Result<String, DocumentError> {
        self.text(&variable.text, "environment", self.at(variable.line, values))
    }

    /// The processors that a program may use; `None`: all. Before they are shared out, those of this process.
    pub(crate) fn processors(
        &self,
        process: &Process,
        split: Option<&Split>,
        values: &Values,
    ) -> Result<Option<Vec<usize>>, DocumentError> {
        let at = self.at(process.command.line, values);
        let all = || match split {
            Some(split) => [split.systems.as_slice(), &split.generator].concat(),
            None => cores::available(),
        };
        match &process.processors {
            Processors::Some(text) => match self.text(text, "processors", at)?.as_str() {
                "systems" => Ok(split.map(|split| split.systems.clone())),
                "all" => Ok(split.map(|_| all())),
                number => {
                    let systems = split.map_or_else(all, |split| split.systems.clone());
                    let count = number.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
                        let expected = "\"systems\", \"all\", how many, or a list of numbers such as [0, 2]";
                        at.wrong("processors", expected)
                    })?;
                    let first = systems.get(..count).ok_or_else(|| {
                        at.wrong(
                            "processors",
                            format!(
                                "at most {}: there are no more for programs{}",
                                systems.len(),
                                match split {
                                    Some(_) =>
                                        ", as the others make the load (--share-cores lets both use all)",
                                    None => "",
                                }
                            ),
                        )
                    })?;
                    Ok(Some(first.to_vec()))
                }
            },
            Processors::These(numbers) => {
                let number = |text: &String| {
                    let filled = self.text(text, "processors", at)?;
                    filled.parse().map_err(|_| at.wrong("processors", "a list of numbers, such as [0, 2]"))
                };
                let these: Vec<usize> = numbers.iter().map(number).collect::<Result<_, _>>()?;
                let all = all();
                if these.iter().all(|one| all.contains(one)) {
                    return Ok(Some(these));
                }
                Err(at.wrong("processors", format!("of the processors that nstar may use, {all:?}")))
            }
        }
    }

    /// A text that belongs to a program.
    pub(crate) fn of_process(
        &self,
        text: &str,
        key: &str,
        process: &Process,
        values: &Values,
    ) -> Result<String, DocumentError> {
        self.text(text, key, self.at(process.command.line, values))
    }

    /// The URLs that a load goes to.
    pub(crate) fn urls(&self, target: &Target, places: &Places) -> Result<Vec<String>, DocumentError> {
        let of = |values: &Values| self.text(&target.url, "url", self.at(target.line, values));
        if target.each.is_empty() {
            return Ok(vec![of(&self.values(places))?]);
        }
        let instances = self.instances(places)?;
        let each = instances.iter().filter(|one| one.process.name == target.each);
        each.map(|one| of(&self.values_of(one.process, one.number, places))).collect()
    }

    /// What a load sends, and where.
    pub(crate) fn scenario(&self, target: &Target, places: &Places) -> Result<Scenario, DocumentError> {
        let values = self.values(places);
        let at = self.at(target.line, &values);
        let urls: Vec<Url> = self
            .urls(target, places)?
            .iter()
            .map(|url| url.parse().map_err(|error| at.wrong("url", format!("a URL ({error})"))))
            .collect::<Result<_, _>>()?;
        let first = urls.first().ok_or_else(|| at.wrong("each", "a program that runs in this variant"))?;
        let Some(text) = &target.scenario else {
            let request = RequestTemplate { method: "GET".into(), ..RequestTemplate::default() };
            return Scenario::single(first, request).map_err(|error| at.wrong("url", error.to_string()));
        };
        let filled = self.scenario_text(target, places)?;
        Ok(self.read_scenario(text, &filled, at)?.with_bases(urls))
    }

    /// The text of the scenario that a load sends; empty if it sends none.
    pub(crate) fn scenario_text(&self, target: &Target, places: &Places) -> Result<String, DocumentError> {
        let values = self.values(places);
        let text = target.scenario.as_ref().map_or("", |scenario| &scenario.text);
        let at = self.at(target.line, &values);
        template::fill_known(text, &values).map_err(|error| at.template("scenario", error))
    }

    fn read_scenario(
        &self,
        text: &ScenarioText,
        filled: &str,
        at: At<'_>,
    ) -> Result<Scenario, DocumentError> {
        let inline = text.path == self.experiment.file;
        let scenario = Scenario::from_toml(&text.path, filled).map_err(|error| match inline {
            // The line is one of the text within the experiment's file, whose names may stand there too.
            true => {
                let problem = error.problem.expecting_also(at.known_names());
                at.wrong("scenario", format!("a scenario: line {} of it: {problem}", error.line))
            }
            false => error,
        })?;
        let weights = text.weights.iter().cloned().collect();
        scenario.with_weights(&weights).map_err(|problem| at.problem(problem))
    }

    /// How many users: those of the workload, for each instance that is driven.
    pub(crate) fn users(&self, target: &Target, users: &str, places: &Places) -> Result<u32, DocumentError> {
        let values = self.values(places);
        let at = self.at(target.line, &values);
        let each = self.number(users, "users", at, 1..=USERS_MAX)?;
        let targets = self.urls(target, places)?.len() as u64;
        u32::try_from(each.saturating_mul(targets))
            .map_err(|_| at.wrong("users", "a smaller number: too many users in all"))
    }

    /// The database to ask which of its sessions wait for locks.
    pub(crate) fn database(&self, places: &Places) -> Result<Option<DatabaseUrl>, DocumentError> {
        let values = self.values(places);
        let at = self.at(self.work.target.line, &values);
        let text = self.text(&self.work.watch_database, "watch_database", at)?;
        if text.is_empty() {
            return Ok(None);
        }
        // The text itself is not shown: it may hold a password.
        let wrong = |error| at.wrong("watch_database", format!("the URL of a database ({error})"));
        text.parse().map(Some).map_err(wrong)
    }

    /// The file that holds this database's password.
    pub(crate) fn database_password_file(&self, places: &Places) -> Result<Option<PathBuf>, DocumentError> {
        let values = self.values(places);
        let at = self.at(self.work.target.line, &values);
        let text = self.text(&self.work.database_password_file, "database_password_file", at)?;
        Ok((!text.is_empty()).then(|| places.folder.join(text)))
    }

    /// Where load is made, if not by this process.
    pub(crate) fn generators(&self, places: &Places) -> Result<Vec<Endpoint>, DocumentError> {
        self.endpoints(&self.experiment.generators, ("generators", fleet::endpoint), places)
    }

    /// Where to observe besides this host.
    pub(crate) fn observers(&self, places: &Places) -> Result<Vec<Endpoint>, DocumentError> {
        self.endpoints(&self.experiment.observe, ("observe", str::parse), places)
    }

    fn endpoints(
        &self,
        all: &[Elsewhere],
        (key, read): (&str, ReadEndpoint),
        places: &Places,
    ) -> Result<Vec<Endpoint>, DocumentError> {
        let values = self.values(places);
        let endpoint = |one: &Elsewhere| {
            let at = self.at(one.line, &values);
            let expected = "made of ssh://[USER@]HOST[:PORT] and commands that run `nstar agent`";
            let wrong = |error: EndpointError| at.wrong(key, format!("{expected} ({error})"));
            read(&self.text(&one.text, key, at)?).map_err(wrong)
        };
        all.iter().map(endpoint).collect()
    }

    /// The most users of the workload.
    pub(crate) fn users_max(&self, places: &Places) -> Result<u32, DocumentError> {
        match &self.work.users {
            Users::Fixed(text) => self.users(&self.work.target, text, places),
            Users::Swept(numbers) => Ok(self.swept(numbers, places)?.most()),
        }
    }

    /// The users of a sweep: a range of two numbers, or a list of more.
    pub(crate) fn swept(&self, numbers: &[String], places: &Places) -> Result<UsersRange, DocumentError> {
        let values = self.values(places);
        let at = self.at(self.work.target.line, &values);
        let number = |text: &String| self.number(text, "users", at, 1..=USERS_MAX);
        let users =
            numbers.iter().map(|text| number(text).map(|users| u32::try_from(users).unwrap_or(u32::MAX)));
        let users: Vec<u32> = users.collect::<Result<_, _>>()?;
        Users::range(users).ok_or_else(|| at.wrong("users", Users::EXPECTED))
    }

    fn at<'v>(&self, line: usize, known: &'v Values) -> At<'v>
    where
        'a: 'v,
    {
        At { file: &self.experiment.file, line, known, names: &self.experiment.names }
    }

    fn text(&self, text: &str, key: &str, at: At<'_>) -> Result<String, DocumentError> {
        template::fill(text, at.known).map_err(|error| at.template(key, error))
    }

    fn number(
        &self,
        text: &str,
        key: &str,
        at: At<'_>,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, DocumentError> {
        let filled = self.text(text, key, at)?;
        let number = filled.trim().parse().ok().filter(|number| range.contains(number));
        number
            .ok_or_else(|| at.wrong(key, format!("a whole number from {} to {}", range.start(), range.end())))
    }
}

impl Places {
    /// Places that stand for those an experiment will get: a port for every name and instance.
    pub(crate) fn example(experiment: &Experiment) -> Self {
        let names = experiment.processes.iter().flat_map(|process| &process.ports);
        let ports = names.flat_map(|name| (0..INSTANCES_MAX).map(move |number| ((name.clone(), number), 1)));
        Places { folder: "/".into(), program: "nstar".into(), ports: ports.collect(), ..Places::default() }
    }

    /// The address of an instance.
    pub(crate) fn address(&self, process: &str, number: u32) -> IpAddr {
        self.addresses.get(&(process.to_owned(), number)).copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

/// Whether a path leads nowhere but down.
pub(crate) fn is_inner(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// What an instance is called in messages, and its log: `peer`, `peer 1`.
pub(crate) fn instance_name(process: &Process, number: u32) -> String {
    if number == 0 { process.name.clone() } else { format!("{} {number}", process.name) }
}

fn shown(path: &Path) -> Value {
    Value::Text(path.display().to_string())
}

fn size(text: &str) -> Option<u64> {
    text.trim().parse::<ByteSize>().ok().map(|size| size.as_u64())
}
