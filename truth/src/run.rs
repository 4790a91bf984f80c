//! Runs a case: starts its servers from the back to the front, has nstar judge them, and ends them.

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    Trouble,
    case::Case,
    far::{Behind, Generators, Host, Hosts},
    grade::Said,
    place::Place,
    process::{Process, make_folder},
    stacks::{self, Address, Running},
    tier::Tier,
};

/// How long a sweep may take, generously.
const SWEEP_LIMIT: Duration = Duration::from_secs(600);
/// Time between two looks at whether a sweep has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The servers of a case, running. Dropping them ends the front first.
pub struct Servers {
    url: String,
    _neighbour: Option<Process>,
    tiers: Vec<(Running, Place)>,
    folder: TempDir,
}

impl Servers {
    /// Starts the servers of a case, and what runs beside them.
    ///
    /// # Errors
    /// Where a program is missing or does not start.
    pub fn start(case: &Case) -> Result<Self, Trouble> {
        Self::start_at(Ipv4Addr::LOCALHOST, case)
    }

    /// The same on another host.
    fn start_on(host: &Host, case: &Case) -> Result<Self, Trouble> {
        let servers = host.within(|| Self::start_at(host.address(), case))?;
        if let Some((_, place)) = servers.tiers.first() {
            host.lead_to(&place.address)?;
        }
        Ok(servers)
    }

    /// The same with each tier on a host of its own.
    pub(crate) fn start_across(hosts: &Hosts, case: &Case) -> Result<Self, Trouble> {
        let mut servers = Self::none()?;
        for (number, tier) in case.tiers.iter().enumerate().rev() {
            hosts.within(number, |address| servers.add_before(tier, address))?;
        }
        servers.complete(case)
    }

    /// Starts them on the host that this thread is on, the front at one of its addresses.
    fn start_at(front: Ipv4Addr, case: &Case) -> Result<Self, Trouble> {
        let mut servers = Self::none()?;
        for (number, tier) in case.tiers.iter().enumerate().rev() {
            servers.add_before(tier, if number == 0 { front } else { Ipv4Addr::LOCALHOST })?;
        }
        servers.complete(case)
    }

    /// No servers yet: tiers are added from the back to the front.
    fn none() -> Result<Self, Trouble> {
        let folder = TempDir::new().map_err(Trouble::io("make a folder"))?;
        Ok(Self { url: String::new(), _neighbour: None, tiers: Vec::new(), folder })
    }

    /// Starts the tier before those that run, at an address of the host that this thread is on.
    fn add_before(&mut self, tier: &Tier, ip: Ipv4Addr) -> Result<(), Trouble> {
        let below = make_folder(self.folder.path(), &self.tiers.len().to_string())?;
        let upstream = self.tiers.first().map(|(running, _)| &running.address);
        let place = Place::make(&tier.surroundings, ip)?;
        let running = stacks::start(tier, &place, &below, upstream)?;
        self.tiers.insert(0, (running, place));
        Ok(())
    }

    /// Starts what runs beside the tiers, once all of them run.
    fn complete(mut self, case: &Case) -> Result<Self, Trouble> {
        let Some(Address::Http(address)) = self.tiers.first().map(|(running, _)| &running.address) else {
            return Err(Trouble::Case(format!("the front of {} does not speak HTTP", case.name)));
        };
        self.url = format!("http://{address}/");
        let beside = case.beside.as_ref();
        self._neighbour = beside.map(|what| disturb(what, self.folder.path())).transpose()?;
        Ok(self)
    }

    /// Where the front takes requests.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // The front first: it has requests under way behind. Its place goes after it.
        while !self.tiers.is_empty() {
            let (running, place) = self.tiers.remove(0);
            drop(running);
            drop(place);
        }
    }
}

fn disturb(what: &str, folder: &Path) -> Result<Process, Trouble> {
    let words = [stacks::own_program()?, "disturb".into(), what.to_owned()];
    Process::start(&words, &make_folder(folder, "neighbour")?, &[])
}

/// Who judges, and how.
pub struct Judge<'a> {
    /// The program.
    pub nstar: &'a Path,
    /// Arguments of every sweep.
    pub arguments: &'a [&'a str],
    /// Where the servers stand, if that is not this host.
    pub behind: Option<Behind>,
    /// Where the load is made, if each tier stands on a host of its own.
    pub across: Option<Generators>,
    /// Where run files and reports go, if they are wanted.
    pub keep: Option<&'a Path>,
    /// Set once a signal says to stop.
    pub stop: &'a AtomicBool,
}

/// Has nstar judge a case.
///
/// # Errors
/// Where a server does not start, or nstar does not end with a verdict.
pub fn judge(case: &Case, by: &Judge) -> Result<Said, Trouble> {
    // The servers, made after their hosts, end before them.
    if let Some(generators) = by.across {
        let hosts = Hosts::make(case, generators, by.nstar)?;
        let servers = Servers::start_across(&hosts, case)?;
        return sweep(hosts.apart(by.nstar), &hosts.arguments(), &servers, case, by);
    }
    let host = by.behind.map(|Behind::Ssh| Host::make(by.nstar)).transpose()?;
    match &host {
        Some(host) => {
            let servers = Servers::start_on(host, case)?;
            sweep(host.apart(by.nstar), &host.observe(), &servers, case, by)
        }
        None => sweep(Command::new(by.nstar), &[], &Servers::start(case)?, case, by),
    }
}

/// Has a command of nstar with further arguments sweep the servers of a case.
fn sweep(
    mut nstar: Command,
    arguments: &[String],
    servers: &Servers,
    case: &Case,
    by: &Judge,
) -> Result<Said, Trouble> {
    let own = TempDir::new().map_err(Trouble::io("make a folder"))?;
    let file = by.keep.unwrap_or(own.path()).join(format!("{}.json", case.name));
    // What an earlier run left there must not be taken for this one's.
    if file.exists() {
        fs::remove_file(&file).map_err(Trouble::io(format!("remove {}", file.display())))?;
    }
    let errors = own.path().join("errors");
    let output = fs::File::create(&errors).map_err(Trouble::io("make a file"))?;
    let child = nstar
        .args(["sweep", "--no-progress"])
        .args(arguments)
        .args(case.target(servers.url(), own.path())?)
        .arg("-o")
        .arg(&file)
        .args(by.arguments)
        .args(&case.nstar)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .map_err(Trouble::io(format!("run {}", by.nstar.display())))?;
    wait(child, by.stop)?;
    if !file.exists() {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        return Err(Trouble::Failed { program: "nstar sweep".into(), said });
    }
    read(&file)
}

/// Reads what was said from a run file.
fn read(file: &Path) -> Result<Said, Trouble> {
    let text = fs::read_to_string(file).map_err(Trouble::io(format!("read {}", file.display())))?;
    let run =
        serde_json::from_str(&text).map_err(|error| Trouble::Case(format!("{}: {error}", file.display())))?;
    Said::read(&run)
}

/// Reads what was said of a case from the folder where its run file was kept; `None` if there is none.
///
/// # Errors
/// Where the file is no run file.
pub fn kept(case: &Case, folder: &Path) -> Result<Option<Said>, Trouble> {
    let file = folder.join(format!("{}.json", case.name));
    file.exists().then(|| read(&file)).transpose()
}

fn wait(mut child: Child, stop: &AtomicBool) -> Result<(), Trouble> {
    let deadline = Instant::now() + SWEEP_LIMIT;
    while matches!(child.try_wait(), Ok(None)) {
        let late = Instant::now() > deadline;
        if late || stop.load(Relaxed) {
            // Both fail only where it has just ended.
            let _ = child.kill();
            let _ = child.wait();
            let failed = Trouble::Failed { program: "nstar sweep".into(), said: "it did not end".into() };
            return Err(if late { failed } else { Trouble::Interrupted });
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
