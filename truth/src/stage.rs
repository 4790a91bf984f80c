//! What a request does in a server, one stage after another.

use std::{fmt, str::FromStr, time::Duration};

/// How long something takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    /// The mean.
    pub mean: Duration,
    /// Whether it is drawn from the exponential distribution; otherwise it is always the same.
    pub exponential: bool,
}

impl Time {
    /// One of them.
    pub(crate) fn draw(self) -> Duration {
        match self.exponential {
            true => self.mean.mul_f64(-(1.0 - fastrand::f64()).ln()),
            false => self.mean,
        }
    }
}

/// One stage of a request. In a case it is written as given here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    /// `delay=40ms`: the request sleeps; none waits for another. `~40ms` is exponential, here and below.
    Delay(Time),
    /// `pool=4x20ms`: one of 4 workers sleeps for it.
    Pool {
        /// How many workers.
        workers: u32,
        /// How long each request keeps one.
        hold: Time,
    },
    /// `lock=10ms`: it sleeps while it holds a mutex. `lock=10ms+5%`: for 5 % longer for each request that waits.
    Lock {
        /// How long it holds the mutex while nobody waits.
        hold: Time,
        /// Growth of the hold for each request that waits, as a share of it.
        growth: f64,
    },
    /// `burn=5ms`: it computes for this much processor time.
    Burn(Duration),
    /// `burn-locked=5ms`: the same while it holds a mutex, so that threads run one at a time.
    BurnLocked(Duration),
    /// `limit=10ms`: one request is let through each 10 ms; the others wait for their turn.
    Limit(Duration),
    /// `collect=80ms/10`: each tenth request makes a collector run for 80 ms, and nobody passes meanwhile.
    Collect {
        /// How long the collector computes.
        pause: Duration,
        /// After how many requests.
        every: u32,
    },
}

impl Stage {
    /// Whether it keeps processors busy.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Burn(_) | Self::BurnLocked(_) | Self::Collect { .. })
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("'{word}' is no stage"))?;
        match name {
            "delay" => Ok(Self::Delay(time(value)?)),
            "pool" => {
                let (workers, hold) =
                    value.split_once('x').ok_or_else(|| format!("'{word}': like pool=4x20ms"))?;
                Ok(Self::Pool { workers: number(workers)?, hold: time(hold)? })
            }
            "lock" => {
                let (hold, growth) = value.split_once('+').unwrap_or((value, "0%"));
                Ok(Self::Lock { hold: time(hold)?, growth: share(growth)? })
            }
            "burn" => Ok(Self::Burn(duration(value)?)),
            "burn-locked" => Ok(Self::BurnLocked(duration(value)?)),
            "limit" => Ok(Self::Limit(duration(value)?)),
            "collect" => {
                let (pause, every) =
                    value.split_once('/').ok_or_else(|| format!("'{word}': like collect=80ms/10"))?;
                Ok(Self::Collect { pause: duration(pause)?, every: number(every)? })
            }
            _ => Err(format!("'{name}' is no stage")),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| format!("{}us", time.as_micros());
        match *self {
            Self::Delay(time) => write!(f, "delay={time}"),
            Self::Pool { workers, hold } => write!(f, "pool={workers}x{hold}"),
            Self::Lock { hold, growth: 0.0 } => write!(f, "lock={hold}"),
            Self::Lock { hold, growth } => write!(f, "lock={hold}+{}%", growth * 100.0),
            Self::Burn(time) => write!(f, "burn={}", us(time)),
            Self::BurnLocked(time) => write!(f, "burn-locked={}", us(time)),
            Self::Limit(time) => write!(f, "limit={}", us(time)),
            Self::Collect { pause, every } => write!(f, "collect={}/{every}", us(pause)),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}us", if self.exponential { "~" } else { "" }, self.mean.as_micros())
    }
}

fn time(text: &str) -> Result<Time, String> {
    let (exponential, mean) = text.strip_prefix('~').map_or((false, text), |mean| (true, mean));
    Ok(Time { mean: duration(mean)?, exponential })
}

/// A duration such as `20ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("'{text}' is no time: {error}"))
}

/// A whole number of one or more.
pub(crate) fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("'{text}' is no whole number above 0"))
}

/// A share such as `5%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    number.map(|number| number / 100.0).ok_or_else(|| format!("'{text}' is no share such as 5%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_written_as_they_are_read() {
        for word in [
            "delay=40000us",
            "delay=~40000us",
            "pool=4x20000us",
            "lock=10000us",
            "lock=10000us+5%",
            "burn=5000us",
            "burn-locked=5000us",
            "limit=10000us",
            "collect=80000us/10",
        ] {
            assert_eq!(word.parse::<Stage>().expect(word).to_string(), word);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (word, complaint) in [
            ("lok=10ms", "'lok' is no stage"),
            ("pool=20ms", "like pool=4x20ms"),
            ("pool=0x20ms", "'0' is no whole number above 0"),
            ("delay=fast", "'fast' is no time"),
            ("lock=10ms+5", "'5' is no share"),
        ] {
            let said = word.parse::<Stage>().expect_err(word);
            assert!(said.contains(complaint), "{word}: {said}");
        }
    }
}
