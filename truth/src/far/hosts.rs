//! A host for each tier of a case, with a link from each to the next. The load comes from here, or from three hosts that join
//! a fleet.

use std::{
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::Command,
};

use clap::ValueEnum;
use tempfile::TempDir;

use super::{Host, apart, network::Link, observe, ssh};
use crate::{
    Trouble,
    case::Case,
    place::Place,
    process::{Process, find, make_folder},
    tier::Surroundings,
};

/// The hosts of tiers by name, in verdicts too, that of the front first.
const TIERS: [&str; 3] = ["front", "back", "db"];
/// The hosts of generators that join a fleet.
const GENERATORS: [&str; 3] = ["gen1", "gen2", "gen3"];

/// The interface at which a tier is called.
const INTERFACE: &str = "eth0";
/// What an agent says once it takes part.
const JOINED: &str = "joined the fleet";

/// Where the load on tiers that have hosts of their own is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generators {
    /// By nstar itself.
    Here,
    /// By three further hosts, whose agents meet on a NATS server.
    Nats,
}

impl Generators {
    /// Why a case cannot be run so; `None` where it can.
    pub(crate) fn obstacle(self, case: &Case) -> Option<&'static str> {
        let first_link = case.tiers.first().and_then(|tier| tier.surroundings.link);
        match self {
            Self::Here => None,
            Self::Nats if case.generator_quota.is_some() => Some("its limit is that of one generator"),
            Self::Nats if first_link.is_some() => Some("each generator has a link of its own to the front"),
            Self::Nats => None,
        }
    }
}

/// The hosts of a case. Dropping them ends what runs there, and removes them.
#[derive(Debug)]
pub(crate) struct Hosts {
    // Each ends before what it needs.
    fleet: Option<Fleet>,
    links: Vec<Link>,
    tiers: Vec<Host>,
    quota: Option<Place>,
    folder: TempDir,
}

/// Generators on hosts of their own.
#[derive(Debug)]
struct Fleet {
    // Each ends before what it needs.
    _members: Vec<Process>,
    _bus: Process,
    _links: Vec<Link>,
    _hosts: Vec<Host>,
    url: String,
}

impl Hosts {
    /// Makes them, with this nstar on each, and links as fast as the case says.
    pub(crate) fn make(case: &Case, generators: Generators, nstar: &Path) -> Result<Self, Trouble> {
        if case.tiers.len() != TIERS.len() {
            return Err(Trouble::Case(format!("{} does not have a tier for each host", case.name)));
        }
        let nats = match generators {
            Generators::Here => None,
            Generators::Nats => Some(find("nats-server", "nats-server")?),
        };
        let folder = TempDir::new().map_err(Trouble::io("make a folder"))?;
        let quota = case.generator_quota.map(limited).transpose()?;
        let tiers = hosts(&TIERS, nstar)?;
        let links = links(case, &tiers)?;
        let others = if nats.is_some() { hosts(&GENERATORS, nstar)? } else { Vec::new() };
        let known: Vec<_> = tiers.iter().chain(&others).map(Host::known).collect();
        ssh::lay_out_client(folder.path(), &known)?;
        let fleet = match (nats, tiers.first(), links.first()) {
            (Some(nats), Some(front), Some(link)) => {
                Some(Fleet::join(nats, others, (front, link.address()), folder.path())?)
            }
            _ => None,
        };
        Ok(Self { fleet, links, tiers, quota, folder })
    }

    /// Does something on the host of a tier, with the address at which it is called.
    pub(crate) fn within<T>(
        &self,
        tier: usize,
        work: impl FnOnce(Ipv4Addr) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        match (self.tiers.get(tier), self.links.get(tier)) {
            (Some(host), Some(link)) => host.within(|| work(link.address())),
            _ => Err(Trouble::Case(format!("there is no host for tier {tier}"))),
        }
    }

    /// A command that learns of the hosts only over links, and whose ssh can log in there.
    pub(crate) fn apart(&self, program: &Path) -> Command {
        apart(self.limits(), self.folder.path(), program)
    }

    /// What a command begins with that may use no more processor time than a generator of the case.
    fn limits(&self) -> &[String] {
        self.quota.as_ref().map_or(&[][..], |place| place.wrapper.as_slice())
    }

    /// The arguments by which nstar observes on each host, and finds the generators.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let observe = self.tiers.iter().flat_map(|host| observe(host.address()));
        let fleet = self.fleet.iter().flat_map(|fleet| {
            ["--fleet".to_owned(), fleet.url.clone(), "--members".to_owned(), GENERATORS.len().to_string()]
        });
        observe.chain(fleet).collect()
    }

    /// The command for a shell by which this nstar judges what the front at this URL answers.
    pub(crate) fn by_hand(&self, nstar: &Path, url: &str) -> String {
        let programs = self.folder.path().join(ssh::PROGRAMS);
        let limits: Vec<String> = self.limits().iter().map(|word| quoted(word)).collect();
        let before = [limits.as_slice(), &super::APART.map(str::to_owned)].concat().join(" ");
        let (nstar, after) = (quoted(&nstar.display().to_string()), self.arguments().join(" "));
        format!("PATH={}:$PATH {before} {nstar} sweep {url} {after}", programs.display())
    }
}

/// A word as a shell reads it. None of those used here holds a single quote.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

/// A place whose processes may use this share of a processor.
fn limited(quota: f64) -> Result<Place, Trouble> {
    let around = Surroundings { quota: Some(quota), ..Surroundings::default() };
    Place::make(&around, Ipv4Addr::LOCALHOST)
}

fn hosts(names: &[&str], nstar: &Path) -> Result<Vec<Host>, Trouble> {
    names.iter().map(|name| Host::make_apart(name, nstar)).collect()
}

/// A link to each tier from the one before, and to the front from here.
fn links(case: &Case, hosts: &[Host]) -> Result<Vec<Link>, Trouble> {
    let (mut links, mut caller) = (Vec::new(), None);
    for (tier, host) in case.tiers.iter().zip(hosts) {
        let link = Link::make(caller, &host.network, INTERFACE)?;
        if let Some(rate) = tier.surroundings.link {
            link.shape(rate)?;
        }
        links.push(link);
        caller = Some(&host.network);
    }
    Ok(links)
}

impl Fleet {
    /// Has hosts join a fleet, and reach the front at its address over links of their own. The bus, run by this program, listens
    /// at the near end of the first one's link, so that nobody beyond this machine reaches it.
    fn join(
        nats: String,
        hosts: Vec<Host>,
        front: (&Host, Ipv4Addr),
        client: &Path,
    ) -> Result<Self, Trouble> {
        let Some(meet) = hosts.first().map(|host| host.network.outside()) else {
            return Err(Trouble::Case("there is nobody to join a fleet".into()));
        };
        let links = lead(&hosts, front, meet)?;
        let port = database_server::free_port().map_err(Trouble::io("find a free port"))?;
        let words = [nats, "-a".to_owned(), meet.to_string(), "-p".to_owned(), port.to_string()];
        let mut bus = Process::start(&words, &make_folder(client, "bus")?, &[])?;
        bus.wait_until(|| TcpStream::connect((meet, port)).is_ok())?;
        let url = format!("nats://{meet}:{port}");
        let members: Result<Vec<_>, _> = hosts.iter().map(|host| member(host, &url, client)).collect();
        Ok(Self { _members: members?, _bus: bus, _links: links, _hosts: hosts, url })
    }
}

/// Links generators to the front, and adds their routes to it and to the bus.
fn lead(hosts: &[Host], front: (&Host, Ipv4Addr), bus: Ipv4Addr) -> Result<Vec<Link>, Trouble> {
    let mut links = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let link = Link::make(Some(&host.network), &front.0.network, &format!("eth{}", number + 1))?;
        host.network.add_route(front.1, link.address())?;
        if host.network.outside() != bus {
            host.network.add_route(bus, host.network.outside())?;
        }
        links.push(link);
    }
    Ok(links)
}

/// An agent on a host, which has joined.
fn member(host: &Host, url: &str, client: &Path) -> Result<Process, Trouble> {
    let to = format!("root@{}", host.address());
    let words = [ssh::program(client).display().to_string(), to, format!("exec nstar agent --join {url}")];
    let mut member = Process::start(&words, &make_folder(host.folder.path(), "member")?, &[])?;
    member.wait_for(JOINED)?;
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    #[test]
    fn every_case_has_a_tier_for_each_host_and_plants_its_bottleneck_on_one() {
        for case in case::on_hosts().expect("the list") {
            assert_eq!(case.tiers.len(), TIERS.len(), "{}", case.name);
            let on = case.on.as_deref().expect("a host");
            assert_eq!(TIERS.contains(&on), case.generator_quota.is_none(), "{}: {on}", case.name);
        }
    }

    #[test]
    fn a_shell_is_given_the_limit_of_the_generator_as_one_word() {
        let words = ["sh", "-c", "echo $$ > /x/cgroup.procs && exec \"$@\"", "sh"].map(quoted);
        assert_eq!(words.join(" "), "sh -c 'echo $$ > /x/cgroup.procs && exec \"$@\"' sh");
    }

    #[test]
    fn what_is_about_one_generator_is_not_run_with_three() {
        let cases = case::on_hosts().expect("the list");
        let left_out = |generators: Generators| {
            let is_left_out = |case: &&Case| generators.obstacle(case).is_some();
            cases.iter().filter(is_left_out).map(|case| case.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(left_out(Generators::Here), [""; 0]);
        assert_eq!(left_out(Generators::Nats), ["generator-quota", "link-generator-front"]);
    }
}
