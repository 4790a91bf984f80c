//! Starts real peers that keep an index among themselves, and prints the memory and the CPU time of each.
//!
//! `cargo run --release -p share-dht --example many-peers -- [--peers N] [--seconds S]`
//!
//! A peer here is what `nstar serve peer --dht` runs for the index: its thread, its key, its connections over TCP on loopback,
//! its encryption, its records and renewals. The HTTP server and the shared folder of such a peer are left out. There are as
//! many peers in one process as its descriptors allow. All processes end with this one.

mod part;
mod process;

use std::{
    env,
    error::Error,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::{
    part::Figures,
    process::{Process, Searches},
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Most peers: each has an address of its own for its files.
const PEERS_MAX: usize = 2_000;
/// Descriptors of a process besides those of its peers.
const DESCRIPTORS_OF_PROCESS: u64 = 64;
/// Descriptors of a peer besides its connections.
const DESCRIPTORS_OF_PEER: u64 = 16;
/// Time for all to learn of each other: each looks for others once a minute.
const SETTLING: Duration = Duration::from_secs(150);

/// What to measure.
struct Options {
    peers: usize,
    /// How long peers are idle, and how long they search. A refresh and three renewals go on in 120 s.
    seconds: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["part", rest @ ..] => part::run(rest),
        _ => options(&words).and_then(|options| measure(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("many-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut words: &[&str]) -> Result<Options> {
    let mut options = Options { peers: 1_000, seconds: 120 };
    while let [flag, rest @ ..] = words {
        let [value, rest @ ..] = rest else { return Err(format!("{flag} needs a number").into()) };
        match *flag {
            "--peers" => options.peers = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            _ => return Err("usage: many-peers [--peers N] [--seconds S]".into()),
        }
        words = rest;
    }
    if !(2..=PEERS_MAX).contains(&options.peers) || options.seconds == 0 {
        return Err(format!("--peers is 2 to {PEERS_MAX}, and --seconds at least 1").into());
    }
    Ok(options)
}

/// Raises the limit on descriptors as far as allowed; the processes that are started inherit it. Returns it.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // The limit in force is checked by the caller.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many of `peers` one process can hold. A peer has one connection with each other at most, but for a moment two when both
/// connect at once.
///
/// # Errors
/// The limit is too low for a single one.
fn peers_per_process(allowed: u64, peers: usize) -> Result<usize> {
    let peers = peers as u64;
    let each = DESCRIPTORS_OF_PEER + peers + peers / 4;
    match allowed.saturating_sub(DESCRIPTORS_OF_PROCESS) / each {
        0 => Err(format!(
            "each of {peers} peers may need {each} open files, and a process here may have {allowed}; raise the limit \
             with `ulimit -n {}`, or start fewer with --peers",
            each + DESCRIPTORS_OF_PROCESS
        )
        .into()),
        room => Ok(usize::try_from(room.min(peers))?),
    }
}

fn measure(options: &Options) -> Result<()> {
    let per_process = peers_per_process(raise_descriptor_limit(), options.peers)?;
    let mut processes = start(options.peers, per_process)?;
    eprintln!("{} peers in {} processes get to know each other ...", options.peers, processes.len());
    thread::sleep(SETTLING);
    let begun = (Instant::now(), figures(&mut processes)?);
    thread::sleep(Duration::from_secs(options.seconds));
    let idle = (Instant::now(), figures(&mut processes)?);
    let searches = search(&mut processes, options)?;
    let searching = (Instant::now(), figures(&mut processes)?);
    println!("{} peers in {} processes", options.peers, processes.len());
    println!(
        "{:>10} {:>12} {:>14} {:>12} {:>12} {:>14}",
        "", "memory, MB", "CPU, ms per s", "known peers", "descriptors", "messages per s"
    );
    print_line("idle", options.peers, &begun, &idle);
    print_line("searching", options.peers, &idle, &searching);
    print_searches(&searches, options);
    Ok(())
}

/// Starts all peers, one after the other. All join through the first.
fn start(peers: usize, per_process: usize) -> Result<Vec<Process>> {
    let (mut processes, mut first) = (Vec::new(), None);
    for from in (0..peers).step_by(per_process) {
        let (process, at) = Process::start(from, per_process.min(peers - from), first)?;
        processes.push(process);
        first.get_or_insert(at);
        eprintln!("{} peers started", (from + per_process).min(peers));
    }
    Ok(processes)
}

/// The sums over all processes.
fn figures(processes: &mut [Process]) -> Result<Figures> {
    processes.iter_mut().map(Process::figures).try_fold(Figures::default(), |sum, figures| {
        let figures = figures?;
        Ok(sum.plus(&figures))
    })
}

/// Lets one peer in each process search at a time, all processes at once.
fn search(processes: &mut [Process], options: &Options) -> Result<Searches> {
    for process in processes.iter_mut() {
        process.begin_searches(options.seconds, options.peers)?;
    }
    processes.iter_mut().map(Process::searches).try_fold(Searches::default(), |sum, searches| {
        let searches = searches?;
        Ok(sum.plus(&searches))
    })
}

/// Prints what each peer takes on average from one time to another.
fn print_line(what: &str, peers: usize, from: &(Instant, Figures), to: &(Instant, Figures)) {
    let each = |sum: f64| sum / peers as f64;
    let per_s = |sum: f64| each(sum) / (to.0 - from.0).as_secs_f64();
    println!(
        "{what:>10} {:>12.2} {:>14.2} {:>12.0} {:>12.0} {:>14.1}",
        each(to.1.memory_bytes) / 1e6,
        per_s(to.1.cpu_s - from.1.cpu_s) * 1e3,
        each(to.1.known),
        each(to.1.descriptors),
        per_s(to.1.messages - from.1.messages)
    );
}

fn print_searches(searches: &Searches, options: &Options) {
    let Searches { made, found, taken_s } = searches;
    println!(
        "{made:.0} searches, {:.0} per s, {:.2} % found, {:.1} ms each",
        made / options.seconds as f64,
        100.0 * found / made,
        1e3 * taken_s / made
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_as_many_peers_as_its_descriptors_allow() {
        assert_eq!(peers_per_process(20_000, 1_000).unwrap(), 15);
        assert_eq!(peers_per_process(1 << 20, 1_000).unwrap(), 828);
        assert_eq!(peers_per_process(u64::MAX, 1_000).unwrap(), 1_000);
        let refused = peers_per_process(1_024, 1_000).unwrap_err().to_string();
        assert!(refused.contains("1266 open files") && refused.contains("ulimit -n 1330"), "{refused}");
    }

    #[test]
    fn flags_are_read_and_others_refused() {
        let read = options(&["--peers", "30", "--seconds", "2"]).unwrap();
        assert_eq!((read.peers, read.seconds), (30, 2));
        for wrong in [&["--peers"][..], &["--peers", "1"], &["--peers", "x"], &["--seconds", "0"], &["now"]] {
            assert!(options(wrong).is_err(), "{wrong:?}");
        }
    }
}
