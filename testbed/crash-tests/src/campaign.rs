//! A campaign: server, load, crash, a look at what is left; many times.

use std::{
    ffi::OsString,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    ledger::Ledger,
    server::Server,
    storage::{Crash, Moment, Storage},
    systems::{Client, Kind, System},
};

/// Crashes of one server and its data. After that a new one starts from nothing.
const LIFE: u64 = 25;
/// Clients at once.
const CLIENTS: usize = 4;
/// How often to look whether the moment has come.
const LOOK: Duration = Duration::from_millis(1);
/// How long a slow machine may take for the first change under load.
const PATIENCE: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The program, which is `nstar-lab`.
    pub program: PathBuf,
    /// The system that is tried.
    pub system: Kind,
    /// A folder with a configuration of each system, of its name. What the campaign itself asks for goes before it.
    pub config: Option<PathBuf>,
    /// How it ends.
    pub crash: Crash,
    /// How many times.
    pub crashes: u64,
    /// Determines all choices. How far a server has come at a cut also depends on the machine.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many crashes there were.
    pub crashes: u64,
    /// How many of them while the server started.
    pub starting: u64,
    /// How many of them after a kill -9 and another start on the same disk.
    pub killed_before: u64,
    /// How many changes were acknowledged.
    pub acknowledged: u64,
    /// What was lost or is wrong.
    pub faults: Vec<String>,
}

impl Campaign {
    /// Runs it, and calls `seen` after each life with what came of it so far. Ends with the life in which something is lost.
    ///
    /// # Errors
    /// When the disk or the program cannot be used.
    pub fn run(&self, mut seen: impl FnMut(&Outcome)) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut seed = self.seed;
        while outcome.crashes < self.crashes && outcome.faults.is_empty() {
            let crashes = LIFE.min(self.crashes - outcome.crashes);
            Life::new(self, seed)?.run(crashes, &mut outcome)?;
            seed += 1;
            seen(&outcome);
        }
        Ok(outcome)
    }
}

/// The crashes of one server and its data.
struct Life<'c> {
    campaign: &'c Campaign,
    seed: u64,
    system: Box<dyn System>,
    ledger: Ledger,
    random: fastrand::Rng,
    storage: Storage,
    /// The log of the server, and copies of what crashes left.
    aside: tempfile::TempDir,
}

impl<'c> Life<'c> {
    fn new(campaign: &'c Campaign, seed: u64) -> io::Result<Self> {
        let (system, aside) = (campaign.system.make(), tempfile::tempdir()?);
        system.prepare(&campaign.program, aside.path())?;
        Ok(Self {
            campaign,
            seed,
            system,
            ledger: Ledger::default(),
            random: fastrand::Rng::with_seed(seed),
            storage: Storage::new(campaign.crash)?,
            aside,
        })
    }

    fn run(mut self, crashes: u64, outcome: &mut Outcome) -> io::Result<()> {
        let mut faults = Vec::new();
        for round in 0..crashes {
            let moment = match self.random.u8(..8) {
                0 | 1 => Moment::Starting,
                2 | 3 if !self.storage.is_plain() => Moment::Killed,
                _ => Moment::Loaded,
            };
            self.crash(moment)?;
            self.look_at_files(round)?;
            outcome.crashes += 1;
            outcome.starting += u64::from(matches!(moment, Moment::Starting));
            outcome.killed_before += u64::from(matches!(moment, Moment::Killed));
            faults = self.ledger.take_faults();
            if !faults.is_empty() {
                break;
            }
        }
        if faults.is_empty() {
            self.turn_on()?;
            let mut server = self.start()?;
            self.look_at_server(&mut server);
            faults = self.ledger.take_faults();
        }
        outcome.acknowledged += self.ledger.acknowledged();
        self.report(faults, outcome);
        Ok(())
    }

    /// Starts the server, looks at what it serves, loads it, and crashes it.
    fn crash(&mut self, moment: Moment) -> io::Result<()> {
        self.turn_on()?;
        if let Moment::Starting = moment {
            self.storage.arm(moment, &mut self.random);
        }
        let mut server = self.start()?;
        match moment {
            Moment::Starting if self.storage.is_plain() => wait(&self.storage),
            Moment::Starting => self.load_if_listening(&mut server),
            Moment::Killed => {
                self.look_and_load(&mut server, Moment::Killed);
                // What the first server did not sync, the second one may tell of.
                server = self.start()?;
                self.storage.arm(Moment::Loaded, &mut self.random);
                self.load_if_listening(&mut server);
            }
            Moment::Loaded => self.look_and_load(&mut server, Moment::Loaded),
        }
        server.kill();
        self.storage.turn_off(&mut self.random)
    }

    /// Turns the power on. A machine whose power was cut is started again, and servers can tell.
    fn turn_on(&mut self) -> io::Result<()> {
        let boot = format!("{:032x}\n", self.random.u128(..));
        std::fs::write(self.aside.path().join("boot"), boot)?;
        self.storage.turn_on()
    }

    fn start(&self) -> io::Result<Server> {
        let mut words: Vec<OsString> = self.system.words(&self.storage.data());
        if let Some(folder) = &self.campaign.config {
            let file = folder.join(format!("{}.toml", self.campaign.system.name()));
            words.extend([OsString::from("--config"), file.into()]);
        }
        let [log, boot] = ["log", "boot"].map(|name| self.aside.path().join(name));
        let boot = (self.campaign.crash != Crash::Kill).then_some(boot.as_path());
        Server::start(&self.campaign.program, &words, &log, boot)
    }

    fn look_and_load(&mut self, server: &mut Server, moment: Moment) {
        if let Some(to) = self.look_at_server(server) {
            self.storage.arm(moment, &mut self.random);
            self.load(server, to);
        }
    }

    /// Loads a server whose power may already be gone.
    fn load_if_listening(&mut self, server: &mut Server) {
        match server.listening() {
            Some(to) => self.load(server, to),
            None if self.storage.is_off() => {}
            None => self.ledger.fault("the server does not start with what is left".into()),
        }
    }

    /// Looks at what a server serves that starts on what a crash left. Returns its address.
    fn look_at_server(&mut self, server: &mut Server) -> Option<SocketAddr> {
        let Some(to) = server.listening() else {
            self.ledger.fault("the server does not start with what is left".into());
            return None;
        };
        if let Err(error) = self.system.look_at_server(to, &self.ledger, &mut self.random) {
            self.ledger.fault(format!("the server does not answer: {error}"));
        }
        Some(to)
    }

    /// Loads the server until it is killed at the moment of the crash.
    fn load(&mut self, server: &mut Server, to: SocketAddr) {
        let randoms: Vec<_> = (0..CLIENTS).map(|_| self.random.fork()).collect();
        let Self { ledger, storage, system, .. } = &*self;
        let before = ledger.acknowledged();
        thread::scope(|scope| {
            for (number, random) in randoms.into_iter().enumerate() {
                let mut client = Client { number, to, random, ledger };
                // Nothing is answered any more once the server is gone.
                scope.spawn(move || while system.act(&mut client).is_ok() {});
            }
            wait(storage);
            wait_for_a_change(ledger, before, storage);
            server.kill();
        });
    }

    /// Looks at the files that a crash left, without the server.
    fn look_at_files(&mut self, round: u64) -> io::Result<()> {
        let copy = self.copy_of(round);
        self.storage.copy_to(&copy)?;
        if let Err(error) = self.system.look_at_files(&copy.join("data"), &self.ledger) {
            self.ledger.fault(error);
        }
        std::fs::remove_dir_all(self.copy_of(round))
    }

    fn copy_of(&self, round: u64) -> PathBuf {
        self.aside.path().join(format!("left-{round}"))
    }

    /// Adds the faults to the outcome, with how to see them again. Keeps the files if there are any.
    fn report(mut self, faults: Vec<String>, outcome: &mut Outcome) {
        if faults.is_empty() {
            return;
        }
        let again = format!("seed {} of {}", self.seed, self.campaign.system.name());
        outcome.faults.extend(faults.into_iter().map(|fault| format!("{again}: {fault}")));
        if self.campaign.crash == Crash::PowerCutUnsynced {
            // What such a disk leaves says nothing about the server.
            return;
        }
        if let Some(kept) = self.keep() {
            outcome.faults.push(format!("what is left, and the server's log: {}", kept.display()));
        }
    }

    fn keep(&mut self) -> Option<PathBuf> {
        self.storage.turn_off(&mut self.random).ok()?;
        let aside = std::mem::replace(&mut self.aside, tempfile::tempdir().ok()?);
        let path: &Path = aside.path();
        self.storage.copy_to(&path.join("left")).ok()?;
        Some(aside.keep())
    }
}

/// Waits for the moment of the crash.
fn wait(storage: &Storage) {
    while !storage.is_over() {
        thread::sleep(LOOK);
    }
}

/// Waits until something was acknowledged, as long as there is power: a crash before that tells nothing. A hash takes longer than
/// the time until the crash on a slow machine.
fn wait_for_a_change(ledger: &Ledger, before: u64, storage: &Storage) {
    let end = Instant::now() + PATIENCE;
    while ledger.acknowledged() == before && !storage.is_off() && Instant::now() < end {
        thread::sleep(LOOK);
    }
}
