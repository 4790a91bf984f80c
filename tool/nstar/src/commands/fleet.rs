//! Both ends of a fleet: `nstar agent --join`, and the runs that use it.

use std::{env, sync::atomic::AtomicBool};

use ::agent::{Ended, Endpoint, OpenStream, Uses, Ways, protocol};
use ::bus::{
    Address, Bus, Card, Ending, Farewell, Login, Member, Membership, Notice, Patience, Run, Wanted, gather,
    reach,
};
use ::experiment::run::TrialFleet;
use ::sweep::{elsewhere::Observe, fleet::Generators};

use super::uses;
use crate::{
    exit::{self, Exit, Failure},
    flags::{Agent, Fleet},
};

/// Joins a fleet, and does what its runs say for as long as there is a bus.
pub(super) fn join(flags: &Agent, address: &Address) -> Result<Exit, Failure> {
    let (address, login) = flags.login.plan("--join", address)?;
    let bus = Bus::connect(&address, &login, tell).map_err(Failure::failed)?;
    let card = Card { host: ::agent::serve::about().host, version: version(), observes: flags.observe };
    let membership = Membership::join(&bus, &card).map_err(Failure::failed)?;
    let what = if card.observes { "to observe" } else { "to make load" };
    exit::warn(format_args!("joined the fleet at {address} as {} {what}", card.host));
    while let Some(run) = membership.next_run() {
        serve(run, uses(flags));
    }
    Err(Failure::failed(format!("the bus {address} is gone")))
}

/// What becomes of the connection, for whoever reads the log of a member.
fn tell(notice: Notice) {
    match notice {
        Notice::Gone => exit::warn("the connection to the bus broke; it is tried again"),
        Notice::Back => exit::warn("connected to the bus again"),
        Notice::Refused(reason) => exit::warn(format_args!("the bus says: {reason}")),
    }
}

/// Runs an agent for one run.
fn serve(run: Run, uses: Uses) {
    exit::warn(format_args!("{} runs", run.who));
    let (reader, mut writer, end) = run.split();
    let ending = reader.ending();
    let farewell = match ::agent::relay(uses, reader, &mut writer) {
        Ok(Ended::Exited { code, stderr }) => Farewell { code, said: stderr },
        Ok(Ended::Disconnected { reason }) => Farewell { code: None, said: reason },
        Err(error) => Farewell { code: None, said: format!("cannot run an agent: {error}") },
    };
    let why = match ending() {
        Some(Ending::Broken(broken)) => format!(": {broken}"),
        _ if farewell.said.is_empty() => String::new(),
        _ => format!(": {}", farewell.said),
    };
    end(writer, &farewell);
    exit::warn(format_args!("free again{why}"));
}

/// Claims the members of a fleet, if one was asked for: those that make load become generators, the others observers.
pub(super) fn claim(
    flags: &Fleet,
    to: (&mut Generators, &mut Observe),
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    match Sought::of(flags)? {
        Some(sought) => sought.claim(to, interrupt).map_err(Failure::failed),
        None => Ok(()),
    }
}

/// The fleet of an experiment, if one was asked for: its members are claimed for each trial.
pub(super) fn for_each_trial(flags: &Fleet) -> Result<Option<TrialFleet>, Failure> {
    let Some(sought) = Sought::of(flags)? else { return Ok(None) };
    let Some(members) = flags.members else {
        return Err(Failure::usage(
            "--fleet goes with --members in an experiment, so that as many make the load of every variant",
        ));
    };
    let name = format!("{members} of {}", sought.address);
    Ok(Some(TrialFleet::new(name, move |generators, observe, interrupt| {
        sought.claim((generators, observe), interrupt)
    })))
}

/// A fleet that was asked for.
struct Sought {
    address: Address,
    login: Login,
    wanted: Wanted,
}

impl Sought {
    fn of(flags: &Fleet) -> Result<Option<Self>, Failure> {
        let Some(address) = &flags.fleet else {
            flags.login.check_unused("--fleet")?;
            return Ok(None);
        };
        let (address, login) = flags.login.plan("--fleet", address)?;
        let wanted = Wanted { who: who(), version: version(), generators: flags.members.map(usize::from) };
        Ok(Some(Self { address, login, wanted }))
    }

    fn claim(
        &self,
        (generators, observe): (&mut Generators, &mut Observe),
        interrupt: &AtomicBool,
    ) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("--fleet: {error}");
        let patience = Patience::begin(&self.wanted, interrupt);
        let bus = reach(&self.address, &self.login, &patience).map_err(|error| failed(&error))?;
        let members = gather(&bus, &self.wanted, &patience).map_err(|error| failed(&error))?;
        for member in members {
            let to = if member.observes { &mut observe.endpoints } else { &mut generators.endpoints };
            to.push(endpoint(member));
        }
        if generators.endpoints.is_empty() {
            return Err(failed(&"those who joined only observe; `--generator here` makes the load here"));
        }
        Ok(())
    }
}

fn endpoint(member: Member) -> Endpoint {
    let Member { host, reader, writer, .. } = member;
    let ending = reader.ending();
    let ended = move || {
        Some(match ending()? {
            Ending::Farewell(Farewell { code, said }) => Ended::Exited { code, stderr: said },
            Ending::Broken(broken) => Ended::Disconnected { reason: broken.to_string() },
        })
    };
    let ways = Ways { output: Box::new(reader), input: Box::new(writer), ended: Box::new(ended) };
    Endpoint::Open(OpenStream::new(&host, ways))
}

/// What both ends of a stream have to be.
fn version() -> String {
    protocol::greeting().trim().to_owned()
}

/// Who runs, for others who want the same fleet.
fn who() -> String {
    let user = ["LOGNAME", "USER"].into_iter().find_map(|name| env::var(name).ok());
    let user = user.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    format!("{user}@{}", ::agent::serve::about().host)
}
