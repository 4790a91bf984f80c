//! Findings as sentences: one file for each subject.
//!
//! Everything that a person reads about a finding is worded here, and only here.

pub(crate) mod checks;
pub(crate) mod comparisons;
pub(crate) mod contrasts;
pub(crate) mod doctor;
pub(crate) mod histories;
pub(crate) mod holders;
pub(crate) mod imports;
pub(crate) mod live;
pub(crate) mod predictions;

mod confirmation;
mod connections;
mod devices;
mod doubts;
mod experiments;
pub(crate) mod flame;
mod generator;
mod hops;
mod kernel;
pub(crate) mod left_out;
mod locks;
mod off_cpu;
mod outcome;
mod processors;
mod profile;
pub(crate) mod published;
mod stalls;
pub(crate) mod sure;
pub(crate) mod unwatched;
mod waiting;
pub(crate) mod warnings;

use analysis::run::{Evidence, NextLimit, Replicate, Verdict, Warning};
use analysis::ticks::{ErrorCounts, ErrorKind};

pub(crate) use confirmation::{confirmation, tested};
pub(crate) use doubts::doubt;
pub use generator::generator_lost;
pub(crate) use off_cpu::{state as off_cpu_state, tier as off_cpu_tier, troubles as off_cpu_troubles};
pub(crate) use profile::{
    asleep, asleep_of, function, profile, profile_of, short, tier as profile_tier,
    troubles as profile_troubles,
};
pub(crate) use warnings::warning;

use crate::number;
use crate::words::{self, unbroken as told};

/// A warning as a sentence: what, by how much, what to do.
#[must_use]
pub fn warning_text(warning: &Warning) -> String {
    warnings::warning(&warning.cause)
}

/// One thing that was seen.
pub(crate) fn evidence(seen: &Evidence) -> String {
    match seen {
        Evidence::Processors(seen) => processors::full(seen),
        Evidence::CpuTime(seen) => processors::cpu_time(seen),
        Evidence::Shares(seen) => processors::shared(seen),
        Evidence::Devices(seen) => devices::sentence(seen),
        Evidence::Kernel(seen) => kernel::sentence(seen),
        Evidence::Connections(seen) => connections::sentence(seen),
        Evidence::Waiting(seen) => waiting::sentence(seen),
        Evidence::Hops(seen) => hops::sentence(seen),
        Evidence::Locks(seen) => locks::sentence(seen),
        Evidence::Generator(seen) => generator::sentence(seen),
        Evidence::Outcome(seen) => outcome::sentence(seen),
    }
}

/// Every reason not to rely on a verdict.
pub(crate) fn doubts(verdict: &Verdict) -> Vec<String> {
    verdict.doubts.iter().map(doubt).collect()
}

/// The limit that would come next if the bottleneck were removed, as the end of a sentence.
pub(crate) fn next(next: &NextLimit) -> String {
    match next {
        NextLimit::Limit { resource, throughput_per_s } => {
            format!("{}, at about {} req/s.", holders::resource(resource), number::about(*throughput_per_s))
        }
        NextLimit::Told { text } => told(text),
    }
}

/// `at N* = 4 users and beyond`.
fn at_saturation(users: u32) -> String {
    format!("at N* = {} and beyond", number::count(users.into()))
}

/// `core` or `cores`.
fn core_noun(cores: f64) -> &'static str {
    if cores <= 1.0 { "core" } else { "cores" }
}

/// Measurements of one number of users in the order of time: `29 200 requests/s (at 8 s), 9 600 (at 44 s)`.
fn course(all: &[Replicate]) -> String {
    let rate = |one: &Replicate| number::quantity(one.throughput_per_s);
    let at = |one: &Replicate| number::elapsed(one.at_s);
    let told = all.iter().enumerate().map(|(index, one)| match index {
        0 => format!("{} requests/s (at {})", rate(one), at(one)),
        _ => format!("{} (at {})", rate(one), at(one)),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Errors by kind, most frequent first: `120 timed out, 4 reset`.
fn errors(errors: &ErrorCounts) -> String {
    words::error_counts(errors, failed_how)
}

fn failed_how(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Refused => "refused",
        ErrorKind::Reset => "reset",
        ErrorKind::TimedOut => "timed out",
        ErrorKind::Status => "with an unexpected status",
        ErrorKind::Unavailable => "turned away by a busy server",
        ErrorKind::Malformed => "malformed",
        ErrorKind::ClosedEarly => "closed early",
        ErrorKind::WrongBody => "with a wrong body",
        ErrorKind::NothingToKeep => "without the value to keep",
        ErrorKind::Tls => "failed in TLS",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::LocalLimit => "stopped by a limit of this host",
    }
}
