//! What a program that does not end is waiting for, with all that it started.

use std::fs;

/// A line for each thread of the process and of its descendants: what it is, its state, and where it waits.
pub(super) fn threads_of(pid: u32) -> String {
    let task = format!("/proc/{pid}/task");
    let threads = fs::read_dir(&task).into_iter().flatten().flatten();
    let threads: Vec<String> = threads.map(|thread| thread.path().display().to_string()).collect();
    let lines = threads.iter().map(|thread| line(thread));
    let children = threads.iter().map(|thread| read(thread, "children"));
    let children: Vec<u32> =
        children.collect::<String>().split_whitespace().filter_map(|child| child.parse().ok()).collect();
    lines.chain(children.into_iter().map(threads_of)).collect()
}

fn line(thread: &str) -> String {
    let stat = read(thread, "stat");
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
    let command = read(thread, "cmdline").replace('\0', " ");
    let words: String = command.chars().take(120).collect();
    // Of root alone the kernel tells where a thread sleeps; the first lines say it.
    let stack = read(thread, "stack").lines().take(4).collect::<Vec<_>>().join(" ");
    format!("{thread} {state} {} {} {stack} {words}\n", read(thread, "wchan"), read(thread, "syscall").trim())
}

fn read(thread: &str, name: &str) -> String {
    fs::read_to_string(format!("{thread}/{name}")).unwrap_or_default()
}
