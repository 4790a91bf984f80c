//! What one thread is doing, as its files in `/proc` tell (proc_pid_syscall(5), proc_pid_wchan(5), proc_pid_stack(5)).

use std::{
    borrow::Cow,
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use analysis::{
    profile::ThreadSeen,
    run::{Function, RunState},
};

use super::calls;

/// Longer stacks are cut.
const STACK_BYTES_MAX: usize = 4096;

/// What the kernel did not let this user read.
#[derive(Debug, Default)]
pub(super) struct Rights {
    pub(super) calls_refused: bool,
    pub(super) stacks_refused: bool,
}

/// Looks at a thread. `None` if it is gone.
pub(super) fn look(thread: &Path, rights: &mut Rights) -> Option<ThreadSeen> {
    let mut buffer = [0; STACK_BYTES_MAX];
    let state = state(&text(&thread.join("stat"), &mut buffer, &mut false)?)?;
    if state == RunState::Running {
        return Some(ThreadSeen { state, ..ThreadSeen::default() });
    }
    let call = text(&thread.join("syscall"), &mut buffer, &mut rights.calls_refused);
    if call.as_ref().is_some_and(|call| call.starts_with("running")) {
        // It has woken since.
        return Some(ThreadSeen { state: RunState::Running, ..ThreadSeen::default() });
    }
    let call = call.and_then(|call| calls::called(&call));
    let wchan = text(&thread.join("wchan"), &mut buffer, &mut false).and_then(|wchan| function(&wchan));
    let stack = text(&thread.join("stack"), &mut buffer, &mut rights.stacks_refused);
    Some(ThreadSeen { state, call, wchan, stack: stack.map(|stack| functions(&stack)).unwrap_or_default() })
}

/// The text of a file; `None` where it cannot be read. Notes whether that was refused.
fn text<'a>(path: &Path, buffer: &'a mut [u8], refused: &mut bool) -> Option<Cow<'a, str>> {
    match File::open(path).and_then(|mut file| file.read(buffer)) {
        // A thread may name itself anything.
        Ok(length) => Some(String::from_utf8_lossy(buffer.get(..length)?)),
        Err(error) => {
            *refused |= error.kind() == ErrorKind::PermissionDenied;
            None
        }
    }
}

/// The state in a file `stat`: the letter behind the name, which may hold anything.
fn state(stat: &str) -> Option<RunState> {
    let (_, after) = stat.rsplit_once(')')?;
    Some(match after.trim_start().chars().next()? {
        'R' => RunState::Running,
        'S' => RunState::Sleeping,
        'D' => RunState::Uninterruptible,
        'T' | 't' => RunState::Stopped,
        // It has ended, or ends.
        'Z' | 'X' => return None,
        _ => RunState::Other,
    })
}

/// The function in a file `wchan`; `None` where the kernel tells none.
fn function(wchan: &str) -> Option<String> {
    Some(wchan.trim()).filter(|name| !name.is_empty() && *name != "0").map(str::to_owned)
}

/// The functions in a file `stack`, the innermost first: `[<0>] ep_poll+0x2f1/0x3c0`.
fn functions(stack: &str) -> Vec<Function> {
    let function = |line: &str| {
        let (_, place) = line.split_once("] ")?;
        let (name, _) = place.split_once('+')?;
        let module = place.split_once(" [").and_then(|(_, module)| module.strip_suffix(']'));
        let module = module.unwrap_or("kernel").to_owned();
        Some(Function { name: name.to_owned(), module, offset: None, kernel: true })
    };
    stack.lines().filter_map(function).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lay_out(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let thread = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(thread.path().join(name), text).unwrap();
        }
        thread
    }

    #[test]
    fn a_thread_that_sleeps_is_told_with_call_function_and_stack() {
        let call = format!("{} 0x7 0x20\n", libc::SYS_fsync);
        let stack = b"[<0>] wait_on_bit+0x2f/0x40\n[<0>] jbd2_wait+0x1/0x2 [jbd2]\ncut sh";
        let files: [(&str, &[u8]); 4] = [
            ("stat", b"7 (a) S \xff name) D 1 0"),
            ("syscall", call.as_bytes()),
            ("wchan", b"wait_on_bit"),
            ("stack", stack),
        ];
        let function = |name: &str, module: &str| Function {
            name: name.into(),
            module: module.into(),
            offset: None,
            kernel: true,
        };
        let expected = ThreadSeen {
            state: RunState::Uninterruptible,
            call: Some("fsync".into()),
            wchan: Some("wait_on_bit".into()),
            stack: vec![function("wait_on_bit", "kernel"), function("jbd2_wait", "jbd2")],
        };
        assert_eq!(look(lay_out(&files).path(), &mut Rights::default()), Some(expected));
    }

    #[test]
    fn who_runs_or_has_woken_sleeps_nowhere() {
        let running = ThreadSeen { state: RunState::Running, ..ThreadSeen::default() };
        let seen = |files: &[(&str, &[u8])]| look(lay_out(files).path(), &mut Rights::default());
        assert_eq!(seen(&[("stat", b"7 (x) R 1")]), Some(running.clone()));
        assert_eq!(
            seen(&[("stat", b"7 (x) S 1"), ("syscall", b"running\n"), ("wchan", b"0")]),
            Some(running)
        );
        assert_eq!(seen(&[("stat", b"7 (x) Z 1")]), None);
        assert_eq!(seen(&[]), None);
        let asleep = ThreadSeen { state: RunState::Sleeping, ..ThreadSeen::default() };
        assert_eq!(
            seen(&[("stat", b"7 (x) S 1"), ("syscall", b"-1 0x0 0x0\n"), ("wchan", b"0")]),
            Some(asleep)
        );
    }

    proptest! {
        #[test]
        fn whatever_the_files_hold_is_read(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let files: [(&str, &[u8]); 4] =
                [("stat", b"7 (x) S 1"), ("syscall", &bytes), ("wchan", &bytes), ("stack", &bytes)];
            let seen = look(lay_out(&files).path(), &mut Rights::default());
            let is_one_line = |function: &Function| !function.name.contains('\n');
            prop_assert!(seen.is_some_and(|seen| seen.stack.iter().all(is_one_line)));
            let _ = look(lay_out(&[("stat", &bytes)]).path(), &mut Rights::default());
        }
    }
}
