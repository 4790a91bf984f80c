//! Runs an experiment: starts its systems, makes its data, sweeps once for each file size.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytesize::ByteSize;
use load::{Plan, Scenario, Stop, Url};
use model::{
    run::Run,
    search::{SearchOptions, UsersRange},
};
use tempfile::TempDir;

use crate::{
    conclusion::{Circumstances, numbers},
    cores::{self, Split},
    data,
    experiment::{Experiment, PageCache, Tier},
    progress::{Event, Listener},
    sweep::{SweepError, SweepPlan, sweep},
    systems::{Start, System, SystemError},
};

/// How an experiment is to be run here.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The nstar program, which serves the systems.
    pub program: PathBuf,
    /// What to run.
    pub experiment: Experiment,
    /// Numbers of users, in place of the experiment's own.
    pub users: Option<UsersRange>,
    /// Longest time for one number of users.
    pub step_max: Option<Duration>,
    /// Concurrency model of the systems, by name.
    pub engine: String,
    /// Who gets which processors; `None` shares them.
    pub split: Option<Split>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// An experiment that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its files could not be made.
    #[error("cannot make the test files: {0}; set TMPDIR to a folder with room")]
    Data(#[from] io::Error),
    /// A system did not start.
    #[error(transparent)]
    System(#[from] SystemError),
    /// Its accounts could not be made.
    #[error("cannot make the accounts: {made} of {wanted} were made")]
    Accounts {
        /// How many there are.
        made: u64,
        /// How many were wanted.
        wanted: u32,
    },
    /// The sweep failed.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] load::LoadError),
}

/// One sweep of an experiment.
#[derive(Debug)]
pub struct Part {
    /// The size of its files, bytes; `None` for an experiment without files.
    pub file_size: Option<u64>,
    /// What was found.
    pub run: Run,
}

/// Runs an experiment; its systems are stopped and its data removed when it returns, however it does.
pub fn run(
    plan: &RunPlan,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Vec<Part>, RunError> {
    let folder = TempDir::new()?;
    listener.on(&Event::Note(placement(plan.split.as_ref())));
    listener.on(&Event::Working("starting the systems".into()));
    std::fs::create_dir(folder.path().join("files"))?;
    let systems = TwoTiers::start(plan, folder.path())?;
    if let Some(split) = &plan.split {
        // After the systems have started, which would inherit it; all of the generator's threads will.
        cores::confine(&split.generator)?;
    }
    make_accounts(plan, &systems, listener)?;
    let mut parts = Vec::new();
    for file_size in sizes(&plan.experiment) {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        if let Some(size) = file_size {
            listener.on(&Event::Working(format!(
                "making {} files of {}",
                plan.experiment.files,
                ByteSize(size)
            )));
            data::make_files(&folder.path().join("files"), plan.experiment.files, size)?;
        }
        let sweep_plan = sweep_plan(plan, &systems, folder.path(), file_size);
        parts.push(Part { file_size, run: sweep(&sweep_plan, interrupt, listener)? });
    }
    Ok(parts)
}

fn sizes(experiment: &Experiment) -> Vec<Option<u64>> {
    match experiment.file_sizes.as_slice() {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    }
}

/// S1: the file server in front, the accounts server behind it. The front goes first when both are dropped.
struct TwoTiers {
    files: System,
    accounts: System,
}

impl TwoTiers {
    fn start(plan: &RunPlan, folder: &Path) -> Result<Self, SystemError> {
        let tier = |name, mut flags: Vec<std::ffi::OsString>| {
            flags.extend(["--engine".into(), plan.engine.clone().into()]);
            System::start(&Start {
                program: &plan.program,
                name,
                flags,
                processors: plan.split.as_ref().map(|split| split.systems.as_slice()),
                folder,
            })
        };
        let accounts = tier("accounts", vec!["--database".into(), folder.join("accounts.db").into()])?;
        let files = tier(
            "files",
            vec!["--root".into(), folder.join("files").into(), "--accounts".into(), accounts.url().into()],
        )?;
        Ok(TwoTiers { files, accounts })
    }

    fn driven(&self, tier: Tier) -> &System {
        match tier {
            Tier::Files => &self.files,
            Tier::Accounts => &self.accounts,
        }
    }
}

/// Makes the experiment's accounts through the accounts server, as many at a time as there are.
fn make_accounts(plan: &RunPlan, systems: &TwoTiers, listener: &mut dyn Listener) -> Result<(), RunError> {
    let wanted = plan.experiment.accounts;
    if wanted == 0 {
        return Ok(());
    }
    listener.on(&Event::Working(format!("making {wanted} accounts")));
    let mut load = Plan::new(at(accounts_scenario(), &systems.accounts));
    load.timeout = Duration::from_secs(120);
    let mut generator = load::Generator::start(&load)?;
    generator.set_users(wanted)?;
    let ticks = generator.run(Stop::PerUser(1), &AtomicBool::new(false))?;
    let made = ticks.iter().map(|tick| tick.completed).sum();
    if made == u64::from(wanted) { Ok(()) } else { Err(RunError::Accounts { made, wanted }) }
}

/// Accounts `user1`, `user2`, .. as the scenarios name them; for systems that live a minute on loopback.
fn accounts_scenario() -> Scenario {
    const TEXT: &str = include_str!("accounts.toml");
    Scenario::from_toml(Path::new("accounts.toml"), TEXT).unwrap_or_else(|error| unreachable!("{error}"))
}

fn at(scenario: Scenario, system: &System) -> Scenario {
    match system.url().parse::<Url>() {
        Ok(base) => scenario.with_base(base),
        Err(_) => scenario,
    }
}

fn sweep_plan(plan: &RunPlan, systems: &TwoTiers, folder: &Path, file_size: Option<u64>) -> SweepPlan {
    let experiment = &plan.experiment;
    let mut load = Plan::new(at(experiment.scenario.clone(), systems.driven(experiment.drive)));
    load.cpus = plan.split.as_ref().map(|split| split.generator.clone());
    load.threads = load.cpus.as_ref().map_or_else(|| cores::available().len(), Vec::len);
    load.seed = plan.seed;
    let [lo, hi] = experiment.users;
    let mut search = SearchOptions {
        users: plan.users.clone().unwrap_or(UsersRange::Range { lo, hi }),
        ..SearchOptions::default()
    };
    if let Some(step_max) = plan.step_max {
        search = search.with_longest_step(u64::try_from(step_max.as_micros()).unwrap_or(u64::MAX));
    }
    SweepPlan {
        load,
        search,
        cold_folder: (experiment.page_cache == PageCache::Cold).then(|| folder.join("files")),
        circumstances: Circumstances {
            target: title(experiment, file_size),
            system_cpus: plan.split.as_ref().map(|split| numbers(&split.systems)),
            host_limits: Vec::new(),
        },
    }
}

fn title(experiment: &Experiment, file_size: Option<u64>) -> String {
    match file_size {
        Some(size) if experiment.file_sizes.len() > 1 => format!("{}: {}", experiment.title, ByteSize(size)),
        _ => experiment.title.clone(),
    }
}

fn placement(split: Option<&Split>) -> String {
    match split {
        Some(split) => format!(
            "generator on processors {:?}, systems on {:?}; --share-cores lets both use all",
            split.generator, split.systems
        ),
        None => "generator and systems share all processors: each takes time from the other".into(),
    }
}
