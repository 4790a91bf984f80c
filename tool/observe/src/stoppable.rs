//! Which processes may be stopped for a moment.

use std::collections::BTreeSet;
use std::env;

use analysis::run::LeftAloneReason;

use crate::kernel_files::{KernelPaths, Pid, read_or_empty};
use crate::topology::process_tree::INIT;

/// Finds processes that may be stopped for a moment without harm to anybody but who asked for it.
#[derive(Debug)]
pub struct Stoppable<'a> {
    paths: &'a KernelPaths,
    /// Whose processes are no other user's.
    users: BTreeSet<u32>,
    own: Pid,
    /// This process's group, which nobody suspends from outside without suspending this process.
    group: i64,
    /// This process and those that it runs under.
    ours: BTreeSet<Pid>,
}

impl<'a> Stoppable<'a> {
    /// As seen by this process, with files from `paths`.
    pub fn by_this_process(paths: &'a KernelPaths) -> Self {
        Self::by(paths, std::process::id(), own_users())
    }

    fn by(paths: &'a KernelPaths, own: Pid, users: BTreeSet<u32>) -> Self {
        let ours = [INIT, own].into_iter().chain(above(paths, own)).collect();
        let group = Job::of(paths, own).map_or(0, |job| job.group);
        Self { paths, users, own, group, ours }
    }

    /// Whether this process started it, or a process that this one started did.
    ///
    /// # Errors
    /// That it did not.
    pub fn check_started(&self, pid: Pid) -> Result<(), LeftAloneReason> {
        let is_started = pid != self.own && above(self.paths, pid).any(|above| above == self.own);
        if is_started { Ok(()) } else { Err(LeftAloneReason::NotStarted) }
    }

    /// Whether the process may be stopped for a moment. What this process started is no other user's, whoever it runs as now.
    ///
    /// # Errors
    /// The reason not to.
    pub fn check(&self, pid: Pid) -> Result<(), LeftAloneReason> {
        if self.ours.contains(&pid) {
            return Err(LeftAloneReason::Ours);
        }
        let status = read_or_empty(&self.paths.process(pid).join("status"));
        let job = Job::of(self.paths, pid).ok_or(LeftAloneReason::Ended)?;
        let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let numbers = |key: &str| line(key).unwrap_or_default().split_whitespace().map(str::parse::<u32>);
        let is_own = |user: Result<u32, _>| user.is_ok_and(|user| self.users.contains(&user));
        let is_others = line("Uid:").is_none() || !numbers("Uid:").all(is_own);
        if is_others && self.check_started(pid).is_err() {
            return Err(LeftAloneReason::OtherUser);
        }
        if numbers("TracerPid:").any(|tracer| tracer != Ok(0)) {
            return Err(LeftAloneReason::Debugged);
        }
        match line("State:").and_then(|state| state.trim().chars().next()) {
            Some('T' | 't') => Err(LeftAloneReason::Stopped),
            None | Some('Z' | 'X') => Err(LeftAloneReason::Ended),
            Some(_) if job.is_in_foreground() && job.group != self.group => Err(LeftAloneReason::Foreground),
            Some(_) => Ok(()),
        }
    }
}

/// This user, and who became root by sudo.
fn own_users() -> BTreeSet<u32> {
    let user = rustix::process::geteuid();
    let before = env::var("SUDO_UID").ok().filter(|_| user.is_root());
    users(user.as_raw(), before.as_deref())
}

fn users(user: u32, before: Option<&str>) -> BTreeSet<u32> {
    before.and_then(|text| text.parse().ok()).into_iter().chain([user]).collect()
}

/// The processes that one runs under, the nearest first. Ends with the first process of all, and where the files go round in a
/// circle.
pub(crate) fn above(paths: &KernelPaths, pid: Pid) -> impl Iterator<Item = Pid> {
    let parent = move |pid: &Pid| (*pid > INIT).then(|| Job::of(paths, *pid))?.map(|job| job.parent);
    let mut seen = BTreeSet::from([pid]);
    std::iter::successors(parent(&pid), parent).take_while(move |above| *above >= INIT && seen.insert(*above))
}

/// What the shell and the terminal know of a process: fields of `/proc/PID/stat` (proc_pid_stat(5)).
struct Job {
    parent: Pid,
    group: i64,
    /// The group in the foreground of its terminal; -1 without one.
    foreground: i64,
}

impl Job {
    fn of(paths: &KernelPaths, pid: Pid) -> Option<Self> {
        let text = read_or_empty(&paths.process(pid).join("stat"));
        let (_, after) = text.rsplit_once(')')?;
        let field = |index: usize| after.split_whitespace().nth(index)?.parse::<i64>().ok();
        Some(Job { parent: Pid::try_from(field(1)?).ok()?, group: field(2)?, foreground: field(5)? })
    }

    /// A shell that watches it would take it for suspended, and the terminal back.
    fn is_in_foreground(&self) -> bool {
        self.foreground > 0 && self.foreground == self.group
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Lays out a process: its parent, group and foreground group, and its user, tracer and state.
    fn lay_out(paths: &KernelPaths, pid: Pid, job: (Pid, i64, i64), of: (u32, u32, char)) {
        let folder = paths.process(pid);
        fs::create_dir_all(&folder).unwrap();
        let (parent, group, foreground) = job;
        let (user, tracer, state) = of;
        let stat = format!("{pid} (a) b) {state} {parent} {group} 1 34816 {foreground} 0 0");
        fs::write(folder.join("stat"), stat).unwrap();
        let status = format!(
            "Name:\tx\nState:\t{state} (what)\nTracerPid:\t{tracer}\nUid:\t{user}\t{user}\t{user}\t{user}\n"
        );
        fs::write(folder.join("status"), status).unwrap();
    }

    #[test]
    fn only_processes_that_nobody_else_has_to_do_with_are_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        lay_out(&paths, 90, (1, 90, 100), (7, 0, 'S'));
        lay_out(&paths, 100, (90, 100, 100), (7, 0, 'S'));
        lay_out(&paths, 200, (1, 200, -1), (7, 0, 'S'));
        lay_out(&paths, 201, (1, 201, -1), (8, 0, 'S'));
        lay_out(&paths, 202, (1, 202, -1), (7, 5, 'S'));
        lay_out(&paths, 203, (1, 203, -1), (7, 0, 'T'));
        lay_out(&paths, 204, (90, 204, 204), (7, 0, 'R'));
        lay_out(&paths, 205, (100, 100, 100), (7, 0, 'R'));
        let stoppable = Stoppable::by(&paths, 100, users(7, None));
        let expected = [
            (200, Ok(())),
            (205, Ok(())),
            (100, Err(LeftAloneReason::Ours)),
            (90, Err(LeftAloneReason::Ours)),
            (1, Err(LeftAloneReason::Ours)),
            (201, Err(LeftAloneReason::OtherUser)),
            (202, Err(LeftAloneReason::Debugged)),
            (203, Err(LeftAloneReason::Stopped)),
            (204, Err(LeftAloneReason::Foreground)),
            (999, Err(LeftAloneReason::Ended)),
        ];
        for (pid, expected) in expected {
            assert_eq!(stoppable.check(pid), expected, "{pid}");
        }
    }

    #[test]
    fn what_descends_from_this_process_was_started_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        for (pid, parent) in [(90, 1), (100, 90), (101, 100), (102, 101), (200, 1), (300, 301), (301, 300)] {
            lay_out(&paths, pid, (parent, i64::from(pid), -1), (7, 0, 'S'));
        }
        let stoppable = Stoppable::by(&paths, 100, users(7, None));
        let started = [90, 100, 101, 102, 200, 300, 999].map(|pid| stoppable.check_started(pid).is_ok());
        assert_eq!(started, [false, false, true, true, false, false, false]);
    }

    #[test]
    fn only_who_became_root_by_sudo_and_what_was_started_here_are_no_other_users() {
        let folder = tempfile::tempdir().unwrap();
        let paths = KernelPaths { proc: folder.path().into(), ..KernelPaths::default() };
        lay_out(&paths, 100, (90, 100, -1), (0, 0, 'S'));
        for (pid, parent, user) in [(200, 1, 0), (201, 1, 1000), (202, 1, 33), (203, 100, 33)] {
            lay_out(&paths, pid, (parent, i64::from(pid), -1), (user, 0, 'S'));
        }
        let may = |before| {
            let stoppable = Stoppable::by(&paths, 100, users(0, before));
            [200, 201, 202, 203].map(|pid| stoppable.check(pid))
        };
        let other = Err(LeftAloneReason::OtherUser);
        assert_eq!(may(Some("1000")), [Ok(()), Ok(()), other, Ok(())]);
        assert_eq!(may(None), [Ok(()), other, other, Ok(())]);
        assert_eq!(may(Some("nobody")), may(None));
    }
}
