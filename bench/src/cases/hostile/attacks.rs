//! The attacks: what hostile clients do, how many there are, and how many fit on this machine.

use crate::tools::{
    effort::Result,
    kernel::{descriptors_allowed, memory_available_bytes, tasks_left},
};

/// Hostile connections at once.
const CROWD: u64 = 1_000;
/// The same, where it is the number that matters.
const GREAT_CROWD: u64 = 10_000;
/// Descriptors of a server that are not for hostile connections or the files of these.
const SPARE_DESCRIPTORS: u64 = 1_000;
/// Threads and processes that are left to others.
const SPARE_TASKS: u64 = 1_000;
/// Memory for each process at most, bytes. Half of what is available is left to others.
const PROCESS_BYTES: f64 = 1_048_576.0;

/// An attack.
#[derive(Debug)]
pub(super) struct Attack {
    /// As `hostile-client` knows it.
    pub kind: &'static str,
    /// As the table shows it.
    pub name: &'static str,
    /// Connections at once.
    pub connections: u64,
    /// Descriptors of the server for a connection, on average: an upload has a file of its own.
    descriptors: f64,
    /// Whether the server speaks TLS.
    pub secure: bool,
    /// Whether it is the server that has to end a connection.
    pub holds: bool,
}

pub(super) static ATTACKS: [Attack; 8] = [
    held("slow-headers", "slow headers"),
    Attack { descriptors: 2.0, ..held("slow-bodies", "slow bodies") },
    Attack { descriptors: 2.0, ..held("one-byte-chunks", "one-byte chunks") },
    held("slow-readers", "slow readers"),
    held("idle", "idle connections"),
    Attack { secure: true, ..held("half-tls", "half-open TLS handshakes") },
    Attack { holds: false, ..held("flood", "new connections, 1 000 a second") },
    Attack {
        connections: GREAT_CROWD,
        descriptors: 1.4,
        holds: false,
        ..held("all", "the first five, 10 000 at once")
    },
];

const fn held(kind: &'static str, name: &'static str) -> Attack {
    Attack { kind, name, connections: CROWD, descriptors: 1.0, secure: false, holds: true }
}

impl Attack {
    /// How many connections there may be at once on a model, as far as this machine allows. Says so if they are fewer.
    ///
    /// # Errors
    /// Hardly any are.
    pub(super) fn fitting(&self, model: &str) -> Result<u64> {
        let descriptors = descriptors_allowed();
        let of_server = (descriptors.saturating_sub(SPARE_DESCRIPTORS) as f64 / self.descriptors) as u64;
        let (mut fitting, mut why) =
            (of_server, format!("a process may have {descriptors} open files (`ulimit -Hn`)"));
        if matches!(model, "threads" | "processes") {
            let left = tasks_left();
            if left.saturating_sub(SPARE_TASKS) < fitting {
                fitting = left.saturating_sub(SPARE_TASKS);
                why = format!("there may be {left} more threads and processes (pid_max, pids.max)");
            }
        }
        if model == "processes" {
            let available = memory_available_bytes().unwrap_or(f64::MAX);
            let of_memory = (available / 2.0 / PROCESS_BYTES) as u64;
            if of_memory < fitting {
                fitting = of_memory;
                why = format!("{:.0} MB of memory are available", available / 1e6);
            }
        }
        let (name, wanted) = (self.name, self.connections);
        if fitting < wanted / 10 {
            return Err(format!("{name} needs room for {wanted} connections: {why}").into());
        }
        if fitting < wanted {
            eprintln!("bench: {model}, {name}: {fitting} connections instead of {wanted}: {why}");
        }
        Ok(fitting.min(wanted))
    }
}
