//! The servers of one experiment, started together and stopped together.

mod databases;
pub(crate) mod launch;
pub mod link;
mod peers;
pub(crate) mod process;
mod proof;

use std::ffi::OsString;

use analysis::run::Proof;
use booking::BookingError;
use load::{Plan, RequestTotal, Scenario};
use sweep::database::DatabaseUrl;

use self::{
    databases::Fresh,
    launch::{LaunchContext, Setting},
    link::Link,
    peers::Peers,
    process::{Start, System, SystemError},
    proof::prove,
};
use crate::definition::{DatabaseKind, Tier};

/// The running servers. They stop in the order of the fields: the front before the servers it asks, the link last.
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
    /// Starts what the driven server needs, then the server itself.
    pub(crate) fn start(
        drive: Tier,
        setting: &Setting,
        context: LaunchContext<'_>,
    ) -> Result<Self, SystemError> {
        let database = context.folder.join("accounts.db").into_os_string();
        let accounts = match drive {
            Tier::Accounts => {
                Some(System::start(&setting.driven("accounts", ["--database".into(), database], context))?)
            }
            Tier::Files => {
                Some(System::start(&setting.behind("accounts", ["--database".into(), database], context))?)
            }
            Tier::OpenFiles | Tier::Sink | Tier::Booking | Tier::Peers => None,
        };
        let mut tiers = Tiers { front: None, accounts, promises: None, peers: None, _link: None };
        let root = ["--root".into(), context.folder.join("files").into_os_string()];
        let known_by = |who: String| root.clone().into_iter().chain(["--accounts".into(), who.into()]);
        match (drive, &tiers.accounts) {
            (Tier::Files, Some(accounts)) => {
                let token = context.folder.join("accounts.db.service").into_os_string();
                let flags = known_by(accounts.url()).chain(["--accounts-token-file".into(), token]);
                tiers.front = Some(System::start(&setting.driven("files", flags, context))?);
            }
            (Tier::OpenFiles, _) => {
                tiers.start_front(setting.driven("files", known_by("none".into()), context), setting)?
            }
            (Tier::Sink, _) => tiers.start_front(setting.driven("sink", [], context), setting)?,
            (Tier::Booking, _) => tiers.start_booking(setting, context)?,
            (Tier::Peers, _) => {
                let start = |swarm| Peers::start(swarm, setting, context);
                tiers.peers = setting.swarm.map(start).transpose()?;
            }
            (Tier::Files | Tier::Accounts, _) => {}
        }
        Ok(tiers)
    }

    /// A load on the driven server, or on all peers.
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

    /// The database under the driven server, if a database server holds it.
    pub(crate) fn database_server(&self) -> Option<DatabaseUrl> {
        self.promises.as_ref()?.database.url().parse().ok()
    }

    /// Starts room booking on an empty database, with more rooms than a load of minutes can fill.
    fn start_booking(&mut self, setting: &Setting, context: LaunchContext<'_>) -> Result<(), SystemError> {
        let processors = context.split.map(|split| split.systems.as_slice());
        let kind = setting.database.unwrap_or(DatabaseKind::Sqlite);
        let fresh = Fresh::start(kind, context.folder, context.number, processors)?;
        let flags: [OsString; 7] = [
            "--database".into(),
            fresh.database.url().into(),
            "--key".into(),
            context.folder.join("booking.key").into(),
            "--rooms".into(),
            ROOMS.into(),
            "--allow-test-ids".into(),
        ];
        self.front = Some(System::start(&setting.driven("booking", flags, context))?);
        self.promises = Some(fresh);
        Ok(())
    }

    /// Stops the driven server, which finishes what it has begun, and checks that the database holds what it promised.
    /// `None` if it promises nothing.
    pub(crate) fn prove(mut self, totals: &[RequestTotal]) -> Option<Result<Proof, BookingError>> {
        self.front = None;
        self.promises.as_ref().map(|fresh| prove(&fresh.database, totals))
    }

    /// Whether the next trial needs new data.
    pub(crate) fn is_used_up(&self) -> bool {
        self.promises.is_some()
    }

    /// Starts the front, behind a link if the setting asks for one.
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
