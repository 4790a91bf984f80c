//! What else runs on the host of a case.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use clap::Args;

use crate::{
    Trouble,
    stage::{duration, share},
};

/// How long a neighbour that burns a share of a core takes for one round of working and resting.
const ROUND: Duration = Duration::from_millis(20);

/// `truth disturb`: keeps one processor busy for a part of the time.
#[derive(Debug, Args)]
pub(crate) struct Disturb {
    /// `burn=33%` of one processor, or `job=1s/5s`: one second of every five
    what: String,
}

impl Disturb {
    /// Goes on until it is killed.
    pub(crate) fn run(&self) -> Result<(), Trouble> {
        let (busy, round) = parse(&self.what).map_err(Trouble::Case)?;
        fs::write("/proc/self/comm", "neighbour").map_err(Trouble::io("name this process"))?;
        let mut due = Instant::now();
        loop {
            while due.elapsed() < busy {
                std::hint::spin_loop();
            }
            due += round;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// Reads what a neighbour does from the command line.
///
/// # Errors
/// Where there is no such neighbour.
pub(crate) fn read(what: &str) -> Result<String, String> {
    parse(what).map(|_| what.to_owned())
}

/// The time busy in each round, and the length of a round.
fn parse(what: &str) -> Result<(Duration, Duration), String> {
    match what.split_once('=') {
        Some(("burn", part)) => Ok((ROUND.mul_f64(share(part)?.clamp(0.0, 1.0)), ROUND)),
        Some(("job", times)) => {
            let (busy, round) = times.split_once('/').ok_or_else(|| format!("'{times}': like 1s/5s"))?;
            Ok((duration(busy)?, duration(round)?))
        }
        _ => Err(format!("'{what}' is no neighbour; give burn=33% or job=1s/5s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_a_share_or_a_job() {
        let ms = Duration::from_millis;
        assert_eq!(parse("burn=25%"), Ok((ms(5), ms(20))));
        assert_eq!(parse("job=1s/5s"), Ok((ms(1_000), ms(5_000))));
        assert!(parse("noise").is_err());
    }
}
