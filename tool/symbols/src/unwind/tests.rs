//! Stacks of real processes, copied while these sleep: `/proc/PID/syscall` tells where.

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::{fs::FileExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
};

use analysis::profile::Registers;
use proptest::prelude::*;

use super::{space::continued, *};
use crate::{Space as Addresses, names};

const SLEEP: &str = "/bin/sleep";

/// A program that sleeps until it is dropped.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Sleeper {
    /// Starts a program, and waits until it sleeps in a system call.
    fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg0("sleep").arg("1000");
        loop {
            match command.spawn() {
                // Another test forked while the program was being written: its child has the file open until it is a program.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::yield_now(),
                started => return Self(started.expect("it starts")),
            }
        }
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its stack once it sleeps; `None` where the kernel does not let it be seen.
    fn snapshot(&self) -> Option<Snapshot> {
        let pid = self.pid();
        let asleep = || {
            let text = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
            let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            // clock_nanosleep.
            let number = if cfg!(target_arch = "x86_64") { "230" } else { "115" };
            Some((words.first()? == number).then_some(words))
        };
        let words = loop {
            match asleep()? {
                Some(words) => break words,
                None => thread::yield_now(),
            }
        };
        let hex = |word: &String| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a number");
        let [stack, instruction] = words.get(7..9)?.iter().map(hex).collect::<Vec<_>>()[..] else {
            return None;
        };
        let mut copy = vec![0; 16 << 10];
        let read = File::open(format!("/proc/{pid}/mem")).ok()?.read_at(&mut copy, stack).ok()?;
        copy.truncate(read);
        let registers = Registers { instruction, stack, frame: 0, link: 0 };
        Some(Snapshot { pid, registers, stack: copy, goes_on: read == 16 << 10, ..Snapshot::default() })
    }
}

const SKIPPED: &str =
    "SKIPPED: only root, or who may trace processes, sees the stack of a process that sleeps";

/// The program that sleeps, at a path of its own and with a change.
fn copy(change: impl FnOnce(&mut [u8])) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sleeper");
    fs::copy(SLEEP, &path).expect("a copy");
    let mut bytes = fs::read(&path).expect("a file");
    change(&mut bytes);
    fs::write(&path, bytes).expect("a file");
    (folder, path)
}

/// The names of the functions, or else the modules, that a stack goes through.
fn told(pid: u32, calls: &[u64]) -> Vec<String> {
    let space = Addresses::Process(pid);
    let found = names(&[(space, calls.iter().copied().collect())].into());
    let told = |call: &u64| {
        found.get(&(space, *call)).map_or_else(String::new, |of| format!("{} {}", of.name, of.module))
    };
    calls.iter().map(told).collect()
}

fn unwound(snapshot: &Snapshot) -> Unwound {
    TableUnwinder::default().unwind(snapshot)
}

#[test]
fn the_callers_of_a_packaged_program_are_found_up_to_its_start() {
    let sleeper = Sleeper::start(Path::new(SLEEP));
    let Some(snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    let Unwound { calls, end } = unwound(&snapshot);
    let told = told(sleeper.pid(), &calls);
    assert_eq!(end, StackEnd::Start, "{told:?}");
    assert!(told[0].contains("nanosleep"), "{told:?}");
    assert!(told.iter().any(|call| call.starts_with("__libc_start_main")), "{told:?}");
    assert!(told.last().is_some_and(|call| call.ends_with(" sleep")), "it began in the program: {told:?}");
}

#[test]
fn a_program_that_was_deleted_is_followed_by_whoever_may_still_open_it() {
    let (folder, path) = copy(|_| ());
    let sleeper = Sleeper::start(&path);
    let Some(snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    drop(folder);
    let end = unwound(&snapshot).end;
    match rustix::process::geteuid().is_root() {
        true => assert_eq!(end, StackEnd::Start),
        false => assert_eq!(end, StackEnd::Untold),
    }
}

#[test]
fn a_program_without_tables_cuts_stacks_short() {
    let (_folder, path) = copy(elf::without_tables);
    let sleeper = Sleeper::start(&path);
    let Some(snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    let Unwound { calls, end } = unwound(&snapshot);
    let told = told(sleeper.pid(), &calls);
    assert_eq!(end, StackEnd::Untold, "{told:?}");
    assert!(
        told.last().is_some_and(|call| call.ends_with(" sleeper")),
        "as far as the library tells: {told:?}"
    );
    let linked = [&calls[..], &calls[..2]].concat();
    assert_eq!(
        unwound(&Snapshot { linked: linked.clone(), ..snapshot }).calls,
        linked,
        "and by frame pointers from there"
    );
}

#[test]
fn files_of_another_mount_name_space_are_found() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: only root makes name spaces");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sleeper");
    let script = "mount -t tmpfs none \"$1\" && cp \"$2\" \"$3\" && exec \"$3\" 1000";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path()).arg(SLEEP).arg(&path);
    let sleeper = Sleeper(command.spawn().expect("unshare is installed"));
    let Some(snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    assert!(!path.exists(), "it is there for that process alone");
    let maps = Maps::of(sleeper.pid());
    let program = maps.iter().find(|mapping| mapping.is_at(&path)).expect("its code");
    let tables = program.open_by_path(sleeper.pid()).ok().and_then(|file| elf::Elf::read(&file)?.tables);
    assert!(tables.is_some(), "{program:?}");
    assert_eq!(unwound(&snapshot).end, StackEnd::Start);
}

#[test]
fn a_process_that_has_ended_has_what_the_one_has_that_it_was_copied_from() {
    let sleeper = Sleeper::start(Path::new(SLEEP));
    let Some(snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    let ended = Snapshot { pid: u32::MAX / 2, linked: vec![1, 2], ..snapshot };
    assert_eq!(unwound(&ended), Unwound { calls: vec![1, 2], end: StackEnd::Untold });
    let copied = Snapshot { copied_from: Some(sleeper.pid()), ..ended.clone() };
    assert_eq!(unwound(&copied).end, StackEnd::Start);
    let mut unwinder = TableUnwinder::default();
    unwinder.unwind(&copied);
    drop(sleeper);
    assert_eq!(unwinder.unwind(&Snapshot { copied_from: None, ..copied }).end, StackEnd::Start, "it is kept");
}

#[test]
fn a_stack_that_goes_on_beyond_its_copy_is_too_deep() {
    let sleeper = Sleeper::start(Path::new(SLEEP));
    let Some(mut snapshot) = sleeper.snapshot() else { return eprintln!("{SKIPPED}") };
    let whole = unwound(&snapshot).calls;
    // Less than the return addresses take by themselves.
    snapshot.stack.truncate(8 * (whole.len() - 2));
    snapshot.goes_on = true;
    let cut = unwound(&snapshot);
    assert_eq!(cut.end, StackEnd::TooDeep, "{cut:?}");
    assert!(whole.starts_with(&cut.calls), "{cut:?} of {whole:?}");
}

#[test]
fn frame_pointers_add_what_is_missing() {
    assert_eq!(continued(vec![5, 6, 7], &[5, 7, 8, 9]), [5, 6, 7, 8, 9]);
    assert_eq!(continued(vec![5, 6, 7], &[5, 8]), [5, 6, 7]);
    assert_eq!(continued(vec![5], &[5, 8]), [5, 8]);
    assert_eq!(continued(vec![6], &[5, 8]), [5, 8]);
    assert_eq!(continued(vec![], &[]), [0; 0]);
}

#[test]
fn tables_that_would_never_let_go_are_given_up() {
    let mut files = TablesOfFiles::default();
    let space = Space::new(Maps::of(std::process::id()), |mapping| {
        let mut elf = elf::Elf::clone(&*files.of(std::process::id(), mapping)?);
        elf.tables = Some(bounds::tests::tables(elf.address_of(mapping.offset)?, bounds::tests::LOOP));
        Some(elf.into())
    });
    let code = space.maps().iter().find(|mapping| mapping.file.is_some()).expect("code").start + 0x10;
    let registers = Registers { instruction: code, stack: 0x1000, frame: 0x1000, link: code };
    let snapshot = Snapshot { registers, stack: vec![0; 4096], ..Snapshot::default() };
    // On the way to a caller the rules would loop for ever.
    let walk = space.walk(&snapshot, &mut Cache::default());
    assert_eq!((walk.calls, walk.end), (vec![code], StackEnd::Untold));
}

/// A space of this process, with tables of which these bytes are changed.
fn damaged(changes: &[(usize, u8)]) -> Space {
    let mut files = TablesOfFiles::default();
    Space::new(Maps::of(std::process::id()), |mapping| {
        let mut elf = elf::Elf::clone(&*files.of(std::process::id(), mapping)?);
        for table in elf.tables.iter_mut().flatten() {
            let mut bytes = table.bytes.to_vec();
            for (at, byte) in changes {
                let at = at % bytes.len().max(1);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
            table.bytes = bytes.into();
        }
        Some(elf.into())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_tables_and_the_stack_hold_is_followed(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..400),
        stacks in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0_u64..1 << 20), 1..40), 1..20),
        frame in 0_u64..400,
    ) {
        let (space, mut cache) = (damaged(&changes), Cache::default());
        let starts: Vec<u64> = space.maps().iter().map(|mapping| mapping.start).collect();
        for words in stacks {
            let words: Vec<u64> = words.iter().map(|(start, within)| start.get(&starts) + within).collect();
            let registers = Registers { instruction: words[0], stack: 0x1000, frame: 0x1000 + frame, link: words[0] };
            let stack = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let snapshot = Snapshot { registers, stack, ..Snapshot::default() };
            let walk = space.walk(&snapshot, &mut cache);
            prop_assert!(walk.calls.len() <= 127);
        }
    }
}
