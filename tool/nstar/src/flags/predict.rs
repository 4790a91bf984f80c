//! Flags of `nstar predict`.

use std::{path::PathBuf, str::FromStr, time::Duration};

use analysis::{
    prediction::{Bound, Goal, GoalFigure, MixShare},
    run::PERCENTILES,
};
use clap::Args;

use crate::values;

/// Flags of `nstar predict`.
#[derive(Debug, Args)]
pub struct Predict {
    /// A run file of a sweep
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Processors that a tier may use, such as nginx=4; where it has a quota, that
    #[arg(long, value_name = "NAME=N", value_parser = cpus)]
    pub cpus: Vec<(String, f64)>,
    /// Change of a demand, such as 'nginx.cpu=-30%'; the prediction lists the demands
    #[arg(long = "demand", value_name = "DEMAND=CHANGE%", value_parser = demand)]
    pub demands: Vec<(String, f64)>,
    /// Workers of a tier, or connections of its pool, such as app=16
    #[arg(long, value_name = "NAME=N", value_parser = workers)]
    pub workers: Vec<(String, u32)>,
    /// Rate of the busiest link, such as 1Gbit, or of one by its name: eth0=1Gbit
    #[arg(long = "link", value_name = "[NAME=]RATE", value_parser = link)]
    pub links: Vec<(Option<String>, f64)>,
    /// Change of the time of every call of a tier or an address, such as accounts=+5ms
    #[arg(long = "upstream-delay", value_name = "NAME=CHANGE", value_parser = delay, allow_hyphen_values = true)]
    pub delays: Vec<(String, f64)>,
    /// Servers to add, such as 2; or of one tier: app=2
    #[arg(long = "add-server", value_name = "[NAME=]N", value_parser = servers)]
    pub servers: Vec<(Option<String>, u32)>,
    /// Think time of the users
    #[arg(long, value_name = "TIME", value_parser = values::duration_or_zero)]
    pub think: Option<Duration>,
    /// Shares of kinds of request, such as 'read=90%,write=10%'; those not named keep their proportions
    #[arg(long = "mix", value_name = "NAME=SHARE%[,..]")]
    pub mixes: Vec<MixFlag>,
    /// A number of users to answer for
    #[arg(short = 'c', long, value_name = "N", value_parser = users)]
    pub users: Option<u32>,
    /// What to reach, such as 'p95<=50ms at 500 users' or 'throughput>=2000': the cheapest single change that does
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<GoalFlag>,
    /// Seed of what is drawn for the intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// File to write, JSON [default: none]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the prediction as JSON on stdout instead of text
    #[arg(short = 'j', long)]
    pub json: bool,
}

/// The most workers that are asked for.
const WORKERS_MAX: u32 = 100_000;

/// The most servers that are added.
const SERVERS_MAX: u32 = 1_000;

/// The fastest link, bits per second.
const RATE_MAX: f64 = 1e15;

fn positive(text: &str, most: f64) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= most);
    number.ok_or_else(|| format!("'{text}' is not a number above 0 and at most {most}"))
}

fn whole(text: &str, most: u32) -> Result<u32, String> {
    let number = text.trim().parse::<u32>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a whole number from 1 to {most}"))
}

/// A value, and the name before it if there is one.
fn maybe_named(text: &str) -> Result<(Option<String>, &str), String> {
    match text.rsplit_once('=') {
        Some(("", value)) => Err(format!("there is no name before '={value}'; write one, or {value} alone")),
        Some((name, value)) => Ok((Some(name.to_owned()), value)),
        None => Ok((None, text)),
    }
}

/// More users than one host could make, which a prediction needs not.
fn users(text: &str) -> Result<u32, String> {
    let number = text.trim().parse::<u32>().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a whole number of users from 1 to 1000000"))
}

fn cpus(text: &str) -> Result<(String, f64), String> {
    let (name, value) = values::named(text)?;
    Ok((name, positive(&value, 4_096.0)?))
}

fn workers(text: &str) -> Result<(String, u32), String> {
    let (name, value) = values::named(text)?;
    Ok((name, whole(&value, WORKERS_MAX)?))
}

fn servers(text: &str) -> Result<(Option<String>, u32), String> {
    let (name, value) = maybe_named(text)?;
    Ok((name, whole(value, SERVERS_MAX)?))
}

/// A change in per cent, as a factor.
fn demand(text: &str) -> Result<(String, f64), String> {
    let shape =
        || format!("'{text}' is not a change of a demand; write it in per cent, such as 'nginx.cpu=-30%'");
    let (name, value) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(shape)?;
    let signed = value.trim().strip_suffix('%').filter(|value| value.starts_with(['+', '-']));
    let percent = signed.and_then(|value| value.parse::<f64>().ok()).ok_or_else(shape)?;
    if !(-100.0 < percent && percent <= 10_000.0) {
        return Err(format!("'{value}' takes away all there is, or adds more than a hundred times as much"));
    }
    Ok((name.to_owned(), 1.0 + percent / 100.0))
}

fn delay(text: &str) -> Result<(String, f64), String> {
    let shape =
        || format!("'{text}' is not a change of a delay; write it with its sign, such as accounts=+5ms");
    let (name, value) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(shape)?;
    let (sign, value) = match (value.strip_prefix('+'), value.strip_prefix('-')) {
        (Some(value), _) => (1.0, value),
        (_, Some(value)) => (-1.0, value),
        _ => return Err(shape()),
    };
    Ok((name.to_owned(), sign * values::duration(value)?.as_secs_f64() * 1e6))
}

/// A rate as `tc` writes it: `100Mbit`, `1Gbit`.
fn link(text: &str) -> Result<(Option<String>, f64), String> {
    let (name, rate) = maybe_named(text)?;
    let lower = rate.trim().to_ascii_lowercase();
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
    let unit = units.into_iter().find_map(|(unit, bits)| Some((lower.strip_suffix(unit)?, bits)));
    let (number, bits) = unit.ok_or_else(|| {
        format!("'{rate}' is not the rate of a link; write it in bits per second, such as 100Mbit or 1Gbit")
    })?;
    let bits_per_s = number.trim().parse::<f64>().ok().map(|number| number * bits);
    let bits_per_s = bits_per_s.filter(|bits_per_s| (1.0..=RATE_MAX).contains(bits_per_s));
    let most = RATE_MAX / 1e9;
    Ok((name, bits_per_s.ok_or_else(|| format!("'{rate}' is not a rate from 1bit to {most}Gbit"))?))
}

/// Shares of kinds of request: `read=90%,write=10%`. A name may hold commas and equal signs, as paths do.
#[derive(Debug, Clone, PartialEq)]
pub struct MixFlag(pub Vec<MixShare>);

impl FromStr for MixFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            format!(
                "'{text}' is no mix; write shares of kinds of request in per cent, such as \
                 'read=90%,write=10%'"
            )
        };
        let (mut shares, mut part) = (Vec::new(), String::new());
        for piece in text.split(',') {
            part.push_str(piece);
            match part.trim_end().strip_suffix('%') {
                Some(of) => {
                    shares.push(mix_share(of).ok_or_else(shape)?);
                    part.clear();
                }
                None => part.push(','),
            }
        }
        if part.is_empty() { Ok(Self(shares)) } else { Err(shape()) }
    }
}

/// A name and a number of per cent, such as `read=90`.
fn mix_share(text: &str) -> Option<MixShare> {
    let (name, percent) = text.rsplit_once('=')?;
    let percent: f64 = percent.trim().parse().ok()?;
    let is_share = (0.0..=100.0).contains(&percent) && !name.trim().is_empty();
    is_share.then(|| MixShare { name: name.trim().to_owned(), share: percent / 100.0 })
}

/// What is to be reached: `p95<=50ms at 500 users`.
#[derive(Debug, Clone)]
pub struct GoalFlag(pub Goal);

impl FromStr for GoalFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            let percentiles = PERCENTILES.map(|one| one.name).join(", ");
            format!(
                "'{text}' is not a goal; write throughput>=RATE, users>=N or NAME<=TIME, NAME one of mean, {percentiles}, and for \
                 which load: 'p95<=50ms at 500 users'"
            )
        };
        let (before, at) = match text.split_once(" at ") {
            Some((before, at)) => {
                let number = at.trim().trim_end_matches("users").trim_end_matches("user");
                (before, Some(users(number)?))
            }
            None => (text, None),
        };
        let (name, bound, value) = match (before.split_once(">="), before.split_once("<=")) {
            (Some((name, value)), _) => (name.trim(), Bound::AtLeast, value.trim()),
            (_, Some((name, value))) => (name.trim(), Bound::AtMost, value.trim()),
            _ => return Err(shape()),
        };
        let figure = figure(name).ok_or_else(shape)?;
        if figure == GoalFigure::Users && at.is_some() {
            return Err(format!(
                "'{text}': N* is itself a number of users: write 'users>=N' alone, or give another figure"
            ));
        }
        let value = match figure {
            GoalFigure::Throughput | GoalFigure::Users => positive(value, 1e12)?,
            _ => values::duration(value)?.as_secs_f64() * 1e6,
        };
        let times = matches!(figure, GoalFigure::Mean | GoalFigure::Quantile { .. });
        if times != (bound == Bound::AtMost) {
            return Err(shape());
        }
        Ok(Self(Goal { text: text.to_owned(), figure, bound, value, users: at }))
    }
}

fn figure(name: &str) -> Option<GoalFigure> {
    match name {
        "throughput" | "X" => Some(GoalFigure::Throughput),
        "users" => Some(GoalFigure::Users),
        "mean" => Some(GoalFigure::Mean),
        name => PERCENTILES
            .iter()
            .find(|one| one.name == name)
            .map(|one| GoalFigure::Quantile { percentile: one.name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes_are_read_with_their_units() {
        assert_eq!(link("1Gbit"), Ok((None, 1e9)));
        assert_eq!(link("eth0=2.5mbit"), Ok((Some("eth0".into()), 2.5e6)));
        assert_eq!(delay("db=+5ms"), Ok(("db".into(), 5_000.0)));
        assert_eq!(delay("127.0.0.1:90=-1ms"), Ok(("127.0.0.1:90".into(), -1_000.0)));
        let (of, factor) = demand("app.cpu=-30%").expect("a change");
        assert!(of == "app.cpu" && (factor - 0.7).abs() < 1e-12);
        assert_eq!(servers("2"), Ok((None, 2)));
        assert_eq!(servers("app=1000"), Ok((Some("app".into()), 1_000)));
        for wrong in ["app.cpu=30%", "app.cpu=-100%", "=-3%", "app.cpu=-3"] {
            assert!(demand(wrong).is_err(), "{wrong}");
        }
        assert!(delay("db=5ms").is_err() && link("fast").is_err() && link("-1bit").is_err());
    }

    #[test]
    fn what_is_too_much_is_refused_and_not_cut() {
        assert_eq!(link("100000000bit"), Ok((None, 1e8)));
        assert_eq!(link("1000000Gbit"), Ok((None, 1e15)));
        for wrong in ["1000001Gbit", "1000000001Mbit", "0.5bit", "0Gbit", "infbit", "nanbit", "=1Gbit"] {
            assert!(link(wrong).is_err(), "{wrong}");
        }
        let said = servers("5000").expect_err("too many");
        assert!(said.contains("'5000' is not a whole number from 1 to 1000"), "{said}");
        for wrong in ["app=1001", "=2", "0", "app="] {
            assert!(servers(wrong).is_err(), "{wrong}");
        }
        assert!(workers("app=100000").is_ok() && workers("app=100001").is_err());
    }

    #[test]
    fn mixes_are_read_as_shares_of_named_kinds() {
        let mix = |text: &str| {
            let shares = text.parse::<MixFlag>().map(|mix| mix.0).unwrap_or_default();
            shares.into_iter().map(|of| (of.name, of.share)).collect::<Vec<_>>()
        };
        let named = |name: &str, share: f64| (name.to_owned(), share);
        assert_eq!(mix("read=90%,write=10%"), [named("read", 0.9), named("write", 0.1)]);
        assert_eq!(mix(" read = 12.5% , write=0%"), [named("read", 0.125), named("write", 0.0)]);
        assert_eq!(mix("GET /?a=1,2=40%"), [named("GET /?a=1,2", 0.4)]);
        for wrong in ["", "read", "read=90", "read=%", "=90%", "read=-1%", "read=101%", "read=90%,"] {
            let said = wrong.parse::<MixFlag>().expect_err(wrong);
            assert!(said.contains("in per cent, such as"), "{said}");
        }
    }

    #[test]
    fn goals_are_read_with_the_load_they_are_for() {
        let goal: GoalFlag = "p95<=50ms at 500 users".parse().expect("a goal");
        assert_eq!((goal.0.bound, goal.0.value, goal.0.users), (Bound::AtMost, 50_000.0, Some(500)));
        assert_eq!(goal.0.figure, GoalFigure::Quantile { percentile: "p95".into() });
        let goal: GoalFlag = "throughput>=2000".parse().expect("a goal");
        assert_eq!((goal.0.figure, goal.0.users), (GoalFigure::Throughput, None));
        for wrong in ["p99>=50ms", "p97<=50ms", "mean<=50", "throughput<=3", "mean<=5ms at x users"] {
            assert!(wrong.parse::<GoalFlag>().is_err(), "{wrong}");
        }
        assert!("users>=50".parse::<GoalFlag>().is_ok());
        let at = "users>=50 at 10 users".parse::<GoalFlag>().expect_err("N* has no number of users");
        assert!(at.contains("'users>=N' alone"), "{at}");
        let unknown = "p97<=50ms".parse::<GoalFlag>().expect_err("no such percentile");
        assert!(unknown.contains("mean, p50, p90, p95, p99, p999"), "{unknown}");
    }
}
