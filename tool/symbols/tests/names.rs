//! Names of real programs, compiled here: with their tables and without, where others do not see their files, and of the kernel.

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use analysis::{profile::Space, run::Function};
use rustix::{
    process::geteuid,
    thread::{Gid, Uid, set_thread_res_gid, set_thread_res_uid},
};
use tempfile::TempDir;

/// Says where its functions are, one that other programs could link to, one that they could not, one that it made as it went, and
/// one of the library; and waits until its standard input ends. With an argument it writes a map of what it made, as runtimes do.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void exported(void) { __asm__ volatile(""); }
static void hidden(void) { __asm__ volatile(""); }

int main(int count, char **words) {
    char *made = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (count > 1) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        FILE *map = fopen(path, "w");
        if (!map) return 1;
        fprintf(map, "%lx 40 made by %s\n", (unsigned long)made, words[1]);
        fclose(map);
    }
    printf("%lx %lx %lx %lx\n", (unsigned long)exported, (unsigned long)hidden, (unsigned long)made, (unsigned long)getpid);
    fflush(stdout);
    char end;
    while (read(0, &end, 1) > 0) {}
    return 0;
}
"#;

/// A folder with the program, compiled with these options, that anybody may run; `None` where there is no compiler.
fn compiled(test: &str, options: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a folder for all");
    let [source, program] = ["program.c", "program"].map(|name| folder.path().join(name));
    fs::write(&source, PROGRAM).expect("a file");
    // So that a function of the library is told where it is, and not where the program leads to it.
    let mut compiler = Command::new("cc");
    compiler.args(["-O0", "-fPIC", "-pie"]).args(options).arg("-o").args([&program, &source]);
    match compiler.output() {
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{test} needs a compiler: {error}; run scripts/setup-tests"
            );
            eprintln!("SKIPPED {test}: no compiler is installed (scripts/setup-tests)");
            None
        }
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some((folder, program))
        }
    }
}

/// Takes tables from a program, all that these options do not keep.
fn strip(program: &Path, options: &[&str]) {
    let done = Command::new("strip").arg("--strip-all").args(options).arg(program).output();
    let done = done.expect("strip comes with compilers");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The program as it runs, until it is dropped.
struct Running {
    child: Child,
    pid: u32,
    exported: u64,
    hidden: u64,
    made: u64,
    library: u64,
}

impl Running {
    /// Starts it; what came instead of its places, where it did not start.
    fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let places: Vec<u64> =
            line.split_whitespace().filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
        let [exported, hidden, made, library] = places[..] else {
            let _ = child.wait();
            return Err(line);
        };
        let pid = child.id();
        Ok(Self { child, pid, exported, hidden, made, library })
    }

    /// The same of a program that another one started, which waits for it.
    fn of_child(mut self) -> Self {
        let parent = self.pid;
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        self.pid = children.expect("children").trim().parse().expect("one child");
        self
    }

    /// What is told of an address of it.
    fn told(&self, address: u64) -> Function {
        let space = Space::Process(self.pid);
        let mut found =
            symbols::names(&[(space, [self.exported, self.hidden, self.made, self.library].into())].into());
        found.remove(&(space, address)).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its standard input ends, and with it the program.
        let _ = self.child.wait();
    }
}

/// The same as a user without rights, if this is root: on a thread of its own, which alone changes its user.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    const NOBODY: u32 = 65_534;
    let act = move || {
        if geteuid().is_root() {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            set_thread_res_gid(group, group, group).expect("root may change its group");
            set_thread_res_uid(user, user, user).expect("root may change its user");
        }
        act()
    };
    thread::scope(|threads| threads.spawn(act).join().expect("the thread ends"))
}

/// Runs a program as the same user.
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn is_root_or_skip(test: &str) -> bool {
    let root = geteuid().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "{test} needs root, and CI must run it as root");
    if !root {
        eprintln!("SKIPPED {test}: it needs root");
    }
    root
}

fn assert_named(function: &Function, name: &str, module: &str) {
    let Function { name: told, module: of, offset, kernel } = function;
    assert_eq!((&**told, &**of, *offset, *kernel), (name, module, None, false));
}

/// Its place in its file is told, to within a page.
fn assert_placed(function: &Function, program: &Path) {
    let length = fs::metadata(program).expect("a file").len();
    let is_in_it = |offset: u64| offset.is_multiple_of(4096) && offset < length;
    assert_eq!((&*function.name, &*function.module), ("", "program"), "{function:?}");
    assert!(function.offset.is_some_and(is_in_it), "{function:?} in {length} bytes");
}

#[test]
fn a_program_with_debugging_information_alone_is_named_by_it() {
    let test = "a_program_with_debugging_information_alone_is_named_by_it";
    let Some((_folder, program)) = compiled(test, &["-g"]) else { return };
    strip(&program, &["--keep-section=.debug_*"]);
    let running = Running::start(Command::new(&program)).expect("it starts");
    assert_named(&running.told(running.exported), "exported", "program");
    assert_named(&running.told(running.hidden), "hidden", "program");
}

/// The code next to a name that is exported has none itself, and gets none.
#[test]
fn a_stripped_program_has_the_names_that_it_exports_and_places_for_all_else() {
    let test = "a_stripped_program_has_the_names_that_it_exports_and_places_for_all_else";
    let Some((_folder, program)) = compiled(test, &["-g", "-rdynamic"]) else { return };
    strip(&program, &[]);
    let running = Running::start(Command::new(&program)).expect("it starts");
    assert_named(&running.told(running.exported), "exported", "program");
    assert_placed(&running.told(running.hidden), &program);
    let made = running.told(running.made);
    assert_eq!((&*made.name, &*made.module, made.offset), ("", "[anonymous]", None), "no map names it");
}

/// Its owner opens files by their paths, and one that is gone used to take the names of the library with it.
#[test]
fn a_file_that_is_gone_takes_no_names_of_others_with_it() {
    let test = "a_file_that_is_gone_takes_no_names_of_others_with_it";
    let Some((_folder, program)) = compiled(test, &[]) else { return };
    let mut command = Command::new(if geteuid().is_root() { AS_NOBODY[0] } else { "env" });
    command.args(if geteuid().is_root() { &AS_NOBODY[1..] } else { &[] }).arg(&program);
    let running = Running::start(command).expect("it starts");
    let copy = program.with_file_name("copy");
    fs::copy(&program, &copy).and_then(|_| fs::remove_file(&program)).expect("it is gone");
    let (gone, library) = as_nobody(|| (running.told(running.exported), running.told(running.library)));
    assert_placed(&gone, &copy);
    assert!(library.name.contains("getpid"), "{library:?}");
}

/// Starts the program in name spaces of its own as this user; there it is the first process, and alone in /tmp. `None` where the
/// kernel makes none.
fn apart(test: &str, program: &Path, user: &[&str]) -> Option<Running> {
    // What is mounted there hides the program, so it is opened before.
    let script = "exec 9<\"$1\" && shift && mount -t tmpfs none /tmp && cat <&9 >/tmp/program && \
                  chmod 755 /tmp/program && exec 9<&- && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-c", script, "sh"]).arg(program);
    command.args(user).args(["/tmp/program", "itself"]);
    let started = Running::start(command);
    assert!(
        started.is_ok() || std::env::var_os("CI").is_none(),
        "{test} needs name spaces, and CI must have them"
    );
    if started.is_err() {
        eprintln!("SKIPPED {test}: it needs name spaces");
    }
    started.ok().map(Running::of_child)
}

fn assert_named_apart(running: &Running) {
    assert!(!Path::new("/tmp/program").exists(), "it is there for that process alone");
    assert_named(&running.told(running.exported), "exported", "program");
    assert_named(&running.told(running.hidden), "hidden", "program");
    assert_named(&running.told(running.made), "made by itself", "[anonymous]");
}

#[test]
fn root_finds_the_files_and_the_map_of_a_process_in_other_name_spaces() {
    let test = "root_finds_the_files_and_the_map_of_a_process_in_other_name_spaces";
    if !is_root_or_skip(test) {
        return;
    }
    let Some((_folder, program)) = compiled(test, &[]) else { return };
    let Some(running) = apart(test, &program, &[]) else { return };
    assert_named_apart(&running);
}

/// As in a container that a user runs without root.
#[test]
fn the_owner_of_a_process_in_other_name_spaces_finds_its_files_and_its_map() {
    let test = "the_owner_of_a_process_in_other_name_spaces_finds_its_files_and_its_map";
    if !is_root_or_skip(test) {
        return;
    }
    let Some((_folder, program)) = compiled(test, &[]) else { return };
    let Some(running) = apart(test, &program, &AS_NOBODY) else { return };
    as_nobody(|| assert_named_apart(&running));
}

#[test]
fn functions_of_the_kernel_are_named() {
    let test = "functions_of_the_kernel_are_named";
    let table = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let listed: Vec<(u64, &str)> = table.lines().filter_map(symbol).collect();
    let Some((begin, _)) = listed.iter().find(|(address, name)| *name == "schedule" && *address > 0) else {
        eprintln!("SKIPPED {test}: the kernel tells this user no addresses");
        return;
    };
    let inside = begin + 1;
    let found = symbols::names(&[(Space::Kernel, [inside].into())].into());
    let function = &found[&(Space::Kernel, inside)];
    let aliases = || listed.iter().filter(|(address, _)| address == begin).map(|(_, name)| *name);
    assert!(aliases().any(|name| name == function.name), "{function:?}");
    assert!(function.kernel && function.module == "kernel", "{function:?}");
}

/// The address and the name in a line of `/proc/kallsyms`.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.nth(1)?))
}
