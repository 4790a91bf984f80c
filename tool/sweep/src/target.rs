//! The server under test, as seen from this host: found from its port, watched while it is driven.

use std::{
    cell::{Ref, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    sync::atomic::AtomicBool,
    time::Duration,
};

use analysis::{
    conclude::OutOfSight,
    counters::{Counters, DatabaseSample, Process, Role, ThreadLook},
    resources::{Replacement, Usage, replaced, usage},
    run::{AgentTrouble, Measurement, Processes, ServerUnwatched, SocketsUnread},
};
use load::{ProbeReport, RequestTotal, Scenario};
use observe::{KernelPaths, ObserveError, SpeedProbe, Topology, Watcher, monotonic_us};

use crate::doctor;
use crate::elsewhere::Elsewhere;
use crate::progress::{Event, Listener};

/// Time between samples: short against a step, long against the cost of a sample.
const SAMPLE_PERIOD: Duration = Duration::from_millis(250);

/// The same, microseconds.
const PERIOD_US: u64 = 250_000;

/// Connections of the last so many microseconds count when it is looked which addresses tiers call.
const RECENT_US: u64 = 3_000_000;

/// How long to watch before the load: enough to tell a loop that polls from a server that waits.
const REST: Duration = Duration::from_millis(300);

/// The statuses of responses that send the client elsewhere (RFC 9110 section 15.4): 304 is of what the client has.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Reports how the servers answered the first requests: an unexpected status is told, and counted later. So is a redirect
/// that nobody asked for: it counts as success, and is not what a user means to measure.
pub(crate) fn first_requests(
    probes: &[ProbeReport],
    scenario: &Scenario,
    listener: &mut dyn Listener,
) -> FirstRequests {
    let server = |probe: &ProbeReport| (probes.len() > 1).then_some(probe.address);
    if let Some(probe) = probes.iter().find(|probe| !probe.status_expected) {
        listener.on(&Event::UnexpectedStatus { server: server(probe), status: probe.status });
    }
    if let Some(probe) = probes.iter().find(|probe| probe.nothing_to_keep) {
        listener.on(&Event::NothingToKeep { server: server(probe) });
    }
    let is_redirect = |probe: &&ProbeReport| {
        REDIRECTS.contains(&probe.status) && scenario.takes_usual_statuses(probe.request)
    };
    let redirected = probes.iter().find(is_redirect);
    if let Some(probe) = redirected {
        listener.on(&Event::Redirected { server: server(probe), status: probe.status });
    }
    let redirected = redirected.map(|probe| probe.status);
    let request = probes.first().map_or(0, |probe| probe.request);
    let expected = probes.iter().filter(|probe| probe.status_expected).count();
    FirstRequests { request, asked: probes.len() as u64, expected: expected as u64, redirected }
}

/// Results of the first request to each server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstRequests {
    /// The request of the scenario.
    request: usize,
    /// How many servers were asked.
    asked: u64,
    /// How many of them answered as expected.
    expected: u64,
    /// The status of a redirect that nobody asked for.
    pub(crate) redirected: Option<u16>,
}

impl FirstRequests {
    /// Adds them to the totals of the load.
    pub(crate) fn count(self, totals: &mut [RequestTotal]) {
        if let Some(total) = totals.get_mut(self.request) {
            total.begun = total.begun.saturating_add(self.asked);
            total.completed = total.completed.saturating_add(self.expected);
        }
    }
}

/// Watches the processes behind the addresses, here and wherever else somebody observes; if they cannot be seen here, this
/// host and the generator alone.
#[derive(Debug)]
pub(crate) struct Watch {
    watcher: Watcher,
    elsewhere: RefCell<Elsewhere>,
    speed: Option<SpeedProbe>,
    /// The reason why the server's processes cannot be watched, if they cannot.
    pub(crate) unwatched: Option<ServerUnwatched>,
    /// The namespaces of which the kernel did not tell all at the start.
    unread: Vec<SocketsUnread>,
}

impl Watch {
    /// Finds the processes that serve the addresses, and begins to watch them, and those beside this one that make the load.
    pub(crate) fn start(
        (addresses, generators): (&[SocketAddr], Vec<u32>),
        mut elsewhere: Elsewhere,
    ) -> Result<Self, ObserveError> {
        let (topology, unwatched) = match observe::find_all(addresses) {
            Ok(topology) => (topology, None),
            Err(error) => {
                let first = addresses.first().copied().unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
                (Topology::unseen(first), Some(unwatched(error)?))
            }
        };
        let topology = topology.with_generators(generators);
        let unread = topology.sockets_unread();
        let watcher = Watcher::start(KernelPaths::default(), topology, SAMPLE_PERIOD)?;
        let found = elsewhere.watch(addresses, &here(&watcher));
        let unwatched = unwatched.filter(|_| !found);
        Ok(Watch { watcher, elsewhere: RefCell::new(elsewhere), speed: None, unwatched, unread })
    }

    /// Says at the start of which namespaces less is known than of others.
    pub(crate) fn tell_what_is_unread(&self, listener: &mut dyn Listener) {
        let here = OutOfSight { sockets: self.unread.clone(), ..OutOfSight::default() };
        for OutOfSight { on, sockets, .. } in [here].into_iter().chain(self.elsewhere.borrow().out_of_sight())
        {
            if let Some((first, others)) = sockets.split_first() {
                let (reason, others) = (first.clone(), others.len() as u64);
                listener.on(&Event::SocketsUnread { on, reason, others });
            }
        }
    }

    /// Says before the load which settings matter most, on this host, where it may be made, and on others.
    pub(crate) fn advise(&self, makes_load: bool, interrupt: &AtomicBool, listener: &mut dyn Listener) {
        let here = (self.watcher.topology(), makes_load);
        for (on, fault) in doctor::glance(here, &self.elsewhere.borrow(), interrupt) {
            listener.on(&Event::Advice { on, fault });
        }
    }

    /// What each observer may not see of its host, tiers found meanwhile among it.
    pub(crate) fn out_of_sight(&self) -> Vec<OutOfSight> {
        let topology = self.watcher.topology();
        let now = topology.sockets_unread();
        let sockets = if now.len() > self.unread.len() { now } else { self.unread.clone() };
        let elsewhere = self.elsewhere.borrow();
        let mut tiers = topology.tiers_out_of_sight();
        tiers.retain(|address| !elsewhere.is_served_here(address));
        let here = OutOfSight { on: None, sockets, tiers };
        [here].into_iter().chain(elsewhere.out_of_sight()).collect()
    }

    /// Also times these processors, if that is possible.
    pub(crate) fn timing(self, processors: &[u32]) -> Self {
        Watch { speed: SpeedProbe::start(processors).ok(), ..self }
    }

    /// How fast the processors that are timed were within a window of the monotonic clock, microseconds.
    pub(crate) fn processor_speed(&self, (start_us, end_us): (u64, u64)) -> Option<f64> {
        self.speed.as_ref()?.between(start_us, end_us)
    }

    /// Watches for a moment before the load. Returns the start and the end of it, microseconds of the monotonic clock.
    pub(crate) fn rest(&self) -> (u64, u64) {
        let start_us = monotonic_us();
        self.sample();
        std::thread::sleep(REST);
        self.sample();
        (start_us, monotonic_us())
    }

    /// Has what tiers call, and nobody was seen to serve, looked for wherever else somebody observes. It takes a moment where
    /// there is something new to look for, so it is not for a time that is measured.
    pub(crate) fn follow(&self) {
        if self.elsewhere.borrow().is_empty() {
            return;
        }
        let now_us = monotonic_us();
        let recent = self.covering((now_us.saturating_sub(RECENT_US), now_us.saturating_sub(PERIOD_US)));
        self.elsewhere.borrow_mut().follow(&recent);
    }

    /// The servers and tiers that took the place of others that ended, beside this process and elsewhere.
    pub(crate) fn replaced(&self) -> Vec<Replacement> {
        let here = self.watcher.read(replaced);
        here.into_iter().chain(self.elsewhere.borrow().replaced()).collect()
    }

    /// Takes a sample now, so that one lies at the border of a measurement.
    pub(crate) fn sample(&self) {
        self.elsewhere.borrow().sample();
        self.watcher.sample_now();
    }

    /// What observes elsewhere.
    pub(crate) fn elsewhere(&self) -> Ref<'_, Elsewhere> {
        self.elsewhere.borrow()
    }

    /// The tiers that serve now and are not beside this process.
    pub(crate) fn tiers_elsewhere(&self) -> Vec<Processes> {
        let now_us = monotonic_us();
        self.elsewhere.borrow().tiers((now_us, now_us))
    }

    /// What observers elsewhere did not tell, each with the name of its host.
    pub(crate) fn agent_troubles(&self) -> Vec<(String, AgentTrouble)> {
        self.elsewhere.borrow().troubles()
    }

    /// The processes behind the addresses, as they are known by now beside this one.
    pub(crate) fn topology(&self) -> Topology {
        self.watcher.topology()
    }

    /// The numbers of the processes that serve now beside this one, by tier.
    pub(crate) fn tiers(&self) -> BTreeMap<(Role, String), Vec<u32>> {
        let now_us = monotonic_us();
        let now = self.covering((now_us, now_us)).pop();
        now.map_or_else(BTreeMap::new, |sample| by_tier(&sample.processes))
    }

    /// Starts or stops closer looks at the threads of the servers.
    pub(crate) fn look_closely(&self, closely: bool) {
        self.elsewhere.borrow().look_closely(closely);
        self.watcher.look_closely(closely);
    }

    /// The use of every resource that was watched while something was measured, also by kind of request, with what closer looks
    /// at threads saw then, and what went on while nothing was answered.
    pub(crate) fn usage(&self, measurement: &Measurement, database: &[DatabaseSample]) -> Usage {
        let (window, windows) = (measurement.window, measurement.all_windows());
        let here = usage(&self.covering(window), database, window).with_looks(&self.looks(&windows));
        let here = here.with_hops(&measurement.counted_windows(), |window| self.covering(window));
        let here = with_silences(here, measurement, |window| self.covering(window));
        let here = here.with_kinds(&measurement.kinds, |window| self.covering(window));
        let elsewhere = self.elsewhere.borrow_mut().usages(&self.covering(window), measurement);
        let all = elsewhere.into_iter().fold(here, Usage::joined_with);
        Usage { hops: all.hops.joined(), ..all }
    }

    /// The use of every resource from this time of the monotonic clock to the latest sample; `None` where somebody observes
    /// elsewhere, who would have to be asked and waited for. Takes no sample: more often than once a period they would cost more
    /// than watching may.
    pub(crate) fn glance(&self, since_us: u64) -> Option<Usage> {
        if !self.elsewhere.borrow().is_empty() {
            return None;
        }
        let (until_us, seen) = self.watcher.read(|samples| {
            let until_us = samples.last().map_or(0, |sample| sample.at_us);
            (until_us, observe::covering(samples, (since_us, until_us)).to_vec())
        });
        (since_us < until_us)
            .then(|| usage(&seen, &[], (since_us, until_us)))
            .filter(|usage| usage.elapsed_us > 0.0)
    }

    /// The looks at threads within windows of the monotonic clock, microseconds.
    fn looks(&self, windows: &[(u64, u64)]) -> Vec<ThreadLook> {
        windows.iter().flat_map(|(start_us, end_us)| self.watcher.looks_between(*start_us, *end_us)).collect()
    }

    /// The samples that cover a window of the monotonic clock, microseconds.
    fn covering(&self, (start_us, end_us): (u64, u64)) -> Vec<Counters> {
        self.watcher.between(start_us, end_us)
    }
}

/// The same with what went on while nothing was answered, by the samples that cover each window.
pub(crate) fn with_silences(
    usage: Usage,
    measurement: &Measurement,
    covering: impl Fn((u64, u64)) -> Vec<Counters>,
) -> Usage {
    let silences = &measurement.silences;
    if silences.is_empty() {
        return usage;
    }
    let windows = measurement.all_windows();
    let counters: Vec<Counters> = windows.iter().flat_map(|window| covering(*window)).collect();
    usage.with_silences(&counters, &windows, silences)
}

/// What is seen beside this process now.
fn here(watcher: &Watcher) -> Vec<Counters> {
    watcher.sample_now();
    let now_us = monotonic_us();
    watcher.between(now_us, now_us).pop().into_iter().collect()
}

/// The reason why the processes behind the addresses cannot be seen.
///
/// # Errors
/// Errors that would keep this host and the generator from being watched too.
fn unwatched(error: ObserveError) -> Result<ServerUnwatched, ObserveError> {
    Ok(match error {
        ObserveError::NotLocal(address) => ServerUnwatched::NotLocal { address },
        ObserveError::NotListening(address) => ServerUnwatched::NotListening { address },
        ObserveError::TranslationUnread(address) => ServerUnwatched::TranslationUnread { address },
        ObserveError::PermissionDenied(address) => ServerUnwatched::PermissionDenied { address },
        ObserveError::NoOwner(address) => ServerUnwatched::NoOwner { address },
        ObserveError::OwnProcess(address) => ServerUnwatched::OwnProcess { address },
        ObserveError::Unreadable { path, source } => {
            ServerUnwatched::Unreadable { path: path.display().to_string(), os_error: source.raw_os_error() }
        }
        ObserveError::Thread(_) => return Err(error),
    })
}

/// The numbers of processes that serve, by role and name.
pub(crate) fn by_tier(processes: &[Process]) -> BTreeMap<(Role, String), Vec<u32>> {
    let mut tiers = BTreeMap::<(Role, String), Vec<u32>>::new();
    for process in processes.iter().filter(|process| process.role != Role::Generator) {
        tiers.entry((process.role, process.name.clone())).or_default().push(process.pid);
    }
    tiers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elsewhere::Observe;

    /// Each look at a run of many hours took a sample, though samples were far apart by then.
    #[test]
    fn a_glance_reads_the_samples_that_are_there_and_takes_none() {
        let topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        let watcher = Watcher::start(KernelPaths::default(), topology, Duration::from_secs(60)).unwrap();
        let elsewhere = Observe::default().start(&AtomicBool::new(false)).unwrap();
        let (unwatched, unread) = (None, Vec::new());
        let watch = Watch { watcher, elsewhere: RefCell::new(elsewhere), speed: None, unwatched, unread };
        let begun_us = monotonic_us();
        watch.sample();
        watch.sample();
        std::thread::sleep(2 * SAMPLE_PERIOD);
        let taken = || watch.watcher.read(<[Counters]>::len);
        let before = taken();
        assert!(watch.glance(begun_us).is_some(), "there are two samples");
        assert_eq!(taken(), before);
    }
}
