//! The processes of one experiment, started together and stopped together.

use std::{ffi::OsString, path::Path};

use crate::{
    cores::Split,
    experiment::Tier,
    link::Link,
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
}

/// Where and from what they are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// The nstar program, which serves the systems.
    pub(crate) program: &'a Path,
    /// Folder of data and logs.
    pub(crate) folder: &'a Path,
    /// Who gets which processors; `None` shares them.
    pub(crate) split: Option<&'a Split>,
}

/// The running servers. What is dropped first stops first: the front before what it asks, the link last.
#[derive(Debug)]
pub(crate) struct Tiers {
    front: Option<System>,
    accounts: Option<System>,
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
            Tier::OpenFiles | Tier::Sink => None,
        };
        let mut tiers = Tiers { front: None, accounts, _link: None };
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
            (Tier::Files | Tier::Accounts, _) => {}
        }
        Ok(tiers)
    }

    /// The server to drive.
    pub(crate) fn driven(&self) -> Option<&System> {
        self.front.as_ref().or(self.accounts.as_ref())
    }

    /// The accounts server, if there is one.
    pub(crate) fn accounts(&self) -> Option<&System> {
        self.accounts.as_ref()
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

impl Setting {
    fn driven<'a>(
        &self,
        name: &'a str,
        flags: impl IntoIterator<Item = OsString>,
        ground: Ground<'a>,
    ) -> Start<'a> {
        let further = self.flags.iter().map(OsString::from);
        start(name, &self.engine, flags.into_iter().chain(further), ground)
    }

    fn behind<'a>(
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
