//! How and where servers are started.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use sweep::cores::Split;

use super::process::Start;
use crate::definition::{DatabaseKind, Files, IndexKind};

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
    /// The database under it, if that varies.
    pub(crate) database: Option<DatabaseKind>,
    /// The peers to drive, if any.
    pub(crate) swarm: Option<Swarm>,
}

/// Where servers are started, and from which program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    /// The program that serves the systems.
    pub(crate) program: &'a Path,
    /// Folder of data and logs.
    pub(crate) folder: &'a Path,
    /// Who gets which processors; `None` shares them.
    pub(crate) split: Option<&'a Split>,
    /// How often servers were started in this folder before.
    pub(crate) number: u32,
    /// Set once the user asks to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// The peers to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Swarm {
    /// How they find what others have.
    pub(crate) index: IndexKind,
    /// How many.
    pub(crate) peers: u32,
    /// What each of them shares.
    pub(crate) files: Files,
}

impl Setting {
    /// The server that is measured.
    pub(crate) fn driven<'a>(
        &self,
        name: &'a str,
        flags: impl IntoIterator<Item = OsString>,
        context: LaunchContext<'a>,
    ) -> Start<'a> {
        let further = self.flags.iter().map(OsString::from);
        start(name, &self.engine, flags.into_iter().chain(further), context)
    }

    /// A tier behind it.
    pub(crate) fn behind<'a>(
        &self,
        name: &'a str,
        flags: impl IntoIterator<Item = OsString>,
        context: LaunchContext<'a>,
    ) -> Start<'a> {
        start(name, &self.engine_behind, flags.into_iter(), context)
    }
}

fn start<'a>(
    name: &'a str,
    engine: &str,
    flags: impl Iterator<Item = OsString>,
    context: LaunchContext<'a>,
) -> Start<'a> {
    Start {
        program: context.program,
        name,
        flags: flags.chain(["--engine".into(), engine.into()]).collect(),
        processors: context.split.map(|split| split.systems.as_slice()),
        folder: context.folder,
        namespace: false,
    }
}
