//! Values that appear on the command line: durations, numbers of users, processors.

use std::{ffi::OsStr, fmt::Display, marker::PhantomData, str::FromStr, time::Duration};

use analysis::search::UsersRange;
use clap::{
    Arg, Command,
    builder::{PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};
use load::{Connections, Sizes, Think};

use crate::exit::Failure;

/// The most users a command accepts: more than one host's local ports allow to one server address.
pub const USERS_MAX: u32 = 60_000;

/// Parses sizes of generated bodies: `1MB`, or `100KB,1MB`.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    text.parse().map_err(|error: load::SizeError| error.to_string())
}

/// Parses a connection policy: `kept` or `per-request`.
pub fn connections() -> impl TypedValueParser<Value = Connections> {
    PossibleValuesParser::new(Connections::ALL.map(Connections::name))
        .map(|name| Connections::named(&name).unwrap_or_default())
}

/// Parses a duration with its unit: `500us`, `20ms`, `5s`, `2m`, `1h`, `1m 30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number and a unit, such as 500ms, 5s or 2m"))?;
    if parsed.is_zero() { Err("must be longer than 0".into()) } else { Ok(parsed) }
}

/// Parses a duration that may be `0`, which needs no unit.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// Parses a think time: `100ms` for always the same, `exponential:100ms` for one drawn with this mean, `0` for none.
pub fn think(text: &str) -> Result<Think, String> {
    match text.strip_prefix("exponential:") {
        Some(mean) => duration(mean).map(Think::Exponential),
        None => duration_or_zero(text)
            .map(|time| if time.is_zero() { Think::None } else { Think::Constant(time) }),
    }
}

/// Parses a request's name and its weight: `book=50`.
pub fn weight(text: &str) -> Result<(String, u32), String> {
    let parsed =
        text.rsplit_once('=').and_then(|(name, weight)| Some((name.to_owned(), weight.parse().ok()?)));
    parsed.filter(|(_, weight)| (1..=1_000_000).contains(weight)).ok_or_else(|| {
        "write the request's name and a whole number from 1 to 1000000, such as book=50".into()
    })
}

/// Parses a name and a value: `workers=4`.
pub fn named(text: &str) -> Result<(String, String), String> {
    let parsed = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parsed.ok_or("write a name and its value, such as workers=4")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses one number of users.
pub fn users(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(0) => Err("at least 1 user is needed".into()),
        Ok(n) if n <= USERS_MAX => Ok(n),
        Ok(_) => Err(format!("at most {USERS_MAX} users: one host has no more local ports to one address")),
        Err(_) => Err(format!("'{text}' is not a whole number of users")),
    }
}

/// Parses the users of a sweep: a range `1..600` to be searched, or a list `1,2,4` to be run as it is.
pub fn users_range(text: &str) -> Result<UsersRange, String> {
    if let Some((lo, hi)) = text.split_once("..") {
        let (lo, hi) = (users(lo)?, users(hi.trim_start_matches('='))?);
        return if lo < hi {
            Ok(UsersRange::Range { lo, hi })
        } else {
            Err(format!("the range {lo}..{hi} is empty; write the smaller number first"))
        };
    }
    let mut list = text.split(',').map(users).collect::<Result<Vec<_>, _>>()?;
    list.sort_unstable();
    list.dedup();
    Ok(UsersRange::List(list))
}

/// Processor numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processors(pub Vec<usize>);

impl Processors {
    /// Parses a list as `taskset -c` has it: `0`, `0,2`, `0-3`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a list of processors; write 0, or 0,2, or 0-3");
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| bad())?;
            let last: usize = last.trim().parse().map_err(|_| bad())?;
            if first > last || last >= 4096 {
                return Err(bad());
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Self(numbers))
    }

    /// Keeps the calling thread, and every thread it starts from now on, on these processors; on any where none are
    /// given.
    ///
    /// # Errors
    /// Where the host has none of them.
    pub fn confine(processors: Option<&Self>) -> Result<(), Failure> {
        let Some(Processors(numbers)) = processors else { return Ok(()) };
        sweep::cores::confine(numbers).map_err(|error| {
            Failure::usage(format!("--cpus {numbers:?}: {error}; `nproc --all` tells how many there are"))
        })
    }
}

/// Parses a rate in requests per second.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(format!("'{text}' is not a rate; write requests per second, such as 500")),
    }
}

/// Parses values that may hold a password. What is wrong with one is told without it, where clap's own message would
/// repeat what was typed.
#[derive(Debug)]
pub struct Unshown<T>(PhantomData<fn() -> T>);

impl<T> Default for Unshown<T> {
    fn default() -> Self {
        Unshown(PhantomData)
    }
}

impl<T> Clone for Unshown<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> TypedValueParser for Unshown<T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, flag: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let flag = flag.and_then(Arg::get_long).unwrap_or("value");
        let parsed = value.to_str().ok_or_else(|| "this is not text".to_owned());
        let parsed = parsed.and_then(|text| text.parse::<T>().map_err(|error| error.to_string()));
        parsed.map_err(|error| {
            clap::Error::raw(ErrorKind::ValueValidation, format!("--{flag}: {error}\n")).with_cmd(command)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_searched_and_a_list_is_run_as_it_is() {
        assert_eq!(users_range("1..600"), Ok(UsersRange::Range { lo: 1, hi: 600 }));
        assert_eq!(users_range("4,1,2,2"), Ok(UsersRange::List(vec![1, 2, 4])));
        assert_eq!(users_range("7"), Ok(UsersRange::List(vec![7])));
    }

    #[test]
    fn nonsense_users_are_refused_in_words() {
        for (text, word) in [
            ("0", "at least 1 user"),
            ("9..3", "empty"),
            ("x", "not a whole number"),
            ("1..99999999", "not a whole"),
            ("1..70000", "at most"),
        ] {
            let error = users_range(text).expect_err(text);
            assert!(error.contains(word) || error.contains("at most"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_a_length() {
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("5").expect_err("no unit").contains("unit"));
        assert!(duration("0s").is_err());
        assert_eq!(duration_or_zero("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn think_times_are_constant_unless_said_to_vary() {
        assert_eq!(think("0"), Ok(Think::None));
        assert_eq!(think("100ms"), Ok(Think::Constant(Duration::from_millis(100))));
        assert_eq!(think("exponential:1s"), Ok(Think::Exponential(Duration::from_secs(1))));
        for text in ["exponential:", "exponential:0s", "uniform:1s", "-1s"] {
            assert!(think(text).is_err(), "{text}");
        }
    }

    #[test]
    fn processors_as_taskset_has_them() {
        assert_eq!(Processors::parse("0-2,5"), Ok(Processors(vec![0, 1, 2, 5])));
        assert!(Processors::parse("2-0").is_err());
        assert!(Processors::parse("").is_err());
    }
}
