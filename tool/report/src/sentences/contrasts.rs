//! Words for two sides beside each other: figures, changes, what differs besides, gates.

use analysis::contrast::{
    Aspect, Basis, Bound, Case, Caution, Contrast, Difference, Figure, GateFinding, GateVerdict, Point,
    Ratio, Setting, Tier,
};

use super::holders;
use crate::gates::HeldGate;
use crate::{number, words};

/// A figure as the name of a row.
pub(crate) fn figure(of: &Figure) -> String {
    match of {
        Figure::Throughput => "throughput".into(),
        Figure::Users => "N*".into(),
        Figure::ResponseTimeMean => "mean response".into(),
        Figure::ResponseTimeQuantile { percentile } => percentile_name(percentile),
        Figure::CpuPerRequest => "CPU per request".into(),
        Figure::CpuPerRequestOf { tier } => format!("CPU per request, {}", tier_name(tier)),
    }
}

/// `p99.9` for the field `p999`.
fn percentile_name(field: &str) -> String {
    let known = analysis::run::PERCENTILES.iter().find(|percentile| percentile.name == field);
    known.map_or_else(|| field.to_owned(), |percentile| crate::metrics::percentile_name(percentile.share))
}

fn tier_name(Tier { name, on }: &Tier) -> String {
    on.as_ref().map_or_else(|| name.clone(), |host| format!("{name} on {host}"))
}

/// A value of a figure: `34 100 req/s`, `117 µs`, `4`.
pub(crate) fn value(of: &Figure, value: f64) -> String {
    match of {
        Figure::Throughput => format!("{} req/s", four_digits(value)),
        Figure::Users => number::tenths(value),
        _ => number::time(value),
    }
}

/// A throughput: of two that differ by a few per cent, three digits would hide it.
fn four_digits(value: f64) -> String {
    number::estimate(value, Some([0.985, 1.015].map(|end| end * value)))
}

/// A change with its interval: `−3.1 % (−4.0 to −2.2 %)`.
pub(crate) fn change(of: &Ratio) -> String {
    let change = bounded(of, &number::change(of.ratio, of.ci));
    match of.ci {
        Some(ci) => format!("{change} ({})", number::change_interval(of.ratio, ci)),
        None => format!("{change}, with no interval"),
    }
}

/// What is only bounded, as such: `at least −3 %`.
pub(crate) fn bounded(of: &Ratio, change: &str) -> String {
    match of.bound {
        Bound::Exact => change.to_owned(),
        Bound::AtLeast => format!("at least {change}"),
        Bound::AtMost => format!("at most {change}"),
        Bound::Unknown => format!("{change} between lower bounds"),
    }
}

/// The change of throughput in a sentence.
pub(crate) fn headline(case: &Case) -> String {
    let Some(ratio) = case.figures.iter().find(|ratio| ratio.figure == Figure::Throughput) else {
        return "Throughput is not known on both sides.".to_owned();
    };
    let values =
        format!("{} before, {} after", value(&ratio.figure, ratio.before), value(&ratio.figure, ratio.after));
    match (ratio.changed, ratio.ci) {
        (true, _) => {
            let verb = if ratio.ratio > 1.0 { "rose" } else { "fell" };
            format!("Throughput {verb}: {}; {values}.", change(ratio))
        }
        (false, Some(_)) => format!("No change of throughput is shown: {}; {values}.", change(ratio)),
        (false, None) => format!("Throughput has no interval, so no change is claimed: {values}."),
    }
}

/// The other figures that changed.
pub(crate) fn others(case: &Case) -> String {
    let changed: Vec<String> = case
        .figures
        .iter()
        .filter(|ratio| ratio.changed && ratio.figure != Figure::Throughput)
        .map(|ratio| format!("{} {}", figure(&ratio.figure), change(ratio)))
        .collect();
    if changed.is_empty() {
        "Of the other figures, no change is shown.".to_owned()
    } else {
        format!("Other figures that changed: {}.", changed.join("; "))
    }
}

/// Where intervals come from, and what a change takes to be found.
pub(crate) fn basis(case: &Case) -> Option<String> {
    let ratio = case.figures.iter().find(|ratio| ratio.figure == Figure::Throughput)?;
    let from = match ratio.basis {
        Basis::Nothing | Basis::OneRun => return None,
        Basis::WithinRuns => {
            return Some(
                "One run on each side: intervals come from within the runs, and what differs between starts of the \
                 server is not in them. Repeats show it: nstar sweep --repeats 5 --restart COMMAND."
                    .to_owned(),
            );
        }
        Basis::BetweenRuns { before, after } => format!(
            "Intervals come from the scatter between runs, {} before and {} after.",
            number::count(before.into()),
            number::count(after.into())
        ),
        Basis::Rounds { rounds } => {
            format!("Intervals come from {} rounds, paired.", number::count(rounds.into()))
        }
        Basis::Turns { pairs } => format!(
            "The runs of both sides took turns, so that each is compared with its neighbour in time: intervals come from \
             {} pairs.",
            number::count(pairs.into())
        ),
    };
    let scatter = ratio.scatter.map_or_else(String::new, |scatter| {
        let needed = ratio.repeats_for(SMALL_CHANGE).map_or_else(
            || "more repeats than can be made".to_owned(),
            |needed| format!("about {} repeats of each side", number::count(needed.into())),
        );
        format!(
            " Throughput scatters by {} from one to the next: to find a change of 3{GROUP}% nineteen times in twenty takes {needed}.",
            number::percent(scatter),
            GROUP = number::GROUP
        )
    });
    Some(from + &scatter)
}

/// The change that is spoken of where repeats are counted.
const SMALL_CHANGE: f64 = 1.03;

/// Where response times and costs were read.
pub(crate) fn at(case: &Case) -> String {
    let at = match case.at_users {
        Some(users) => format!("with {} on both sides", words::users(users)),
        None => "at N* of each side".to_owned(),
    };
    let regressed = case.figures.iter().any(|ratio| {
        let is_cost = matches!(ratio.figure, Figure::CpuPerRequest | Figure::CpuPerRequestOf { .. });
        is_cost && ratio.basis == Basis::WithinRuns
    });
    match regressed {
        true => format!(
            "Response times are those {at}. CPU time that has an interval comes from all steps of each run, by regression."
        ),
        false => format!("Response times and CPU time are those {at}."),
    }
}

/// A difference: `Kernel: 6.1 before, 6.8 after.`
pub(crate) fn difference(of: &Difference) -> String {
    let side = |settings: &[Setting]| {
        let all = settings.iter().map(|setting| self::setting(&of.aspect, setting));
        all.collect::<Vec<_>>().join(" and ")
    };
    format!("{}: {} before, {} after.", aspect(&of.aspect), side(&of.before), side(&of.after))
}

/// A setting with its name: `Think time: 100 ms`.
pub(crate) fn named_setting(of: &Aspect, to: &Setting) -> String {
    format!("{}: {}", aspect(of), setting(of, to))
}

/// The name of what can differ.
pub(crate) fn aspect(of: &Aspect) -> &'static str {
    match of {
        Aspect::Kind => "Command",
        Aspect::Scenario => "Path or scenario",
        Aspect::Requests => "Requests, in thousandths",
        Aspect::Loop => "Loop",
        Aspect::Rate => "Rate",
        Aspect::ThinkTime => "Think time",
        Aspect::Connections => "Connections",
        Aspect::Users => "Users",
        Aspect::Sent => "What is sent and expected, by digest",
        Aspect::Server => "Server",
        Aspect::Processor => "Processor",
        Aspect::Cores => "Processors of the generator’s host",
        Aspect::Memory => "Memory",
        Aspect::Kernel => "Kernel",
        Aspect::Nstar => "Version of nstar",
        Aspect::Threads => "Generator threads",
        Aspect::GeneratorProcessors => "Processors of the generator",
        Aspect::SystemProcessors => "Processors of the systems",
        Aspect::Generators => "Generators",
        Aspect::Duration => "Duration",
        Aspect::Tiers => "Watched processes and the processors that they may use",
        Aspect::OpenFiles => "Limit on open files",
        Aspect::ServerProcessor => "Processor of the server’s host",
        Aspect::ServerCores => "Processors of the server’s host",
        Aspect::ServerMemory => "Memory of the server’s host",
        Aspect::ServerKernel => "Kernel of the server’s host",
        Aspect::CpuQuotas => "CPU quotas in processors",
        Aspect::MemoryLimits => "Limits on memory",
    }
}

fn setting(aspect: &Aspect, of: &Setting) -> String {
    match (aspect, of) {
        (_, Setting::Text(text)) => text.replace('=', ": ").replace(',', ", "),
        (_, Setting::Each(all)) => {
            let each = all.iter().map(|(name, of)| format!("{name}: {}", setting(aspect, of)));
            each.collect::<Vec<_>>().join(", ")
        }
        (Aspect::Memory | Aspect::ServerMemory, Setting::Number(gib)) => {
            format!("{}{}GiB", number::plain(*gib), number::GROUP)
        }
        (Aspect::MemoryLimits, Setting::Number(bytes)) => number::prefixed(*bytes, "B"),
        (Aspect::Rate, Setting::Number(rate)) => number::rate(*rate, None),
        (Aspect::ThinkTime, Setting::Number(us)) => number::time(*us),
        (Aspect::Duration, Setting::Number(seconds)) => format!("about {}", number::elapsed(*seconds)),
        (_, Setting::Number(number)) => number::quantity(*number),
        (Aspect::GeneratorProcessors | Aspect::SystemProcessors, Setting::Absent) => "any".to_owned(),
        (_, Setting::Absent) => "none".to_owned(),
    }
}

/// Reasons to distrust runs, what is said of several in one sentence.
pub(crate) fn cautions(all: &[Caution]) -> Vec<String> {
    let files =
        |is_it: fn(&Caution) -> Option<&String>| -> Vec<&String> { all.iter().filter_map(is_it).collect() };
    let of_files = [
        (files(|of| if let Caution::Interrupted { file } = of { Some(file) } else { None }), "cut short"),
        (
            files(|of| if let Caution::LowerBound { file } = of { Some(file) } else { None }),
            "the server was not driven to its limit, so that throughput and N* are lower bounds; where most runs are exact, those \
             below their mean are set aside",
        ),
        (
            files(|of| if let Caution::Inconclusive { file } = of { Some(file) } else { None }),
            "inconclusive (nstar report FILE says why)",
        ),
        (
            files(|of| if let Caution::DebugBuild { file } = of { Some(file) } else { None }),
            "made by an nstar built without optimisation",
        ),
    ];
    let grouped = of_files.into_iter().filter(|(files, _)| !files.is_empty());
    let grouped = grouped.map(|(files, what)| format!("{}: {what}.", listed(&files)));
    grouped.chain(all.iter().filter_map(of_one)).collect()
}

/// `a.json, b.json and 3 more`.
fn listed(files: &[&String]) -> String {
    const MOST: usize = 3;
    let shown: Vec<&str> = files.iter().take(MOST).map(|file| file.as_str()).collect();
    match files.len() {
        more if more > MOST => {
            format!("{} and {} more", shown.join(", "), number::count((more - MOST) as u64))
        }
        _ => shown.join(", "),
    }
}

/// What is said of a run by itself.
fn of_one(of: &Caution) -> Option<String> {
    Some(match of {
        Caution::Failed { file, share } => {
            format!("{file}: {} of the requests failed.", number::percent(*share))
        }
        Caution::Copy { file, of } if file == of => {
            format!("{file} was given twice: it is no repeat of itself.")
        }
        Caution::Copy { file, of } => format!("{file} is the same run as {of}: it is no repeat."),
        _ => return None,
    })
}

/// What a gate came to: `throughput>-3%: not decided, −2.5 % (−4.1 to −0.9 %); about 9 repeats of each side would decide it`.
pub(crate) fn gate(of: &GateFinding) -> String {
    let found = match &of.found {
        None => missing(&of.gate.figure),
        Some(ratio) if ratio.basis == Basis::OneRun => format!(
            "{}; the file of an experiment holds it of one run of each variant: compare its run files, in the folder beside it",
            change(ratio)
        ),
        Some(ratio) if ratio.ci.is_none() => format!("{}; repeats would give one", change(ratio)),
        Some(ratio) => change(ratio),
    };
    let needed = of.repeats_needed.map_or_else(String::new, |needed| {
        format!("; about {} repeats of each side would decide it", number::count(needed.into()))
    });
    let case = [of.work.as_str(), of.variant.as_str()].into_iter().filter(|name| !name.is_empty());
    let case: Vec<&str> = case.collect();
    let of_case = if case.is_empty() { String::new() } else { format!(" ({})", case.join(", ")) };
    format!("{}{of_case}: {}, {found}{needed}", of.gate.text, gate_verdict(of.verdict))
}

/// What a gate on a figure of one run came to: `p99<=20ms: breached, found 23400 us`.
pub(crate) fn gate_of_run(of: &HeldGate) -> String {
    format!("{}: {}, {}", of.text, gate_verdict(of.verdict), of.found)
}

/// Why a figure is not known on both sides, and what to do.
fn missing(of: &Figure) -> String {
    match of {
        Figure::ResponseTimeQuantile { .. } => format!(
            "{} is not known on both sides: a run had too few responses for it, or its file is from before nstar kept it; \
             measure that side again",
            figure(of)
        ),
        _ => "the runs have no such figure".to_owned(),
    }
}

/// A verdict on a gate in a word or two.
pub(crate) fn gate_verdict(of: GateVerdict) -> &'static str {
    match of {
        GateVerdict::Met => "met",
        GateVerdict::Breached => "breached",
        GateVerdict::NotDecided => "not decided",
    }
}

/// The throughput of a run: `34 120`, or `at least 34 120`.
pub(crate) fn throughput_of(run: &Point) -> String {
    let least = if run.lower_bound { "at least " } else { "" };
    format!("{least}{}", number::estimate(run.throughput_per_s, Some(run.throughput_ci_per_s)))
}

/// What stopped a server, without numbers of processes, which differ from start to start: `CPU, nginx`.
pub(crate) fn stopped_by(run: &Point) -> String {
    let Some(limit) = &run.bottleneck else { return String::new() };
    let kind = words::kind(limit.kind);
    match &limit.identity {
        Some(identity) => format!("{kind}, {}", holders::short_name(identity)),
        None => kind.to_owned(),
    }
}

/// What stopped the server in all of several runs; `None` where they differ.
pub(crate) fn all_stopped_by<'a>(mut runs: impl Iterator<Item = &'a Point>) -> Option<String> {
    let first = runs.next().map(stopped_by).filter(|by| !by.is_empty())?;
    runs.all(|run| stopped_by(run) == first).then_some(first)
}

/// What a case is about: `100 KB, epoll`; nothing for run files.
pub(crate) fn case_name(case: &Case) -> String {
    let parts = [case.work.as_str(), case.variant.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What is said of differences that make the load another one.
pub(crate) fn other_load(contrast: &Contrast) -> Option<String> {
    let different: Vec<String> = contrast.other_loads().map(difference).collect();
    (!different.is_empty()).then(|| format!("The loads differ. {}", different.join(" ")))
}
