//! One tier of a server: a program of some stack, and what a request does in it.

use std::{str::FromStr, time::Duration};

use serde::Deserialize;

use crate::stage::{Stage, duration, number, share};

/// A tier, written as `STACK WORD ..`, such as `python name=shop delay=40ms lock=20ms`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Tier {
    /// What it runs on, such as `nginx`.
    pub stack: String,
    /// `name=shop`: what the process is called, where the stack lets it choose.
    pub name: Option<String>,
    /// What a request does here before it goes on to the next tier.
    pub stages: Vec<Stage>,
    /// Where and how it runs.
    pub surroundings: Surroundings,
}

/// What surrounds the requests of a tier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surroundings {
    /// `cpu=0`: the only processor it may use.
    pub cpu: Option<u32>,
    /// `quota=50%`: the share of one processor that its cgroup may use.
    pub quota: Option<f64>,
    /// `namespace`: it runs in a network namespace of its own.
    pub namespace: bool,
    /// `link=20mbit`: bits per second of the link to that namespace.
    pub link: Option<f64>,
    /// `body=50000`: bytes of each response.
    pub body: usize,
    /// `accept=10ms`: the time between two connections that it accepts.
    pub accept: Option<Duration>,
    /// `backlog=16`: places in its listen queue.
    pub backlog: u32,
    /// `forward=4`: the most connections to the next tier, each with one request at a time.
    pub forward: Option<u32>,
    /// `idle=64`: threads that wait for work that never comes.
    pub idle: u32,
    /// `row=50ms`: a database's transactions, which hold the lock of one row for this long.
    pub row: Option<Duration>,
    /// `statement=50ms`: a database's statements, which sleep for this long and wait for nobody.
    pub statement: Option<Duration>,
    /// How its times change while it runs.
    pub course: Option<Course>,
    /// `heavy=4/25%`: one request in four is for `/heavy`, and takes four times as long in every stage.
    pub heavy: Option<Heavy>,
}

/// Requests of a second kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heavy {
    /// What the times of all stages are multiplied by for them.
    pub times: f64,
    /// Their share of all requests, 0 to 1. The weights of the case's scenario have to give the same.
    pub share: f64,
}

impl Heavy {
    /// The mean factor of both kinds.
    pub(crate) fn mean(self) -> f64 {
        1.0 + self.share * (self.times - 1.0)
    }
}

impl FromStr for Heavy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (times, of) = text.split_once('/').ok_or_else(|| format!("'{text}': like heavy=4/25%"))?;
        Ok(Self { times: number(times)?.into(), share: share(of)? })
    }
}

/// How the times of a tier change, from its first request on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Course {
    /// `course=step:20s`: twice as long after 20 s.
    Step(Duration),
    /// `course=drift:30s`: longer and longer, twice as long after 30 s.
    Drift(Duration),
    /// `course=swing:4s`: three times as long in every other 4 s.
    Swing(Duration),
}

impl Course {
    /// The factor of all times at this age.
    pub(crate) fn factor(self, age: Duration) -> f64 {
        match self {
            Self::Step(at) if age < at => 1.0,
            Self::Step(_) => 2.0,
            Self::Drift(doubles) => 1.0 + age.as_secs_f64() / doubles.as_secs_f64(),
            Self::Swing(half) if (age.as_nanos() / half.as_nanos()).is_multiple_of(2) => 1.0,
            Self::Swing(_) => 3.0,
        }
    }

    /// As it is written in a case.
    pub(crate) fn word(self) -> String {
        let (name, time) = match self {
            Self::Step(time) => ("step", time),
            Self::Drift(time) => ("drift", time),
            Self::Swing(time) => ("swing", time),
        };
        format!("course={name}:{}us", time.as_micros())
    }
}

impl FromStr for Course {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, time) = text.split_once(':').ok_or_else(|| format!("'{text}': like step:20s"))?;
        let time = duration(time)
            .ok()
            .filter(|time| !time.is_zero())
            .ok_or_else(|| format!("'{time}' is no time"))?;
        match name {
            "step" => Ok(Self::Step(time)),
            "drift" => Ok(Self::Drift(time)),
            "swing" => Ok(Self::Swing(time)),
            _ => Err(format!("'{name}' is no course")),
        }
    }
}

/// Places in a listen queue, unless a tier says otherwise: enough for every user of a sweep.
const BACKLOG: u32 = 4_096;

impl TryFrom<String> for Tier {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let stack = words.next().ok_or("a tier begins with its stack")?.to_owned();
        let surroundings = Surroundings { backlog: BACKLOG, body: 2, ..Surroundings::default() };
        let mut tier = Self { stack, name: None, stages: Vec::new(), surroundings };
        words.try_for_each(|word| tier.read(word))?;
        Ok(tier)
    }
}

impl Tier {
    fn read(&mut self, word: &str) -> Result<(), String> {
        let around = &mut self.surroundings;
        match word.split_once('=') {
            None if word == "namespace" => around.namespace = true,
            Some(("name", name)) => self.name = Some(name.into()),
            Some(("cpu", cpu)) => {
                around.cpu = Some(cpu.parse().map_err(|_| format!("'{cpu}' is no processor"))?)
            }
            Some(("quota", quota)) => around.quota = Some(share(quota)?),
            Some(("link", rate)) => {
                (around.namespace, around.link) = (true, Some(mbit(rate)?));
            }
            Some(("body", bytes)) => around.body = number(bytes)? as usize,
            Some(("accept", time)) => around.accept = Some(duration(time)?),
            Some(("backlog", places)) => around.backlog = number(places)?,
            Some(("forward", connections)) => around.forward = Some(number(connections)?),
            Some(("idle", threads)) => around.idle = number(threads)?,
            Some(("row", time)) => around.row = Some(duration(time)?),
            Some(("statement", time)) => around.statement = Some(duration(time)?),
            Some(("course", course)) => around.course = Some(course.parse()?),
            Some(("heavy", heavy)) => around.heavy = Some(heavy.parse()?),
            _ => self.stages.push(word.parse()?),
        }
        Ok(())
    }

    /// The stages as words, for the program that carries them out.
    pub(crate) fn words(&self) -> Vec<String> {
        self.stages.iter().map(Stage::to_string).collect()
    }

    /// Whether it keeps processors or a link busy, so that nothing may be measured beside it.
    pub fn is_busy(&self) -> bool {
        self.surroundings.link.is_some() || self.stages.iter().any(|stage| stage.is_busy())
    }
}

/// Bits per second, from `20mbit`.
fn mbit(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("mbit").and_then(|number| number.parse::<f64>().ok());
    number.map(|mega| mega * 1e6).ok_or_else(|| format!("'{text}' is no rate such as 20mbit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_read_from_one_line() {
        let tier: Tier = "python name=shop cpu=0 delay=40ms lock=20ms".parse().expect("a tier");
        assert_eq!((tier.stack.as_str(), tier.name.as_deref()), ("python", Some("shop")));
        assert_eq!(tier.surroundings.cpu, Some(0));
        assert_eq!(tier.words(), ["delay=40000us", "lock=20000us"]);
        assert!("rust nemespace".parse::<Tier>().is_err());
    }

    #[test]
    fn a_second_kind_of_request_is_read_with_its_share() {
        let tier: Tier = "rust pool=4x20ms heavy=4/25%".parse().expect("a tier");
        let heavy = tier.surroundings.heavy.expect("a second kind");
        assert_eq!((heavy.times, heavy.share, heavy.mean()), (4.0, 0.25, 1.75));
        assert!("rust heavy=4".parse::<Tier>().is_err() && "rust heavy=0/25%".parse::<Tier>().is_err());
    }

    #[test]
    fn times_change_as_the_course_says() {
        let course = |text: &str| text.parse::<Course>().expect(text);
        let at = |course: Course, seconds| course.factor(Duration::from_secs(seconds));
        assert_eq!([at(course("step:20s"), 19), at(course("step:20s"), 20)], [1.0, 2.0]);
        assert_eq!([at(course("drift:30s"), 0), at(course("drift:30s"), 30)], [1.0, 2.0]);
        assert_eq!(
            [at(course("swing:4s"), 3), at(course("swing:4s"), 5), at(course("swing:4s"), 9)],
            [1.0, 3.0, 1.0]
        );
        assert_eq!(course("swing:4s").word(), "course=swing:4000000us");
    }
}
