//! Where trials are made: a folder with files, and the programs that are running.

use std::{collections::BTreeMap, fs, path::PathBuf, process, sync::atomic::AtomicBool, time::Duration};

use analysis::{
    comparison::{LeftOut, LeftOutCause},
    run::{Prepared, Warning},
};
use sweep::{cores, profiling::ProgramTables, sweep::Driven};
use tempfile::TempDir;

use super::{
    plan::{RunError, RunPlan},
    ports, preparation,
};
use crate::{
    data,
    definition::{Ready, Variable},
    process::{
        command::{Surroundings, run_checked},
        limit::Limit,
        link::{self, LinkPlan},
        ready::Sign,
        running::{Guard, Guards, Launch, Running},
    },
    progress::{Event, Listener},
    resolve::{DataSet, Instance, Places, TrialSetup, instance_name},
    template::Values,
    trials::Trial,
};

/// The folder, and the programs that are running.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) places: Places,
    /// In the order in which they started.
    pub(super) running: Vec<((String, u32), Running)>,
    pub(super) data: Vec<DataSet>,
    texts: Vec<(PathBuf, String)>,
    /// Lists that preparations gave to the scenario: items by name.
    pub(super) items: BTreeMap<String, Vec<String>>,
    /// What commands said that prepared and reset, by whether they reset and by their place in the file.
    pub(super) said: BTreeMap<(bool, usize), Prepared>,
    guards: Guards,
    /// The links of the trial, by program and instance.
    links: BTreeMap<(String, u32), LinkPlan>,
    /// The networks of links, those of the trial before included.
    networks: BTreeMap<(String, u32), u32>,
    /// What was prepared last on the programs that are running; `None`: nothing, or not to its end.
    prepared: Option<Vec<String>>,
    /// True once the preparations with `once = true` have run.
    prepared_once: bool,
    /// How long one trial may take; `None`: as long as it needs.
    pub(super) time: Option<Duration>,
    /// How long the test of its verdict may take; `None`: it is not tested.
    pub(super) test: Option<Duration>,
    /// Whether the trial is profiled.
    pub(super) profile: Option<ProgramTables>,
    pub(super) folder: TempDir,
    /// Removes the folder if this process cannot. Dropped last: by then the folder is gone.
    _guard_of_folder: Guard,
}

/// Everything that happens around a trial.
pub(super) struct Around<'a> {
    pub(super) interrupt: &'a AtomicBool,
    pub(super) listener: &'a mut dyn Listener,
    /// What could not be done as asked for.
    pub(super) lacking: &'a mut Vec<LeftOut>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: &'a RunPlan) -> Result<Self, RunError> {
        let folder = TempDir::new().map_err(RunError::folder)?;
        let guard_of_folder = Guard::of_folder(folder.path(), &plan.guards())?;
        let places = Places {
            folder: folder.path().into(),
            program: plan.program.clone(),
            trial: 0,
            ports: ports::all(&plan.experiment).map_err(|error| RunError::ports(&error))?,
            addresses: BTreeMap::new(),
        };
        Ok(Stage {
            plan,
            places,
            running: Vec::new(),
            data: Vec::new(),
            texts: Vec::new(),
            items: BTreeMap::new(),
            said: BTreeMap::new(),
            guards: plan.guards(),
            links: BTreeMap::new(),
            networks: BTreeMap::new(),
            prepared: None,
            prepared_once: false,
            time: None,
            test: None,
            profile: None,
            folder,
            _guard_of_folder: guard_of_folder,
        })
    }

    /// Makes one trial: makes the data, starts the right programs, prepares, drives, proves.
    pub(super) fn measure(&mut self, trial: &Trial<'_>, around: &mut Around<'_>) -> Result<Driven, RunError> {
        self.places.trial += 1;
        let experiment = &self.plan.experiment;
        let setup = TrialSetup { experiment, variant: trial.variant, work: trial.work };
        self.place_links(&setup)?;
        self.provide_files(&setup, around)?;
        let preparation = preparation::key(&setup, &self.places)?;
        let same = self.prepared.as_ref() == Some(&preparation);
        if !same && self.prepared.is_some() {
            // What an earlier preparation left in them is not to be measured.
            self.stop_from(0);
        }
        let started = self.provide_programs(&setup, around)?;
        if started || !same {
            self.prepared = None;
            self.prepare(&setup, around).inspect_err(|_| {
                // What it did by halves is not to be prepared on top of.
                self.stop_from(0);
            })?;
            self.prepared = Some(preparation);
        }
        let driven = self.drive(&setup, around);
        // A program that died explains the error better than what clients saw of it.
        if let Some(cause) = self.ended() {
            return Err(cause.into());
        }
        if let Err(RunError::Lost(_)) = &driven {
            // They have seen a load that is counted nowhere. Whoever measures again begins with fresh ones.
            self.stop_all();
        }
        let mut driven = driven?;
        let not_limited = self.running.iter().flat_map(|(_, running)| running.not_limited());
        driven.run.warnings.extend(not_limited.map(Warning::from));
        driven.run.prepared = self.said.values().cloned().collect();
        driven.run.proof = self.prove(&setup, &mut driven, around)?;
        Ok(driven)
    }

    /// Decides on the links of a trial, and with them the addresses that texts and commands name.
    fn place_links(&mut self, setup: &TrialSetup<'_>) -> Result<(), RunError> {
        let instances = setup.instances(&self.places)?;
        let linked = || instances.iter().filter_map(|one| Some((one, one.link_mbit?)));
        // A program that goes on running keeps its address.
        self.networks.retain(|key, _| linked().any(|(one, _)| one.key() == *key));
        let own: Vec<u32> = self.networks.values().copied().collect();
        // Two experiments at once begin at different numbers.
        let mut free = link::free_networks(process::id()).filter(|network| !own.contains(network));
        self.links.clear();
        for (one, mbit) in linked() {
            let network = self.networks.get(&one.key()).copied().or_else(|| free.next());
            let Some(network) = network else { return Err(RunError::no_network()) };
            self.networks.insert(one.key(), network);
            self.links.insert(one.key(), LinkPlan { mbit, network });
        }
        let address = |(key, plan): (&(String, u32), &LinkPlan)| (key.clone(), plan.server_address());
        self.places.addresses = self.links.iter().map(address).collect();
        Ok(())
    }

    /// Writes the texts and makes the data of a trial, unless they are there.
    fn provide_files(&mut self, setup: &TrialSetup<'_>, around: &mut Around<'_>) -> Result<(), RunError> {
        let (texts, data) = (setup.texts(&self.places)?, setup.data(&self.places)?);
        if texts == self.texts && data == self.data {
            return Ok(());
        }
        self.stop_from(0);
        if data != self.data {
            let files: u64 = data.iter().map(|set| set.files).sum();
            let bytes = data.iter().map(DataSet::bytes).sum();
            around.listener.on_experiment(&Event::MakingFiles { files, bytes });
            for old in self.data.drain(..) {
                // What is left of it goes with the folder.
                let _ = fs::remove_dir_all(&old.folder);
            }
            for set in &data {
                data::make_files(&set.folder, set.first..set.first + set.files, set.size, around.interrupt)
                    .map_err(RunError::data)?;
            }
            self.data = data;
        }
        for (path, text) in &texts {
            let parent = path.parent().unwrap_or(self.folder.path());
            fs::create_dir_all(parent).and_then(|()| fs::write(path, text)).map_err(RunError::data)?;
        }
        self.texts = texts;
        Ok(())
    }

    /// Keeps the running programs that fit the trial, and starts the others. Whether any was started.
    fn provide_programs(
        &mut self,
        setup: &TrialSetup<'_>,
        around: &mut Around<'_>,
    ) -> Result<bool, RunError> {
        let instances = setup.instances(&self.places)?;
        let kept = self.kept(setup, &instances)?;
        if kept == instances.len() && kept == self.running.len() {
            return Ok(false);
        }
        self.stop_from(kept);
        let names: Vec<&str> = instances.iter().skip(kept).map(|one| one.process.name.as_str()).collect();
        around.listener.on_experiment(&Event::Starting(counted(&names)));
        if instances.iter().skip(kept).any(Instance::limits_memory) {
            // What is in the page cache already counts against nobody's limit.
            self.drop_data()?;
        }
        for instance in instances.iter().skip(kept) {
            self.start(setup, instance, around)?;
        }
        if let Some(split) = &self.plan.split {
            // All threads of the generator inherit this; the programs were given theirs.
            cores::confine(&split.generator).map_err(|error| RunError::processors(&error))?;
        }
        Ok(true)
    }

    /// How many of the first running programs would be started just as they were.
    fn kept(&mut self, setup: &TrialSetup<'_>, instances: &[Instance<'_>]) -> Result<usize, RunError> {
        let mut kept = 0;
        for instance in instances {
            let key = (instance.process.name.clone(), instance.number);
            let launch = self.launch(setup, instance)?;
            let Some((running_key, running)) = self.running.get_mut(kept) else { break };
            if *running_key != key || running.launch != launch || running.ended().is_some() {
                break;
            }
            kept += 1;
        }
        Ok(kept)
    }

    fn launch(&self, setup: &TrialSetup<'_>, instance: &Instance<'_>) -> Result<Launch, RunError> {
        let Instance { process, number, limits, link_mbit } = instance;
        let (number, link_mbit) = (*number, *link_mbit);
        let values = setup.values_of(process, number, &self.places);
        let before = process.before.iter().map(|command| setup.words(command, &values));
        let variable = |variable: &Variable| Ok((variable.name.clone(), setup.variable(variable, &values)?));
        Ok(Launch {
            words: setup.start_words(instance, &values)?,
            environment: process.environment.iter().map(variable).collect::<Result<_, RunError>>()?,
            // This process may be confined to the generator's by now, and its children inherit that.
            processors: setup.processors(process, self.plan.split.as_ref(), &values)?,
            limits: limits.clone(),
            link_mbit,
            before: before.collect::<Result<_, _>>()?,
            sign: self.sign(setup, instance, &values)?,
            ready_within: process.ready_within,
            stop: process.stop,
            stop_within: process.stop_within,
        })
    }

    fn sign(
        &self,
        setup: &TrialSetup<'_>,
        instance: &Instance<'_>,
        values: &Values,
    ) -> Result<Sign, RunError> {
        let Instance { process, number, .. } = *instance;
        Ok(match &process.ready {
            Ready::Started => Sign::Started,
            Ready::Line(line) => Sign::Line(setup.of_process(line, "ready", process, values)?),
            Ready::Port(port) => {
                let number_of = self.places.ports.get(&(port.clone(), number)).copied();
                Sign::Port(self.places.address(&process.name, number), number_of.unwrap_or(0))
            }
            Ready::Http(url) => Sign::Http(setup.of_process(url, "ready", process, values)?),
        })
    }

    fn start(
        &mut self,
        setup: &TrialSetup<'_>,
        instance: &Instance<'_>,
        around: &mut Around<'_>,
    ) -> Result<(), RunError> {
        let Instance { process, number, .. } = *instance;
        let key = (process.name.clone(), number);
        let name = instance_name(process, number);
        let link = self.links.get(&key).copied();
        let guard = Guard::start(&name, &self.guards, link)?;
        let launch = self.launch(setup, instance)?;
        for words in &launch.before {
            run_checked(words, self.surroundings(around.interrupt))?;
        }
        let running = guard.launch(launch, self.surroundings(around.interrupt))?;
        for (limit, error) in &running.unlimited {
            let os_error = error.raw_os_error();
            let cause = match limit {
                Limit::Memory(_) => LeftOutCause::MemoryNotLimited { os_error },
                Limit::Disk { .. } => LeftOutCause::DiskNotLimited { os_error },
            };
            let unlimited = LeftOut::new(name.clone(), cause);
            around.listener.on_experiment(&Event::Unlimited(unlimited.clone()));
            around.lacking.push(unlimited);
        }
        self.running.push((key, running));
        Ok(())
    }

    /// Does what is to be done once the programs are ready.
    fn prepare(&mut self, setup: &TrialSetup<'_>, around: &mut Around<'_>) -> Result<(), RunError> {
        let values = setup.command_values(&self.places)?;
        let again = self.prepared_once;
        let all = self.plan.experiment.prepare.iter().enumerate();
        for (place, wanted) in all.filter(|(_, wanted)| !(wanted.once && again)) {
            around.listener.on_experiment(&Event::Preparing);
            let surroundings = self.surroundings(around.interrupt);
            let given = preparation::prepare(wanted, setup, &self.places, &values, surroundings)?;
            self.items.extend(given.items);
            self.note_said((false, place), given.shown);
        }
        self.prepared_once = true;
        Ok(())
    }

    /// Keeps what a command said last.
    pub(super) fn note_said(&mut self, which: (bool, usize), shown: Option<Prepared>) {
        self.said.remove(&which);
        self.said.extend(shown.map(|shown| (which, shown)));
    }

    pub(super) fn surroundings<'s>(&'s self, interrupt: &'s AtomicBool) -> Surroundings<'s> {
        Surroundings { folder: self.folder.path(), guards: &self.guards, interrupt }
    }

    /// A program that has ended although nobody asked it to, and how.
    fn ended(&mut self) -> Option<LeftOutCause> {
        self.running.iter_mut().find_map(|(_, running)| {
            let (ending, said) = running.ended()?;
            Some(LeftOutCause::EndedMeanwhile { process: running.name().to_owned(), ending, said })
        })
    }

    /// Stops all programs. Whatever was prepared on them is prepared again.
    pub(super) fn stop_all(&mut self) {
        self.stop_from(0);
        self.prepared = None;
    }

    /// Stops the programs from this one on, the last first.
    fn stop_from(&mut self, first: usize) {
        while self.running.len() > first {
            self.running.pop();
        }
    }

    /// Stops the programs of these names, and no others.
    pub(super) fn stop_only(&mut self, first: usize, names: &[String]) {
        let rest = self.running.split_off(first);
        let (stopped, kept): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|((name, _), _)| names.contains(name));
        stopped.into_iter().rev().for_each(drop);
        self.running.extend(kept);
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.stop_from(0);
    }
}

/// Names that follow each other, with how often they do: index, 8 times peer.
fn counted(names: &[&str]) -> Vec<(String, usize)> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in names {
        match counted.last_mut() {
            Some((last, count)) if last == name => *count += 1,
            _ => counted.push(((*name).to_owned(), 1)),
        }
    }
    counted
}
