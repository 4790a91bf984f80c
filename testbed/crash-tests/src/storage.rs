//! Where a server keeps its data, and what happens to that when it crashes.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::disk::{Disk, Tree};

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Its disk loses power, with what was not synced.
    PowerCut,
    /// The same with a disk that says that it has synced, and never does. So something is lost, which has to be found.
    PowerCutUnsynced,
    /// SIGKILL. The system keeps what was written.
    Kill,
}

/// When it ends, counted from now.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// While the server starts.
    Starting,
    /// Under load.
    Loaded,
    /// Under load, and by SIGKILL, whatever happens to its disk later.
    Killed,
}

/// Most changes of a disk until its power is cut.
const CHANGES_STARTING: u64 = 60;
const CHANGES_LOADED: u64 = 250;
/// The longest time until a server is killed.
const TIME_STARTING: Duration = Duration::from_millis(60);
const TIME_LOADED: Duration = Duration::from_millis(120);
/// The power is cut after this time even if there were fewer changes.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder for the data of a server.
#[derive(Debug)]
pub(crate) struct Storage {
    /// Goes before the folder that it may be mounted at.
    kind: Kind,
    at: tempfile::TempDir,
    /// When it ends at the latest.
    end: Option<Instant>,
    /// Whether its disk syncs nothing.
    is_unsynced: bool,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Off(Tree),
    On(Disk),
}

impl Storage {
    /// Storage with one empty folder, `data`, that is there for certain.
    pub(crate) fn new(crash: Crash) -> io::Result<Self> {
        let (at, end, is_unsynced) = (tempfile::tempdir()?, None, crash == Crash::PowerCutUnsynced);
        if crash == Crash::Kill {
            fs::create_dir(at.path().join("data"))?;
            return Ok(Self { at, kind: Kind::Plain, end, is_unsynced });
        }
        let disk = Disk::mount(at.path(), Tree::default())?;
        fs::create_dir(disk.path().join("data"))?;
        fs::File::open(disk.path())?.sync_all()?;
        let tree = disk.unmount()?;
        Ok(Self { at, kind: Kind::Off(tree), end, is_unsynced })
    }

    /// The folder for data.
    pub(crate) fn data(&self) -> PathBuf {
        self.at.path().join("data")
    }

    /// Turns the power on.
    pub(crate) fn turn_on(&mut self) -> io::Result<()> {
        self.end = None;
        if let Kind::Off(tree) = &mut self.kind {
            let tree = std::mem::take(tree);
            let disk = Disk::mount(self.at.path(), tree)?;
            if self.is_unsynced {
                disk.sync_nothing();
            }
            self.kind = Kind::On(disk);
        }
        Ok(())
    }

    /// Chooses the moment of the crash.
    pub(crate) fn arm(&mut self, moment: Moment, random: &mut fastrand::Rng) {
        let (changes, time) = match moment {
            Moment::Starting => (CHANGES_STARTING, TIME_STARTING),
            Moment::Loaded | Moment::Killed => (CHANGES_LOADED, TIME_LOADED),
        };
        let after = match &self.kind {
            Kind::On(disk) if !matches!(moment, Moment::Killed) => {
                disk.cut_after(random.u64(1..=changes));
                PATIENCE
            }
            _ => time.mul_f64(random.f64()),
        };
        self.end = Some(Instant::now() + after);
    }

    /// Whether the crash is a matter of time, and not of changes.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Plain)
    }

    /// Whether the moment has come.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end) || self.is_off()
    }

    /// Whether the power is gone.
    pub(crate) fn is_off(&self) -> bool {
        matches!(&self.kind, Kind::On(disk) if disk.is_off())
    }

    /// Turns the power off once the server is gone, with what was not synced.
    pub(crate) fn turn_off(&mut self, random: &mut fastrand::Rng) -> io::Result<()> {
        match std::mem::replace(&mut self.kind, Kind::Plain) {
            Kind::On(disk) => self.kind = Kind::Off(disk.unmount()?.cut(random)),
            other => self.kind = other,
        }
        Ok(())
    }

    /// Copies what is there, while the power is off.
    pub(crate) fn copy_to(&self, path: &Path) -> io::Result<()> {
        match &self.kind {
            Kind::Off(tree) => tree.copy_to(path),
            _ => copy(self.at.path(), path),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
