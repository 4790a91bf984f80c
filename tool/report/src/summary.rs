//! What a run comes to, in phrases and sentences: shared by the terminal and the page.

pub(crate) mod comparison;
pub(crate) mod index;
pub(crate) mod requests;

use analysis::laws::{is_tested, lost_in_failures};
use analysis::run::{
    Bottleneck, Connections, Identity, RequestShare, Resource, ResourceKind, Run, Step, Unit, Verdict,
};

use crate::number;
use crate::sentences::{self, holders};
use crate::words::{error_counts, error_kind, users};

/// The outcome of a run; chooses the words everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No step was measured.
    Empty,
    /// Requests were sent; none completed.
    AllFailed,
    /// One step: a load, not a sweep.
    OneStep,
    /// Saturated at this many users.
    Saturated(u32),
    /// The generator was full before the server was.
    GeneratorFull(u32),
    /// Throughput was still growing at this many users.
    NotSaturated(u32),
}

/// Determines the outcome of `run`.
pub(crate) fn outcome(run: &Run) -> Outcome {
    let Some(last) = run.steps.last() else { return Outcome::Empty };
    let verdict = &run.verdict;
    let generator = verdict.bottleneck.kind == ResourceKind::Generator;
    match verdict.users_at_saturation {
        _ if run.steps.iter().all(|step| step.completed == 0) => Outcome::AllFailed,
        _ if run.steps.len() == 1 => Outcome::OneStep,
        Some(users) if generator => Outcome::GeneratorFull(users),
        Some(users) if verdict.bounded => Outcome::Saturated(users),
        _ => Outcome::NotSaturated(last.users),
    }
}

/// The verdict as one sentence.
pub(crate) fn headline(run: &Run) -> String {
    let verdict = &run.verdict;
    let rate = number::estimate(verdict.throughput_max_per_s, Some(verdict.throughput_max_ci_per_s));
    match outcome(run) {
        Outcome::Empty => "Nothing was measured.".into(),
        Outcome::AllFailed => "No request completed.".into(),
        Outcome::OneStep => one_step_headline(run),
        Outcome::Saturated(n) => {
            let limit = limited_by(run);
            let sure = if verdict.is_conclusive() { "Saturates" } else { "Inconclusive: seems to saturate" };
            format!("{sure} at {}, {rate} requests a second, {limit}.", users(n))
        }
        Outcome::GeneratorFull(n) => {
            format!(
                "Inconclusive: the load generator was full first, at {} and {rate} requests a second.",
                users(n)
            )
        }
        Outcome::NotSaturated(n) => {
            format!("Not saturated by {}: at least {rate} requests a second.", users(n))
        }
    }
}

fn one_step_headline(run: &Run) -> String {
    let Some(step) = run.steps.first() else { return String::new() };
    let load = match run.load.rate_per_s {
        Some(rate) => format!("of {} asked for", number::plain(rate)),
        None => format!("with {}", users(step.users)),
    };
    format!(
        "{} requests a second {load}, answered in {} on average.",
        number::estimate(step.throughput_per_s, step.throughput_ci_per_s),
        number::time(step.response_time_us.mean)
    )
}

/// The limit of the server, as the end of a sentence.
fn limited_by(run: &Run) -> String {
    let Bottleneck { kind, identity, .. } = &run.verdict.bottleneck;
    let found = match (identity.as_ref().map(holders::name), limit(*kind)) {
        (_, None) if *kind == ResourceKind::Generator => "the load generator".to_owned(),
        // A kind that only a newer version knows has a holder.
        (Some(holder), None) if *kind == ResourceKind::Unknown => holder.into_owned(),
        (_, None) => return "and what limits it was not found".to_owned(),
        (None, Some(limit)) => limit.to_owned(),
        (Some(holder), Some(limit)) => match kind {
            ResourceKind::Disk if is_io_limit(run) => {
                format!("what its cgroup lets {holder} ask of a disk")
            }
            ResourceKind::Disk | ResourceKind::Network => format!("{limit} {holder}"),
            ResourceKind::Lock => format!("{limit} inside {holder}"),
            ResourceKind::Upstream => format!("{limit}, {holder}"),
            _ => format!("{limit} of {holder}"),
        },
    };
    format!("limited by {found}")
}

/// A kind of limit of the server within a sentence.
fn limit(kind: ResourceKind) -> Option<&'static str> {
    Some(match kind {
        ResourceKind::Cpu => "the CPU",
        ResourceKind::SingleThread => "a single thread",
        ResourceKind::CpuQuota => "the CPU quota",
        ResourceKind::Disk => "the disk",
        ResourceKind::Network => "the network",
        ResourceKind::Lock => "a lock",
        ResourceKind::WorkerPool => "the worker pool",
        ResourceKind::AcceptQueue => "the listen queue",
        ResourceKind::FileDescriptors => "the open-file limit",
        ResourceKind::Memory => "the memory",
        ResourceKind::ConnectionPool => "the connection pool",
        ResourceKind::Upstream => "the tier behind it",
        ResourceKind::GarbageCollection => "the garbage collector",
        ResourceKind::RateLimit => "the rate limit",
        ResourceKind::Softirq => "the soft interrupts",
        ResourceKind::Generator | ResourceKind::None | ResourceKind::Unknown => return None,
    })
}

/// Whether the bottleneck is a limit on what the holder may ask of a disk, not the disk itself. An identity that is only
/// a name does not say, but the unit of the resource does.
fn is_io_limit(run: &Run) -> bool {
    let identity = &run.verdict.bottleneck.identity;
    if let Some(Identity::IoLimit(_)) = identity {
        return true;
    }
    let same = |resource: &&Resource| resource.kind == ResourceKind::Disk && resource.identity == *identity;
    let found = run.steps.iter().flat_map(|step| &step.resources).find(same);
    found.is_some_and(|resource| resource.unit != Unit::Devices)
}

/// Where the run saturated, as a phrase.
pub(crate) fn saturation_phrase(run: &Run) -> String {
    let interval = users_interval(run);
    match outcome(run) {
        Outcome::Saturated(n) => format!("N* = {}{interval}", users(n)),
        Outcome::GeneratorFull(n) => format!("generator full at {}{interval}", users(n)),
        Outcome::NotSaturated(n) => format!("N* not reached by {}", users(n)),
        Outcome::OneStep | Outcome::AllFailed => match run.load.rate_per_s {
            Some(rate) => format!("open loop at {} req/s", number::plain(rate)),
            None => run.steps.last().map_or_else(String::new, |step| users(step.users)),
        },
        Outcome::Empty => "nothing was measured".into(),
    }
}

/// Where charts and tables are marked, and the word for it.
pub(crate) fn mark(run: &Run) -> Option<(u32, &'static str)> {
    match outcome(run) {
        Outcome::Saturated(n) => Some((n, "N*")),
        Outcome::GeneratorFull(n) => Some((n, "generator full")),
        _ => None,
    }
}

/// The interval of N*, as an aside; empty where there is none.
pub(crate) fn users_interval(run: &Run) -> String {
    run.verdict.users_at_saturation_ci.map_or_else(String::new, |[lo, hi]| {
        format!(" ({}–{})", number::count(lo.into()), number::count(hi.into()))
    })
}

/// How the highest throughput seen relates to the server's maximum.
pub(crate) enum Reached {
    /// It is the most.
    Maximum,
    /// The server may give more.
    LowerBound,
    /// Nothing: the maximum was not searched for.
    Measured,
}

/// How the highest throughput of the run relates to the server's maximum.
pub(crate) fn throughput_reached(run: &Run) -> Reached {
    match outcome(run) {
        Outcome::Saturated(_) => Reached::Maximum,
        Outcome::NotSaturated(_) | Outcome::GeneratorFull(_) => Reached::LowerBound,
        Outcome::Empty | Outcome::AllFailed | Outcome::OneStep => Reached::Measured,
    }
}

/// The throughput that the run comes to, with its interval: the highest, or that of the one step.
pub(crate) fn throughput(run: &Run) -> String {
    let bound = match throughput_reached(run) {
        Reached::Maximum => "at most ",
        Reached::LowerBound => "at least ",
        Reached::Measured => "",
    };
    let rate = match run.steps.as_slice() {
        [step] => number::rate(step.throughput_per_s, step.throughput_ci_per_s),
        _ => throughput_max(&run.verdict),
    };
    format!("{bound}{rate}")
}

/// The unit of a step's number.
pub(crate) fn load_unit(run: &Run) -> &'static str {
    if run.load.rate_per_s.is_some() { "connections" } else { "users" }
}

/// The highest throughput with its interval.
pub(crate) fn throughput_max(verdict: &Verdict) -> String {
    number::rate(verdict.throughput_max_per_s, Some(verdict.throughput_max_ci_per_s))
}

/// Failed requests of all steps by kind, most frequent first.
pub(crate) fn failures(run: &Run) -> String {
    error_counts(&run.errors(), error_kind)
}

/// The evidence, or what can be said without any.
pub(crate) fn evidence(bottleneck: &Bottleneck) -> Vec<String> {
    if !bottleneck.findings.is_empty() {
        return bottleneck.findings.iter().map(sentences::evidence).collect();
    }
    let holder = holders::holder_or_kind(bottleneck.kind, bottleneck.identity.as_ref());
    let busy = bottleneck.utilization.map(|share| format!("{holder} is busy {}.", number::percent(share)));
    let cost = bottleneck.demand_us.map(|us| format!("Each request costs it {}.", number::time(us)));
    busy.into_iter().chain(cost).collect()
}

/// Little's law over the run, as a sentence.
pub(crate) fn little(run: &Run) -> String {
    if matches!(outcome(run), Outcome::Empty | Outcome::AllFailed) {
        return String::new();
    }
    if run.load.rate_per_s.is_some() {
        return "Little’s law is not tested in an open loop.".into();
    }
    let sentences = [little_tested(run), little_untested(run)];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Little's law at the steps where it can be tested; nothing where too many requests failed at all of them.
fn little_tested(run: &Run) -> Option<String> {
    let laws = &run.laws;
    if !laws.little_holds {
        return Some(format!("Little’s law is off by up to {}.", number::percent(laws.little_gap_max)));
    }
    let tested = run.steps.iter().filter(|step| is_tested(&run.load, step)).count();
    let (lost, steps) = (lost(run).count(), run.steps.len());
    let sentence = match tested {
        0 if lost == steps => return None,
        0 if lost > 0 => "Little’s law is not tested: no step where it can be was steady.",
        0 => "Little’s law is not tested: no steady state was reached.",
        1 if steps == 1 => "Little’s law holds.",
        _ if tested == steps => "Little’s law holds at every step.",
        _ if lost == 0 => "Little’s law holds at every steady step.",
        _ => "Little’s law holds where it can be tested.",
    };
    Some(sentence.to_owned())
}

/// Where Little's law cannot be tested, and why.
fn little_untested(run: &Run) -> Option<String> {
    let at: Vec<_> = lost(run).map(|step| number::count(step.users.into())).collect();
    let unit = if at == ["1"] { "user" } else { "users" };
    (!at.is_empty()).then(|| {
        format!(
            "Little’s law cannot be tested at {} {unit}: too many requests failed, whose time is not counted.",
            at.join(", ")
        )
    })
}

/// The steps at which too many requests failed for Little's law to be tested.
fn lost(run: &Run) -> impl Iterator<Item = &Step> {
    run.steps.iter().filter(|step| lost_in_failures(step))
}

/// From this share of the response times on, a look-up of the name for each connection is worth telling.
const LOOKUP_SHARE: f64 = 0.01;

/// What looking up the server's name would add to the response times of clients that do it for each connection, where connections
/// are made for requests and it would be much.
pub(crate) fn name_lookup(run: &Run) -> Option<String> {
    let (step, took_us) = (run.verdict_step()?, run.name_lookup_us?);
    let share = took_us * step.connecting?.per_request / step.response_time_us.mean;
    (share.is_finite() && share >= LOOKUP_SHARE).then(|| {
        format!(
            "Looking up the server’s name took {}: nstar does it once, before the load, and no response time includes it. \
             Clients that look it up for each connection wait that much longer each time, {} of the response times with {}.",
            number::time(took_us),
            number::percent(share),
            users(step.users)
        )
    })
}

/// The kinds of request as they ran, where there are several and no table has them; empty otherwise.
pub(crate) fn mix(run: &Run) -> String {
    if requests::requests(run).is_some() {
        return String::new();
    }
    let part = |request: &RequestShare| {
        let asked = number::percent(request.asked_share);
        format!("{} {} (asked {asked})", request.name, number::percent(request.share))
    };
    run.requests.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// How the load was made, as a phrase.
pub(crate) fn load_shape(run: &Run) -> String {
    let load = &run.load;
    let pace = match load.rate_per_s {
        Some(rate) => format!("open loop at {} requests a second", number::plain(rate)),
        None => "closed loop".to_owned(),
    };
    let think = match load.think_time_us {
        time if time > 0.0 => format!(", think time {}", number::time(time)),
        _ => String::new(),
    };
    let connections = match load.connections {
        Connections::PerRequest => ", one connection per request",
        Connections::Kept => ", connections kept",
    };
    format!("{pace}{think}{connections}")
}
