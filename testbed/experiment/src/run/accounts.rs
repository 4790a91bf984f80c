//! The accounts that an experiment's users sign in as.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use load::{Scenario, Stop};
use sweep::progress::{Event, Listener};

use super::RunError;
use crate::servers::process::System;

/// Makes the accounts through the accounts server, all at the same time.
pub(super) fn make(wanted: u32, server: &System, listener: &mut dyn Listener) -> Result<(), RunError> {
    if wanted == 0 {
        return Ok(());
    }
    listener.on(&Event::Working(format!("making {wanted} accounts")));
    let mut load = server.load(scenario());
    load.timeout = Duration::from_secs(120);
    let mut generator = load::Generator::start(&load)?;
    generator.set_users(wanted)?;
    let ticks = generator.run(Stop::PerUser(1), &AtomicBool::new(false))?;
    let made = ticks.iter().map(|tick| tick.completed).sum();
    if made == u64::from(wanted) { Ok(()) } else { Err(RunError::Accounts { made, wanted }) }
}

/// Makes accounts `user1`, `user2`, .. as the scenarios name them: for systems that run briefly, on loopback only.
fn scenario() -> Scenario {
    const TEXT: &str = include_str!("../accounts.toml");
    Scenario::from_toml(Path::new("accounts.toml"), TEXT).unwrap_or_else(|error| unreachable!("{error}"))
}
