//! Where trials are made: a folder with data, and the servers that are running.

use std::{sync::atomic::AtomicBool, time::Duration};

use analysis::{
    run::Proof,
    search::{SearchOptions, UsersRange},
};
use load::{Plan, Stop, limits};
use sweep::{
    conclusion::{Circumstances, numbers},
    cores,
    progress::{Event, Listener},
    single::{LoadPlan, load},
    sweep::{Driven, SweepPlan, sweep},
};
use tempfile::TempDir;

use super::{RunError, RunPlan, accounts, trials::Trial};
use crate::{
    data,
    definition::{Files, PageCache, Users, Workload},
    servers::{
        Tiers,
        launch::{LaunchContext, Setting},
    },
    size::Size,
};

/// A sweep uses its time well when that is enough for this many of its longest steps.
const STEPS: u32 = 5;

/// The folder, and the servers that are running.
pub(super) struct Stand<'a> {
    plan: &'a RunPlan,
    folder: TempDir,
    files: Option<Files>,
    running: Option<(Setting, Tiers)>,
    /// How often systems were started.
    started: u32,
    accounts_made: bool,
    /// How long one measurement may take; `None`: as long as it needs.
    pub(super) time: Option<Duration>,
}

impl<'a> Stand<'a> {
    pub(super) fn new(plan: &'a RunPlan) -> Result<Self, RunError> {
        let folder = TempDir::new()?;
        std::fs::create_dir(folder.path().join("files"))?;
        Ok(Stand { plan, folder, files: None, running: None, started: 0, accounts_made: false, time: None })
    }

    /// Makes one trial: starts the right servers, makes data, drives them.
    pub(super) fn measure(
        &mut self,
        trial: &Trial<'_>,
        interrupt: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<Driven, RunError> {
        self.provide_systems(trial, interrupt, listener)?;
        self.provide_files(trial.files(), listener)?;
        let load_plan = self.load_plan(trial)?;
        let circumstances = self.circumstances(trial);
        let users = match &self.plan.users {
            Some(range) => Users::Swept(range.clone()),
            None => trial.users(),
        };
        limits::ensure(users.most(), load_plan.threads)?;
        let mut driven = match users {
            Users::Fixed(users) => {
                let time = self.plan.step_max.or(self.time).unwrap_or(FIXED_LOAD);
                let stop = Stop::Time(time);
                load(&LoadPlan { load: load_plan, users, stop, circumstances }, interrupt, listener)?
            }
            Users::Swept(range) => {
                let cold = self.plan.experiment.page_cache == PageCache::Cold;
                let cold_folder = cold.then(|| self.folder.path().join("files"));
                let search = self.search(range);
                let database = self.running.as_ref().and_then(|(_, tiers)| tiers.database_server());
                let sweep_plan = SweepPlan { load: load_plan, search, cold_folder, database, circumstances };
                sweep(&sweep_plan, interrupt, listener)?
            }
        };
        driven.run.proof = self.prove(&driven, listener)?;
        Ok(driven)
    }

    /// Checks that the database holds what the users were told. `None` if the servers promise nothing.
    fn prove(&mut self, driven: &Driven, listener: &mut dyn Listener) -> Result<Option<Proof>, RunError> {
        let Some((_, tiers)) = self.running.take_if(|(_, tiers)| tiers.is_used_up()) else { return Ok(None) };
        let proof = tiers.prove(&driven.totals).transpose()?;
        if let Some(proof) = &proof {
            let word = if proof.holds { "proof" } else { "THE PROOF FAILED" };
            listener.on(&Event::Note(format!("{word}: {}", proof.text)));
        }
        Ok(proof)
    }

    /// Keeps the running servers if they fit the trial; otherwise stops them and starts others.
    fn provide_systems(
        &mut self,
        trial: &Trial<'_>,
        interrupt: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<(), RunError> {
        let setting = trial.setting(self.plan.experiment.axis.is_some());
        if self.running.as_ref().is_some_and(|(running, tiers)| *running == setting && !tiers.is_used_up()) {
            return Ok(());
        }
        self.running = None;
        listener.on(&Event::Working("starting the systems".into()));
        let split = self.plan.split.as_ref();
        self.started += 1;
        let (program, folder, number) = (self.plan.program.as_path(), self.folder.path(), self.started);
        let context = LaunchContext { program, folder, split, number, interrupt };
        let tiers = Tiers::start(self.plan.experiment.drive, &setting, context)?;
        if let Some(split) = split {
            // All threads of the generator inherit this; the servers were given theirs.
            cores::confine(&split.generator)?;
        }
        if let Some(server) = tiers.accounts().filter(|_| !self.accounts_made) {
            accounts::make(self.plan.experiment.accounts, server, listener)?;
            self.accounts_made = true;
        }
        self.running = Some((setting, tiers));
        Ok(())
    }

    fn provide_files(&mut self, files: Option<Files>, listener: &mut dyn Listener) -> Result<(), RunError> {
        if let Some(Files { count, size }) = files.filter(|files| self.files != Some(*files)) {
            listener.on(&Event::Working(format!("making {count} files of {}", Size(size))));
            data::make_files(&self.folder.path().join("files"), 0..count, size)?;
            self.files = files;
        }
        Ok(())
    }

    fn load_plan(&self, trial: &Trial<'_>) -> Result<Plan, RunError> {
        let on = |tiers: &Tiers| tiers.load(&trial.work.scenario);
        let Some(mut load) = self.running.as_ref().and_then(|(_, tiers)| on(tiers)) else {
            return Err(RunError::NothingToDrive);
        };
        load.cpus = self.plan.split.as_ref().map(|split| split.generator.clone());
        load.threads = load.cpus.as_ref().map_or_else(|| cores::available().len(), Vec::len);
        load.seed = self.plan.seed;
        load.connections = trial.work.connections;
        load.timeout = trial.work.timeout.unwrap_or(load.timeout);
        Ok(load)
    }

    fn search(&self, users: UsersRange) -> SearchOptions {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let search = SearchOptions { users, ..SearchOptions::default() };
        let search = match self.time {
            None => search,
            Some(time) => SearchOptions { total_us: Some(micros(time)), ..search }
                .with_longest_step(micros((time / STEPS).max(SHORTEST_STEP))),
        };
        match self.plan.step_max {
            None => search,
            Some(longest) => search.with_longest_step(micros(longest)),
        }
    }

    fn circumstances(&self, trial: &Trial<'_>) -> Circumstances {
        let mut target = self.plan.experiment.title.clone();
        let Workload { name, .. } = trial.work;
        let variant = trial.variant.name.as_str();
        for part in [name.as_str(), variant].into_iter().filter(|part| !part.is_empty()) {
            target = format!("{target}: {part}");
        }
        Circumstances {
            target,
            system_cpus: self.plan.split.as_ref().map(|split| numbers(&split.systems)),
            fewer_users: None,
        }
    }
}

/// How long a load of a fixed number of users takes, if nothing else says so.
const FIXED_LOAD: Duration = Duration::from_secs(10);

/// A step shorter than this yields no interval.
const SHORTEST_STEP: Duration = Duration::from_millis(500);
