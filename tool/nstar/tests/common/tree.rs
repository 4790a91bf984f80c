//! A process and all that it started.

use std::fs;

/// The processes that descend from this one, each before its children.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    children(pid).into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// The processes that this one started.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let lists: String = threads(pid).iter().map(|thread| read(thread, "children")).collect();
    lists.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// A line for each thread of the process and of its descendants: what it is, its state, and where it waits.
pub(super) fn states(pid: u32) -> String {
    let all = [vec![pid], descendants(pid)].concat();
    all.into_iter().flat_map(threads).map(|thread| line(&thread)).collect()
}

fn threads(pid: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path().display().to_string()).collect()
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
