//! What happens during a run, in words for stderr, which may be any terminal or a log: ASCII alone.

use std::{net::SocketAddr, path::Path, time::Duration};

use analysis::{
    comparison::{LeftOut, LeftOutCause},
    run::{DatabaseTrouble, GeneratorLoss, HostName, Proof, Slowable, SocketsUnread, Step},
    search::outlook::TimeOf,
};

use crate::sentences::{self, comparisons, holders, unwatched};

/// One of several repeats begins.
#[must_use]
pub fn repeat(number: u32, of: u32) -> String {
    format!("repeat {number} of {of}")
}

/// A number of users is being measured, in a search that still takes some time.
#[must_use]
pub fn step_begun(users: u32, time: Option<&TimeOf>) -> String {
    let left = time.and_then(|time| time.left_us_max);
    let left = left.map_or_else(String::new, |us| format!(", at most {} left", about(us as f64 / 1e6)));
    format!("measuring {}{left}", crate::words::users(users))
}

/// A number of users has been measured: a row of a table.
#[must_use]
pub fn step_done(step: &Step) -> String {
    let (users, rate_per_s, mean_us) = (step.users, step.throughput_per_s, step.response_time_us.mean);
    format!("{users:>6} users  {rate_per_s:>10.0} req/s  {mean_us:>9.0} us")
}

/// An experiment tells one explanation from another: so many users pause for random times, compared with one.
#[must_use]
pub fn telling_apart(users: u32) -> String {
    match users {
        1 => "one user with pauses against one without, to see whether a pause saves time".to_owned(),
        _ => format!("{users} users at random moments against one, to see whether they wait for each other"),
    }
}

/// The processor time of the server is being sampled.
#[must_use]
pub fn profiling(users: u32) -> String {
    format!("sampling where the processor time goes with {}", crate::words::users(users))
}

/// A tier is being slowed, to test the verdict.
#[must_use]
pub fn slowing(tier: &Slowable) -> String {
    format!("slowing {}, to see whether throughput follows", holders::slowable(tier))
}

/// A CPU quota that was lowered could not be put back: the file that holds it, and what it held.
#[must_use]
pub fn quota_not_put_back(file: &Path, held: &str) -> String {
    format!("a CPU quota could not be put back and is still too low: write `{held}` into {}", file.display())
}

/// The rate of a link that was lowered could not be put back: its interface, and the command that does so.
#[must_use]
pub fn rate_not_put_back(interface: &str, command: &str) -> String {
    format!("the rate of the link {interface} could not be put back and is still too low: run `{command}`")
}

/// A server answered the first request with a status that counts as an error. It has an address where there are several.
#[must_use]
pub fn unexpected_status(server: Option<SocketAddr>, status: u16) -> String {
    format!(
        "{} answered the first request with status {status}, which counts as an error (--expect {status}, or `expect = {status}` in a \
         scenario, accepts it)",
        named(server)
    )
}

/// A server answered the first request with a redirect that nobody asked for. It has an address where there are several.
#[must_use]
pub fn redirected(server: Option<SocketAddr>, status: u16) -> String {
    sentences::warnings::redirected(&named(server), status)
}

/// The response of a server to the first request has no value for the scenario's `keep`.
#[must_use]
pub fn nothing_to_keep(server: Option<SocketAddr>) -> String {
    format!(
        "the response of {} to the first request has no value for the scenario's `keep`; such responses count as errors",
        named(server)
    )
}

/// Less is known of the sockets of a network namespace than of others, and of so many more.
#[must_use]
pub fn sockets_unread(on: &HostName, reason: &SocketsUnread, others: u64) -> String {
    unwatched::sockets(on, reason, others)
}

/// A database does not report all of its locks.
#[must_use]
pub fn database_unwatched(database: &str, reason: &DatabaseTrouble) -> String {
    let reason = unwatched::database(reason);
    format!("lock waits in the database {database} cannot be seen in full: {reason}. The sweep goes on")
}

/// Processors are shared out between the generator and the programs of an experiment; `None`: they share all.
#[must_use]
pub fn placed(split: Option<(&[usize], &[usize])>) -> String {
    match split {
        Some((generator, programs)) => format!(
            "generator on processors {generator:?}, programs on {programs:?}; --share-cores lets both use all"
        ),
        None => "generator and programs share all processors: each takes time from the other".to_owned(),
    }
}

/// Files of random bytes are being made.
#[must_use]
pub fn making_files(files: u64, bytes: u64) -> String {
    let noun = if files == 1 { "file" } else { "files" };
    format!("making {files} {noun}, {:.1} MB in all", bytes as f64 / 1e6)
}

/// So many experiments are about to be run, which measure for so long.
#[must_use]
pub fn experiments_planned(count: usize, time: Duration) -> String {
    format!(
        "{count} experiments, about {} of measuring in all; making files and filling databases comes on top",
        minutes(time)
    )
}

/// An experiment begins, the one of this number.
#[must_use]
pub fn experiment_begun(name: &str, number: usize, left: Duration) -> String {
    format!("-- {number}. {name}; about {} of measuring left in all", minutes(left))
}

/// A series ends with an exit status that is not 0, because of these experiments.
#[must_use]
pub fn exit_decided_by(status: u8, names: &[String]) -> String {
    format!("exit status {status} because of {}: see what is said of each", comparisons::listed(names))
}

fn minutes(time: Duration) -> String {
    match time.as_secs().div_ceil(60) {
        0 | 1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

/// Programs are being started: `starting index, peer (8)`.
#[must_use]
pub fn starting(programs: &[(String, usize)]) -> String {
    let one = |(name, count): &(String, usize)| match count {
        1 => name.clone(),
        count => format!("{name} ({count})"),
    };
    format!("starting {}", programs.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// How many trials an experiment makes, and how long they take.
#[must_use]
pub fn planned(trials: u32, time: Duration) -> String {
    let time = about(time.as_secs_f64());
    if trials == 1 { format!("one trial, {time}") } else { format!("about {trials} trials, {time}") }
}

/// The time of an experiment is too short for its trials, which need so many seconds at least.
#[must_use]
pub fn too_short(needed_s: f64) -> String {
    format!(
        "the experiment's time is too short: its trials take {} even if each is as short as can be; \
         raise `time` or lower `rounds`",
        about(needed_s)
    )
}

/// An experiment goes on after so many trials that were made before.
#[must_use]
pub fn goes_on(made: u32) -> String {
    format!("going on: {made} {} there already", if made == 1 { "trial is" } else { "trials are" })
}

/// An experiment was interrupted after so many trials, which are kept.
#[must_use]
pub fn kept(made: u32) -> String {
    let trials = if made == 1 { "1 trial, which is" } else { &format!("{made} trials, which are") };
    format!("interrupted after {trials} kept: the same command with --resume goes on")
}

/// A trial begins: its number, how many there are about, how long the rest takes.
#[must_use]
pub fn trial_begun(name: &str, number: u32, trials: u32, left: Duration) -> String {
    if trials <= 1 {
        return name.to_owned();
    }
    format!("trial {number} of about {trials}, {} left: {name}", about(left.as_secs_f64()))
}

/// A trial has lost its fleet, as this generator of it was lost, and is made again: for this time, of so many at most.
#[must_use]
pub fn measured_again(generator: &str, loss: &GeneratorLoss, times: u32, most: u32) -> String {
    let why = sentences::generator_lost(generator, loss);
    format!(
        "{why}. Measuring this again from its beginning, once the fleet is back (time {times} of at most {most})"
    )
}

/// Each of so many attempts at a trial has lost its fleet, the last as this generator was lost.
#[must_use]
pub fn fleet_lost(generator: &str, loss: &GeneratorLoss, attempts: u32) -> String {
    let why = sentences::generator_lost(generator, loss);
    format!(
        "each of {attempts} attempts at one measurement lost its fleet, the last because {why}. Nothing is left out for that; \
         see to the bus and its members"
    )
}

/// A length of time that is not known well: `about 40 s`, `about 3 min`, `about 2 h 10 min`.
fn about(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round().max(0.0) as u64;
    match (minutes / 60, minutes % 60) {
        (0, 0 | 1) => format!("about {} s", (seconds / 5.0).ceil().max(1.0) * 5.0),
        (0, minutes) => format!("about {minutes} min"),
        (hours, minutes) => format!("about {hours} h {minutes} min"),
    }
}

/// What is measured is being prepared.
#[must_use]
pub fn preparing() -> String {
    "preparing".to_owned()
}

/// A program runs without a limit that it should have.
#[must_use]
pub fn unlimited(program: &LeftOut) -> String {
    sentences::left_out::sentence(program)
}

/// The programs are asked to prove that they kept their promises.
#[must_use]
pub fn proving(interrupted: bool) -> String {
    match interrupted {
        true => "interrupted: proving what was measured until then; a second Ctrl-C ends at once".to_owned(),
        false => "proving".to_owned(),
    }
}

/// An experiment ends with so many seconds of its time left, as more rounds would change nothing.
#[must_use]
pub fn settled(left_s: f64) -> String {
    format!("the order is settled: done, with {} left", about(left_s))
}

/// The programs have proved that they kept their promises, or that they did not.
#[must_use]
pub fn proved(proof: &Proof) -> String {
    let word = if proof.holds { "proof" } else { "THE PROOF FAILED" };
    format!("{word}: {}", proof_text(proof))
}

/// What the command said, or that it said nothing.
pub(crate) fn proof_text(proof: &Proof) -> &str {
    match (proof.text.as_str(), proof.holds) {
        ("", true) => "its command exited with 0",
        ("", false) => "its command exited with 1, and printed nothing",
        (text, _) => text,
    }
}

/// Something will not be measured.
#[must_use]
pub fn left_out(left_out: &LeftOut) -> String {
    format!("LEFT OUT: {}", sentences::left_out::sentence(left_out))
}

/// The user asked to stop before there was anything to report.
#[must_use]
pub fn interrupted() -> &'static str {
    "interrupted"
}

/// An experiment could not be run.
#[must_use]
pub fn not_run(cause: &LeftOutCause) -> String {
    sentences::left_out::why(cause)
}

/// All of an experiment was left out, this first.
#[must_use]
pub fn nothing_measured(first: &LeftOut) -> String {
    format!("nothing could be measured. {}", sentences::left_out::sentence(first))
}

/// The most that the generator can do on this host.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorCeiling {
    /// Requests of the cheapest kind that it can make per second.
    pub requests_per_s: f64,
    /// CPU time of each, seconds.
    pub cpu_s: f64,
    /// Requests per second that it made beside the null server.
    pub reached_per_s: f64,
    /// Its threads.
    pub threads: usize,
    /// Users of that test.
    pub users: u32,
    /// Length of each response, bytes.
    pub body_bytes: usize,
}

impl GeneratorCeiling {
    /// Two lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { requests_per_s, cpu_s, reached_per_s, threads, users, body_bytes } = self;
        let noun = if *threads == 1 { "thread" } else { "threads" };
        format!(
            "The generator can make at most {requests_per_s:.0} requests/s on {threads} {noun} here: each costs it {:.2} \
             us of CPU time.\nWith the null server beside it, it made {reached_per_s:.0}/s (GET of {body_bytes} bytes, \
             {users} users).\n",
            cpu_s * 1e6
        )
    }
}

fn named(server: Option<SocketAddr>) -> String {
    server.map_or_else(|| "the server".to_owned(), |address| format!("the server at {address}"))
}
