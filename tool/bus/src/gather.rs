//! The end of a run: finds the machines that joined a fleet, and claims them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::address::{Address, Login};
use crate::connection::{Bus, BusError, LOOK};
use crate::message::{self, Answer, Claim, Presence, WHO, claim_subject, stream_subjects};
use crate::stream::{Reader, Way, Writer, open};

/// How long members have to answer who is there.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// How long to wait for a bus, and on it for as many as are wanted.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between looking for either.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one has to answer a claim.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);

/// Most members that are told apart.
const MEMBERS_MAX: usize = 1024;

/// What a run wants of a fleet.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Who runs, for others who want the same fleet.
    pub who: String,
    /// The version of what is said over a stream.
    pub version: String,
    /// So many machines that make load, which are waited for; `None`: all that are there.
    pub generators: Option<usize>,
}

/// How long a run waits for its fleet.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    until: Instant,
    interrupt: &'a AtomicBool,
}

impl<'a> Patience<'a> {
    /// Begins to wait: for 30 s where a number of machines is wanted, and otherwise not at all. `interrupt` ends it at once.
    #[must_use]
    pub fn begin(wanted: &Wanted, interrupt: &'a AtomicBool) -> Self {
        let limit = wanted.generators.map_or(Duration::ZERO, |_| PATIENCE);
        Self { until: Instant::now() + limit, interrupt }
    }

    fn lasts(&self) -> bool {
        Instant::now() < self.until
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// What comes of something, unless the user asks to stop before.
    async fn unless_interrupted<T>(&self, future: impl Future<Output = T>) -> Result<T, Why> {
        let interrupted = async {
            while !self.is_interrupted() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = future => Ok(done),
            () = interrupted => Err(Why::Interrupted),
        }
    }
}

/// A claimed machine.
#[derive(Debug)]
pub struct Member {
    /// The name of its host, as it says.
    pub host: String,
    /// Whether it observes, rather than makes load.
    pub observes: bool,
    /// What it says.
    pub reader: Reader,
    /// What it is told.
    pub writer: Writer,
}

/// Why a fleet cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("the fleet at {address}: {why}{}", also(complaint))]
pub struct GatherError {
    address: Address,
    why: Box<Why>,
    /// What the bus refused last.
    complaint: Option<String>,
}

/// Reasons why a fleet cannot be had.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("nobody joined it; run `nstar agent --join` with this URL on other machines")]
    Nobody,
    #[error("{there} of {wanted} generators are free after {limit} s{}", who_has(busy), limit = PATIENCE.as_secs())]
    TooFew { there: usize, wanted: usize, busy: BTreeMap<String, usize> },
    #[error("another run has it{}; wait, or take a part of it with --members", who_has(busy))]
    Taken { busy: BTreeMap<String, usize> },
    #[error("{host} runs {theirs}, and this is {ours}; both have to be the same")]
    OtherVersion { host: String, theirs: String, ours: String },
    #[error("{host} joined it, and does not answer")]
    NoAnswer { host: String },
    #[error("cannot name the run: {0}")]
    Random(getrandom::Error),
    #[error("interrupted")]
    Interrupted,
}

fn also(complaint: &Option<String>) -> String {
    complaint.as_ref().map_or_else(String::new, |said| format!(" (the bus says: {said})"))
}

fn who_has(busy: &BTreeMap<String, usize>) -> String {
    let one = |(who, count): (&String, &usize)| format!("{who} runs on {count}");
    let all: Vec<String> = busy.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) }
}

/// Connects a run to the bus of its fleet. A bus that is away, as while it restarts, is tried again.
///
/// # Errors
/// If there is no bus by the end of the patience, it does not let this user in, or the user asked to stop.
pub fn reach(address: &Address, login: &Login, patience: &Patience<'_>) -> Result<Bus, BusError> {
    loop {
        match Bus::connect_unless(address, login, |_| (), patience.interrupt) {
            Err(_) if patience.is_interrupted() => return Err(BusError::Interrupted),
            Err(error) if error.may_pass() && patience.lasts() => thread::sleep(PAUSE),
            reached => return reached,
        }
    }
}

/// Claims the members of a fleet for a run, as long as what is returned is kept.
///
/// # Errors
/// If they are not there, or not free, or the user asked to stop. None is claimed then.
pub fn gather(bus: &Bus, wanted: &Wanted, patience: &Patience<'_>) -> Result<Vec<Member>, GatherError> {
    let gathered = loop {
        match claim_all(bus, wanted, patience) {
            // Another run was quicker, or a member has left since it was found. What was claimed is free again by now.
            Err(Why::Taken { .. } | Why::NoAnswer { .. }) if patience.lasts() => {
                if let Err(interrupted) = bus.wait_for(patience.unless_interrupted(pause())) {
                    break Err(interrupted);
                }
            }
            gathered => break gathered,
        }
    };
    let at =
        |why| GatherError { address: bus.address().clone(), why: Box::new(why), complaint: bus.complaint() };
    gathered.map_err(at)
}

async fn pause() {
    sleep(PAUSE).await;
}

/// Finds and claims as many as are wanted. Where one cannot be had, none is claimed.
fn claim_all(bus: &Bus, wanted: &Wanted, patience: &Patience<'_>) -> Result<Vec<Member>, Why> {
    let run = message::random_word().map_err(Why::Random)?;
    let claiming = Claiming { bus, wanted, patience, run };
    let chosen = bus.wait_for(patience.unless_interrupted(claiming.choose()))??;
    // One after another and in the order of all: of two runs that begin at once, one has all.
    chosen.into_iter().map(|presence| claiming.claim(presence)).collect()
}

struct Claiming<'a> {
    bus: &'a Bus,
    wanted: &'a Wanted,
    patience: &'a Patience<'a>,
    run: String,
}

impl Claiming<'_> {
    /// Finds as many as are wanted.
    async fn choose(&self) -> Result<Vec<Presence>, Why> {
        loop {
            let there = find(&self.bus.client()).await;
            match choose(there, self.wanted) {
                Err(Why::Nobody | Why::TooFew { .. }) if self.patience.lasts() => sleep(PAUSE).await,
                chosen => return chosen,
            }
        }
    }

    fn claim(&self, presence: Presence) -> Result<Member, Why> {
        let client = self.bus.client();
        let Presence { id, host, observes, .. } = presence;
        let Wanted { who, version, .. } = self.wanted;
        let (down, up) = stream_subjects(&self.run, &id);
        let claim = Claim { run: self.run.clone(), who: who.clone(), version: version.clone() };
        let breaks = self.bus.breaks();
        let asking = async {
            let from = client.subscribe(up).await.ok()?;
            let request = client.request(claim_subject(&id), message::written(&claim).into());
            let answer = timeout(CLAIM_PATIENCE, request).await.ok()?.ok()?;
            Some((from, message::read::<Answer>(&answer.payload)?))
        };
        match self.bus.wait_for(self.patience.unless_interrupted(asking))? {
            Some((from, Answer::Claimed)) => {
                let (reader, writer) = open(self.bus, Way { from, to: down, breaks });
                Ok(Member { host, observes, reader, writer })
            }
            Some((_, Answer::Busy(who))) => {
                Err(Why::Taken { busy: BTreeMap::from([(message::shown(&who), 1)]) })
            }
            Some((_, Answer::OtherVersion(theirs))) => {
                Err(Why::OtherVersion { host, theirs: message::shown(&theirs), ours: version.clone() })
            }
            None => Err(Why::NoAnswer { host }),
        }
    }
}

/// Asks who is there.
async fn find(client: &Client) -> Vec<Presence> {
    let inbox = client.new_inbox();
    let Ok(mut answers) = client.subscribe(inbox.clone()).await else { return Vec::new() };
    if client.publish_with_reply(WHO, inbox, Vec::new().into()).await.is_err() {
        return Vec::new();
    }
    let (deadline, mut found) = (Instant::now() + ANSWER_TIME, BTreeMap::new());
    while let Ok(Some(answer)) = timeout_at(deadline, answers.next()).await {
        // The bus says so itself where nobody can hear the question.
        if answer.status.is_some() || found.len() >= MEMBERS_MAX {
            break;
        }
        if let Some(presence) = message::read(&answer.payload).and_then(Presence::sound) {
            found.insert(presence.id.clone(), presence);
        }
    }
    found.into_values().collect()
}

/// Chooses those of a run among all that are there, in the order of all.
fn choose(there: Vec<Presence>, wanted: &Wanted) -> Result<Vec<Presence>, Why> {
    if there.is_empty() {
        return Err(Why::Nobody);
    }
    if let Some(other) = there.iter().find(|one| one.version != wanted.version) {
        let (host, theirs, ours) = (other.host.clone(), other.version.clone(), wanted.version.clone());
        return Err(Why::OtherVersion { host, theirs, ours });
    }
    let mut busy = BTreeMap::new();
    there.iter().filter_map(|one| one.busy.clone()).for_each(|who| *busy.entry(who).or_default() += 1);
    let Some(count) = wanted.generators else {
        return if busy.is_empty() { Ok(there) } else { Err(Why::Taken { busy }) };
    };
    let free = there.into_iter().filter(|one| one.busy.is_none());
    let (observers, mut generators): (Vec<_>, Vec<_>) = free.partition(|one| one.observes);
    if generators.len() < count {
        return Err(Why::TooFew { there: generators.len(), wanted: count, busy });
    }
    generators.truncate(count);
    let mut chosen = [observers, generators].concat();
    chosen.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, observes: bool, busy: Option<&str>) -> Presence {
        let busy = busy.map(str::to_owned);
        Presence { id: id.into(), host: format!("host-{id}"), version: "1".into(), observes, busy }
    }

    fn wanted(generators: Option<usize>) -> Wanted {
        Wanted { who: "ann@laptop".into(), version: "1".into(), generators }
    }

    fn ids(chosen: Result<Vec<Presence>, Why>) -> Vec<String> {
        chosen.unwrap().into_iter().map(|one| one.id).collect()
    }

    #[test]
    fn all_take_part_where_no_number_is_wanted_and_nobody_else_runs() {
        let there = || vec![member("a", false, None), member("b", true, None)];
        assert_eq!(ids(choose(there(), &wanted(None))), ["a", "b"]);
        let taken =
            [there(), vec![member("c", false, Some("bob@desk")), member("d", false, Some("bob@desk"))]];
        let Err(Why::Taken { busy }) = choose(taken.concat(), &wanted(None)) else { panic!("not taken") };
        assert_eq!(who_has(&busy), ": bob@desk runs on 2");
        assert_eq!(choose(Vec::new(), &wanted(None)), Err(Why::Nobody));
    }

    #[test]
    fn so_many_as_are_wanted_are_taken_of_those_that_are_free() {
        let there = || {
            let busy = member("a", false, Some("bob"));
            vec![busy, member("b", false, None), member("c", true, None), member("d", false, None)]
        };
        assert_eq!(ids(choose(there(), &wanted(Some(1)))), ["b", "c"], "one generator, and who observes");
        assert_eq!(ids(choose(there(), &wanted(Some(2)))), ["b", "c", "d"]);
        let busy = BTreeMap::from([("bob".to_owned(), 1)]);
        assert_eq!(choose(there(), &wanted(Some(3))), Err(Why::TooFew { there: 2, wanted: 3, busy }));
    }

    #[test]
    fn another_version_is_named_with_its_host() {
        let other = Presence { version: "2".into(), ..member("a", false, None) };
        let Err(Why::OtherVersion { host, theirs, .. }) = choose(vec![other], &wanted(None)) else {
            panic!("the same")
        };
        assert_eq!((&*host, &*theirs), ("host-a", "2"));
    }
}
