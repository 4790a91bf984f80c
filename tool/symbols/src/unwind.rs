//! Finds the callers of a sampled thread by the unwind tables (`.eh_frame`) of programs and libraries.
//!
//! `framehop` follows a stack; here it is told what a process has mapped, and given the tables. Everything that comes from the
//! process is bounded: what is read of its mappings and files, how long that takes, how many processes are known at a time, how many steps the
//! rules for a call may take.

mod bounds;
mod budget;
mod elf;
mod space;
mod tables;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use analysis::profile::{Snapshot, StackEnd, Unwinder, Unwound};

use self::{
    budget::Budget,
    space::{Cache, Space, Walk},
    tables::TablesOfFiles,
};
use crate::maps::Maps;

/// Most processes that are known at a time, and most sets of mappings among them: workers that are copies share one.
const PROCESSES_MAX: usize = 4_096;
const SPACES_MAX: usize = 64;

/// What a process has mapped is read no more often than this, though code is met that was not there before.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// What finds callers by the tables of the processes' files.
pub(crate) fn unwinder() -> Box<dyn Unwinder> {
    Box::new(TableUnwinder::default())
}

#[derive(Default)]
struct TableUnwinder {
    processes: BTreeMap<u32, Process>,
    spaces: Vec<Space>,
    tables: TablesOfFiles,
    cache: Cache,
    budget: Budget,
}

/// A process, and which of the spaces it has; `None` where that cannot be read.
#[derive(Debug, Clone, Copy)]
struct Process {
    space: Option<usize>,
    read: Instant,
}

impl Unwinder for TableUnwinder {
    fn unwind(&mut self, snapshot: &Snapshot) -> Unwound {
        let Some(walk) = self.walk(snapshot) else {
            return Unwound { calls: snapshot.linked.clone(), end: StackEnd::Untold };
        };
        let Walk { calls, end, .. } = walk;
        Unwound { calls, end }
    }
}

impl TableUnwinder {
    /// Follows a stack as far as it goes; `None` where nothing is known of the process.
    fn walk(&mut self, snapshot: &Snapshot) -> Option<Walk> {
        let space = self.known(snapshot.pid).or_else(|| self.read(snapshot))?;
        let walk = self.spaces.get(space)?.walk(snapshot, &mut self.cache);
        if !walk.met_unknown_code || !self.may_read_again(snapshot.pid) {
            return Some(walk);
        }
        let space = self.read(snapshot)?;
        Some(self.spaces.get(space)?.walk(snapshot, &mut self.cache))
    }

    fn known(&self, pid: u32) -> Option<usize> {
        self.processes.get(&pid)?.space
    }

    fn may_read_again(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_none_or(|process| process.read.elapsed() >= READ_AGAIN)
    }

    /// Reads what a process has mapped. One that has ended had what it had before, or the one has that it was copied from.
    fn read(&mut self, snapshot: &Snapshot) -> Option<usize> {
        let Snapshot { pid, copied_from, .. } = *snapshot;
        if !self.may_read_again(pid) {
            return self.known(pid);
        }
        let mut space = self.space_of(pid).or_else(|| self.known(pid));
        if let (None, Some(parent)) = (space, copied_from) {
            space = self.known(parent).or_else(|| self.space_of(parent));
        }
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        self.processes.insert(pid, Process { space, read: Instant::now() });
        space
    }

    fn space_of(&mut self, pid: u32) -> Option<usize> {
        let maps = self.budget.spend(|| Maps::of(pid)).filter(|maps| !maps.is_empty())?;
        if let Some(same) = self.spaces.iter().position(|space| *space.maps() == maps) {
            return Some(same);
        }
        if self.spaces.len() >= SPACES_MAX {
            self.spaces.clear();
            self.processes.clear();
        }
        let tables = &mut self.tables;
        let space = self.budget.spend(|| Space::new(maps, |mapping| tables.of(pid, mapping)))?;
        self.spaces.push(space);
        Some(self.spaces.len() - 1)
    }
}
