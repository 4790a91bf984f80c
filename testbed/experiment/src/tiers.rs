//! The processes of one experiment, started together and stopped together.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use analysis::proof::Proof;
use booking::BookingError;
use load::{Plan, RequestTotal, Scenario};
use sweep::{cores::Split, database::DatabaseUrl};

use crate::{
    databases::{DatabaseKind, Fresh},
    experiment::Tier,
    link::Link,
    peers::{Peers, Swarm},
    proof::prove,
    systems::{Start, System, SystemError},
};

/// How the driven server is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Concurrency model of the driven server.
    pub(crate) engine: String,
    /// Concurrency model of the tiers behind it.
    pub(crate) engine_behind: String,
    /// Further flags of the driven server.
    pub(crate) flags: Vec<String>,
    /// Rate of the link to it, Mb/s; `None`: loopback.
    pub(crate) link_mbit: Option<u32>,
    /// The database under it, where it is varied.
    pub(crate) database: Option<DatabaseKind>,
    /// The peers that are driven, where it is peers.
    pub(crate) swarm: Option<Swarm>,
}

/// Where and from what they are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// The program that serves the systems.
    pub(crate) program: &'a Path,
    /// Folder of data and logs.
    pub(crate) folder: &'a Path,
    /// Who gets which processors; `None` shares them.
    pub(crate) split: Option<&'a Split>,
    /// How many were started on it before.
    pub(crate) number: u32,
    /// Set when the person wants no more.
    pub(crate) interrupt: &'a AtomicBool,
}

/// The running servers. What is dropped first stops first: the front before what it asks, the link last.
#[derive(Debug)]
pub(crate) struct Tiers {
    front: Option<System>,
    accounts: Option<System>,
    /// The database that holds what the front promises.
    promises: Option<Fresh>,
    peers: Option<Peers>,
    _link: Option<Link>,
}

impl Tiers {
    /// Starts what the driven server needs, then itself.
    pub(crate) fn start(drive: Tier, setting: &Setting, ground: Ground<'_>) -> Result<Self, SystemError> {
        let database = ground.folder.join("accounts.db").into_os_string();
        let accounts = match drive {
            Tier::Accounts => {
                Some(System::start(&setting.driven("accounts", ["--database".into(), database], ground))?)
            }
            Tier::Files => {
                Some(System::start(&setting.behind("accounts", ["--database".into(), database], ground))?)
            }
            Tier::OpenFiles | Tier::Sink | Tier::Booking | Tier::Peers => None,
        };
        let mut tiers = Tiers { front: None, accounts, promises: None, peers: None, _link: None };
        let root = ["--root".into(), ground.folder.join("files").into_os_string()];
        let known_by = |who: String| root.clone().into_iter().chain(["--accounts".into(), who.into()]);
        match (drive, &tiers.accounts) {
            (Tier::Files, Some(accounts)) => {
                let token = ground.folder.join("accounts.db.service").into_os_string();
                let flags = known_by(accounts.url()).chain(["--accounts-token-file".into(), token]);
                tiers.front = Some(System::start(&setting.driven("files", flags, ground))?);
            }
            (Tier::OpenFiles, _) => {
                tiers.start_front(setting.driven("files", known_by("none".into()), ground), setting)?
            }
            (Tier::Sink, _) => tiers.start_front(setting.driven("sink", [], ground), setting)?,
            (Tier::Booking, _) => tiers.start_booking(setting, ground)?,
            (Tier::Peers, _) => {
                let start = |swarm| Peers::start(swarm, setting, ground);
                tiers.peers = setting.swarm.map(start).transpose()?;
            }
            (Tier::Files | Tier::Accounts, _) => {}
        }
        Ok(tiers)
    }

    /// A load on what is to be driven.
    pub(crate) fn load(&self, scenario: &Scenario) -> Option<Plan> {
        if let Some(peers) = &self.peers {
            return Some(Plan::new(peers.aim(scenario)));
        }
        self.front.as_ref().or(self.accounts.as_ref()).map(|driven| driven.load(scenario.clone()))
    }

    /// The accounts server, if there is one.
    pub(crate) fn accounts(&self) -> Option<&System> {
        self.accounts.as_ref()
    }

    /// The database under the driven server, where it is a server's.
    pub(crate) fn database_server(&self) -> Option<DatabaseUrl> {
        self.promises.as_ref()?.database.url().parse().ok()
    }

    /// Room booking, on a database that holds nothing yet, with rooms that no load of minutes can fill.
    fn start_booking(&mut self, setting: &Setting, ground: Ground<'_>) -> Result<(), SystemError> {
        let processors = ground.split.map(|split| split.systems.as_slice());
        let kind = setting.database.unwrap_or(DatabaseKind::Sqlite);
        let fresh = Fresh::start(kind, ground.folder, ground.number, processors)?;
        let flags: [OsString; 7] = [
            "--database".into(),
            fresh.database.url().into(),
            "--key".into(),
            ground.folder.join("booking.key").into(),
            "--rooms".into(),
            ROOMS.into(),
            "--allow-test-ids".into(),
        ];
        self.front = Some(System::start(&setting.driven("booking", flags, ground))?);
        self.promises = Some(fresh);
        Ok(())
    }

    /// Ends the driven server, which finishes what it has begun, and proves that the database holds what was promised;
    /// `None` where it promises nothing.
    pub(crate) fn prove(mut self, totals: &[RequestTotal]) -> Option<Result<Proof, BookingError>> {
        self.front = None;
        self.promises.as_ref().map(|fresh| prove(&fresh.database, totals))
    }

    /// Whether what it holds must not be there at the next measurement.
    pub(crate) fn is_used_up(&self) -> bool {
        self.promises.is_some()
    }

    /// The front, behind a link where the setting asks for one.
    fn start_front(&mut self, start: Start<'_>, setting: &Setting) -> Result<(), SystemError> {
        let Some(mbit) = setting.link_mbit else {
            self.front = Some(System::start(&start)?);
            return Ok(());
        };
        let mut front = System::start(&start.in_a_namespace())?;
        let link = Link::to_process(front.pid(), mbit)?;
        front.reached_at(link.server_address());
        self.front = Some(front);
        self._link = Some(link);
        Ok(())
    }
}

/// Rooms of the booking server: over five years, 1.8 million bookings.
const ROOMS: &str = "1000";

impl Setting {
    pub(crate) fn driven<'a>(
        &self,
        name: &'a str,
        flags: impl IntoIterator<Item = OsString>,
        ground: Ground<'a>,
    ) -> Start<'a> {
        let further = self.flags.iter().map(OsString::from);
        start(name, &self.engine, flags.into_iter().chain(further), ground)
    }

    pub(crate) fn behind<'a>(
        &self,
        name: &'a str,
        flags: impl IntoIterator<Item = OsString>,
        ground: Ground<'a>,
    ) -> Start<'a> {
        start(name, &self.engine_behind, flags.into_iter(), ground)
    }
}

fn start<'a>(
    name: &'a str,
    engine: &str,
    flags: impl Iterator<Item = OsString>,
    ground: Ground<'a>,
) -> Start<'a> {
    Start {
        program: ground.program,
        name,
        flags: flags.chain(["--engine".into(), engine.into()]).collect(),
        processors: ground.split.map(|split| split.systems.as_slice()),
        folder: ground.folder,
        namespace: false,
    }
}
