//! What a sweep says of itself while it goes on.

use analysis::search::outlook::{Narrowing, Purpose, Settling, SoFar, TimeOf};

use crate::live::Doing;
use crate::words::{capitalised, users};
use crate::{number, progress};

/// What was found so far.
pub(crate) fn found(so_far: &SoFar) -> String {
    let found = &so_far.saturation;
    let rate = number::rate(found.throughput_max_per_s, Some(found.throughput_max_ci_per_s));
    match (so_far.steps.last(), found.users) {
        (None, _) => "Nothing is measured yet.".into(),
        (Some(_), _) if found.throughput_max_per_s <= 0.0 => "No request has completed yet.".into(),
        (Some(_), Some(star)) => {
            let interval = found.users_ci.map_or_else(String::new, |[lo, hi]| {
                format!(" ({}–{})", number::count(lo.into()), number::count(hi.into()))
            });
            format!("So far: N* = {}{interval}, at most {rate}.", users(star))
        }
        (Some(last), None) => format!("So far: at least {rate} with up to {}.", users(last.users)),
    }
}

/// What is being done.
pub(crate) fn doing(doing: &Doing, ending: bool) -> String {
    let sentence = |text: String| format!("{}.", capitalised(&text));
    match doing {
        Doing::Over => "The sweep is over.".into(),
        _ if ending => "Ending with what was measured.".into(),
        Doing::Starting => "Preparing the first measurement.".into(),
        Doing::Measuring { users: count, .. } => format!("Measuring {}.", users(*count)),
        Doing::Profiling { users } => sentence(progress::profiling(*users)),
        Doing::TellingApart { users } => sentence(progress::telling_apart(*users)),
        Doing::Slowing(tier) => sentence(progress::slowing(tier)),
        Doing::Concluding => "All is measured: concluding.".into(),
    }
}

/// A sweep has ended without a result.
pub(crate) fn failed(why: &str) -> String {
    format!("The sweep has ended without a result: {why}")
}

/// What a measurement decides, and what comes next; nothing where it decides nothing.
pub(crate) fn decides(purpose: Purpose) -> Option<String> {
    let count = |users: u32| number::count(users.into());
    Some(match purpose {
        Purpose::WarmUp => return None,
        Purpose::Fewest { next: None } => "These are the only users allowed.".into(),
        Purpose::Fewest { next: Some(next) } => {
            format!("What do the fewest users get? {} come next.", capitalised(&users(next)))
        }
        Purpose::Growth { from, next: Some(next) } => format!(
            "Does throughput still grow beyond {}? If so, {} come next; if not, the search turns back to N*.",
            users(from),
            count(next)
        ),
        Purpose::Growth { from, next: None } => {
            format!(
                "Does throughput still grow beyond {}? More users than these are not allowed.",
                users(from)
            )
        }
        Purpose::Listed { number, of } => format!("Number {number} of {of} that were asked for."),
        Purpose::Maximum { between: [lo, hi] } => {
            format!("Is throughput highest between {} and {}?", count(lo), users(hi))
        }
        Purpose::Saturation { between: [lo, hi] } => {
            format!("Where is N* between {} and {}?", count(lo), users(hi))
        }
        Purpose::Interval { between: [lo, hi] } => {
            format!("How sure is N*? An end of its interval lies between {} and {}.", count(lo), users(hi))
        }
        Purpose::Again { round, left } => {
            let rest = match left {
                0 => "nothing else follows in this round".into(),
                left => format!("{left} more to come back to"),
            };
            format!("Does the same come out again? Round {round}, {rest}.")
        }
    })
}

/// How far a measurement has settled, and how long it has gone on.
pub(crate) fn settled(settling: Option<&Settling>) -> String {
    let Some(settling) = settling else { return "just begun".into() };
    let figures = [("throughput", &settling.throughput_per_s), ("response time", &settling.response_time_us)];
    let told: Vec<String> = figures.into_iter().filter_map(|(name, figure)| narrowed(name, figure)).collect();
    let tenths = |us: u64| number::tenths(us as f64 / 1e6);
    let planned_us = settling.planned_us.max(settling.measured_us);
    let lasts = format!("{} of {}{}s", tenths(settling.measured_us), tenths(planned_us), number::GROUP);
    let steady = if settling.steady || told.is_empty() { None } else { Some("not steady yet".to_owned()) };
    told.into_iter().chain(steady).chain([lasts]).collect::<Vec<_>>().join(", ")
}

/// `throughput ±2.3 % (wanted: ±1 %)`; nothing of a figure that this measurement is not for.
fn narrowed(name: &str, figure: &Narrowing) -> Option<String> {
    let wanted = number::percent(figure.target?);
    Some(match figure.relative_half_width {
        Some(width) => format!("{name} ±{} (wanted: ±{wanted})", number::percent(width)),
        None => format!("{name} not known yet (wanted: ±{wanted})"),
    })
}

/// The time measured, and how much is left at most.
pub(crate) fn time(time: &TimeOf, doing: &Doing) -> String {
    let spent = format!("{} measured", whole_seconds(time.spent_us));
    match (doing, time.left_us_max) {
        (Doing::Starting | Doing::Measuring { .. }, Some(left_us)) => {
            format!("{spent}, at most {} left", whole_seconds(left_us))
        }
        _ => spent,
    }
}

/// A time that is told again and again, without the decimals that nobody can read so fast.
fn whole_seconds(us: u64) -> String {
    match (us as f64 / 1e6).round() {
        seconds if seconds < 10.0 => format!("{seconds}{}s", number::GROUP),
        seconds => number::elapsed(seconds),
    }
}
