//! Looks at which threads wait for futexes, and which sleep until a time: little work, done many times a second where that
//! is asked for.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use analysis::counters::{ProcessLook, Role};

use super::threads::{futex_address, sleeps_until_a_time};
use crate::kernel_files::numbered_entries;

/// How many threads a look covers, of all processes together. Of processes with more, it covers some of their threads,
/// and others at the next look.
const THREADS_MAX: usize = 128;

/// Where there are more threads, they are those of the last sample, since listing them takes long. Otherwise they are listed
/// for each look: a server may start one for each request.
const LISTED_MAX: usize = 512;

/// Room for threads that were started since the last sample.
const SPARE: usize = 16;

/// A process to look at.
pub(super) struct Looked<'a> {
    pub(super) role: Role,
    pub(super) name: &'a str,
    /// Its directory `task`.
    pub(super) task: &'a Path,
    /// The numbers of its threads at the last sample.
    pub(super) tids: &'a [u32],
}

/// Looks at the processes once. `number` counts the looks. Those with a single thread, and those whose system calls may
/// not be read, are left out.
pub(super) fn look(mut processes: Vec<Looked<'_>>, number: usize) -> Vec<ProcessLook> {
    processes.retain(|process| process.tids.len() > 1);
    processes.sort_by_key(|process| process.tids.len());
    let first = turn(processes.len(), number);
    processes.rotate_left(first);
    processes.truncate(THREADS_MAX / 2);
    processes.sort_by_key(|process| process.tids.len());
    let counts = processes.iter().map(|process| process.tids.len().max(SPARE));
    let allotted = allotted(&counts.collect::<Vec<_>>(), THREADS_MAX);
    processes.iter().zip(allotted).filter_map(|(process, most)| look_at(process, most, number)).collect()
}

/// Where to begin when there are more processes than a look covers.
fn turn(processes: usize, number: usize) -> usize {
    if processes <= THREADS_MAX / 2 { 0 } else { number.wrapping_mul(THREADS_MAX / 2) % processes }
}

/// Shares out `most` threads over processes with so many, ascending: all of them where there are few, and the rest evenly.
pub(super) fn allotted(counts: &[usize], most: usize) -> Vec<usize> {
    let mut left = most;
    let share = |(index, count): (usize, &usize)| {
        let share = (*count).min(left / (counts.len() - index));
        left -= share;
        share
    };
    counts.iter().enumerate().map(share).collect()
}

/// So many of the threads, spread evenly; all of them in turn.
fn chosen(tids: &[u32], most: usize, number: usize) -> impl Iterator<Item = u32> + '_ {
    let most = most.min(tids.len());
    let place = move |index: usize| (number % tids.len() + index * tids.len() / most) % tids.len();
    (0..most).filter_map(move |index| tids.get(place(index)).copied())
}

fn look_at(process: &Looked<'_>, most: usize, number: usize) -> Option<ProcessLook> {
    let listed = process.tids.len() <= LISTED_MAX;
    let now = if listed { numbered_entries(process.task).ok()? } else { process.tids.to_vec() };
    let mut look = ProcessLook {
        role: process.role,
        name: process.name.to_owned(),
        threads: u32::try_from(now.len()).unwrap_or(u32::MAX),
        ..ProcessLook::default()
    };
    for tid in chosen(&now, most, number) {
        let mut buffer = [0; 256];
        let Some(call) = system_call(&process.task.join(tid.to_string()), &mut buffer) else { continue };
        look.looked_at += 1;
        look.futexes.extend(futex_address(call));
        look.asleep += u32::from(sleeps_until_a_time(call));
    }
    (look.looked_at > 0).then_some(look)
}

/// The system call that a thread is in. `None` if the thread is gone or that may not be read.
fn system_call<'a>(thread: &Path, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(thread.join("syscall")).ok()?.read(buffer).ok()?;
    std::str::from_utf8(buffer.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_look_is_bounded_and_fair(mut counts in prop::collection::vec(2usize..20_000, 0..64)) {
            counts.sort_unstable();
            let shares = allotted(&counts, THREADS_MAX);
            prop_assert!(shares.iter().sum::<usize>() <= THREADS_MAX);
            prop_assert!(shares.iter().zip(&counts).all(|(share, count)| share <= count && *share >= 2));
            let least = shares.iter().min().copied().unwrap_or(0);
            let whole = |(share, count): (&usize, &usize)| share == count || *share >= THREADS_MAX / counts.len();
            prop_assert!(shares.iter().zip(&counts).all(whole), "{shares:?}, least {least}");
        }

        #[test]
        fn all_threads_have_their_turn(count in 1u32..700, most in 1usize..200) {
            let tids: Vec<u32> = (0..count).collect();
            let ever: BTreeSet<u32> = (0..tids.len()).flat_map(|number| chosen(&tids, most, number)).collect();
            prop_assert_eq!(ever.len(), tids.len());
            let once: BTreeSet<u32> = chosen(&tids, most, 3).collect();
            prop_assert_eq!(once.len(), most.min(tids.len()), "nobody twice in one look");
        }
    }

    fn lay_out(task: &Path, tid: u32, call: &str) {
        std::fs::create_dir_all(task.join(tid.to_string())).unwrap();
        std::fs::write(task.join(tid.to_string()).join("syscall"), call).unwrap();
    }

    #[test]
    fn what_waits_for_a_futex_has_an_address_and_what_sleeps_until_a_time_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        lay_out(folder.path(), 1, "running\n");
        lay_out(folder.path(), 2, &format!("{} 0x10 0x80 0x2\n", libc::SYS_futex));
        lay_out(folder.path(), 3, "0 0x7 0x10 0x20\n");
        lay_out(folder.path(), 5, &format!("{} 0x0 0x1 0x7f\n", libc::SYS_clock_nanosleep));
        lay_out(folder.path(), 6, &format!("{} 0x7f 0x0\n", libc::SYS_nanosleep));
        lay_out(folder.path(), 7, &format!("{} 0x7 0x20 0x1 0x3e8\n", libc::SYS_epoll_pwait));
        let of = |tids| Looked { role: Role::Server, name: "app", task: folder.path(), tids };
        let expected = ProcessLook {
            role: Role::Server,
            name: "app".into(),
            threads: 7,
            looked_at: 6,
            futexes: vec![0x10],
            asleep: 2,
        };
        std::fs::create_dir_all(folder.path().join("4")).unwrap();
        assert_eq!(look(vec![of(&[1, 8]), of(&[1])], 7), [expected], "the fourth thread is gone by now");
        let nowhere = Looked { task: Path::new("/nowhere"), ..of(&[8, 9]) };
        assert!(look(vec![nowhere], 0).is_empty(), "nothing may be read");
    }

    #[test]
    fn of_many_processes_some_are_looked_at_each_time() {
        let folder = tempfile::tempdir().unwrap();
        lay_out(folder.path(), 1, "running\n");
        lay_out(folder.path(), 2, "running\n");
        let names: Vec<String> = (0..150).map(|number| format!("app-{number}")).collect();
        let seen = |number| {
            let of = |name| Looked { role: Role::Downstream, name, task: folder.path(), tids: &[1, 2] };
            let found = look(names.iter().map(|name| of(name)).collect(), number);
            assert_eq!(found.len(), THREADS_MAX / 2);
            found.into_iter().map(|look| look.name).collect::<Vec<_>>()
        };
        let ever: BTreeSet<String> = (0..150).flat_map(seen).collect();
        assert_eq!(ever.len(), names.len());
    }
}
