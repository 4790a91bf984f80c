//! The cases: what to start, and what is true of it. `cases.toml` lists them, and `hosts.toml` those whose tiers stand on hosts
//! of their own.

use std::{ffi::OsString, fs, path::Path};

use serde::Deserialize;

use crate::{Trouble, queueing::Network, tier::Tier};

/// The cases of the suite.
const CASES: &str = include_str!("../cases.toml");
/// The cases whose tiers stand on hosts of their own.
const ON_HOSTS: &str = include_str!("../hosts.toml");

/// A server with a bottleneck of known size.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, unique.
    pub name: String,
    /// Its tiers, the front first. Each forwards to the next.
    pub tiers: Vec<Tier>,
    /// What stops it.
    pub kind: Truth,
    /// Whose bottleneck it is: the beginning of the name in the verdict. Any of them, where several are true.
    #[serde(default)]
    pub holder: Vec<String>,
    /// Another kind of bottleneck that shows alike: it is right too to leave open which of the two it is.
    #[serde(default)]
    pub alike: Option<String>,
    /// The host of the holder, where each tier stands on one of its own: `front`, `back`, `db`, or `generator`.
    #[serde(default)]
    pub on: Option<String>,
    /// The share of a processor that the generator may use, where that is limited.
    #[serde(default)]
    pub generator_quota: Option<f64>,
    /// What else runs on the host: `burn=33%`, or `job=1s/5s` for one second of every five.
    #[serde(default)]
    pub beside: Option<String>,
    /// Further arguments of `nstar sweep`.
    #[serde(default)]
    pub nstar: Vec<String>,
    /// The scenario that is sent; without one, all requests are for `/`.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Whether it is part of the short form.
    #[serde(default)]
    pub short: bool,
    /// What it shows.
    pub shows: String,
}

/// What is true of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Truth {
    /// The kind of its bottleneck, as nstar names it; `none` where it never saturates, `changes` where its capacity
    /// changes while it is measured, so that no single answer is true.
    One(String),
    /// One of these, where two names are true at once.
    Any(Vec<String>),
}

impl Truth {
    /// The names that are true.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Any(names) => names,
        }
    }

    /// Whether this name is true.
    pub fn holds(&self, name: &str) -> bool {
        self.names().iter().any(|known| known == name)
    }
}

impl Case {
    /// The maximum throughput, requests a second, and N*; `None` where there is no single one.
    ///
    /// # Errors
    /// Where the tiers have no exact answer.
    pub fn saturation(&self) -> Result<Option<(f64, u32)>, String> {
        if self.kind.holds("changes") {
            return Ok(None);
        }
        Network::of(&self.tiers, processors()).map(|network| network.saturation())
    }

    /// What `nstar sweep` is given as its target, for a front at this URL. A scenario is written into the folder.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn target(&self, url: &str, folder: &Path) -> Result<Vec<OsString>, Trouble> {
        let Some(scenario) = &self.scenario else { return Ok(vec![url.into()]) };
        let file = folder.join("scenario.toml");
        fs::write(&file, scenario).map_err(Trouble::io(format!("write {}", file.display())))?;
        Ok(vec![file.into(), "--base".into(), url.into()])
    }

    /// Whether it leaves the host idle, so that others of its kind may be measured at the same time.
    pub fn is_idle(&self) -> bool {
        let apart = |tier: &Tier| tier.surroundings.accept.is_some() || tier.stack == "mariadb";
        let is_alone = self.on.is_some() || self.beside.is_some();
        !is_alone && !self.tiers.iter().any(|tier| tier.is_busy() || apart(tier))
    }

    /// The stacks of its tiers, the front first.
    pub fn stacks(&self) -> String {
        let stacks: Vec<_> = self.tiers.iter().map(|tier| tier.stack.as_str()).collect();
        stacks.join(" > ")
    }
}

/// Processors that this process may use.
pub(crate) fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |number| number.get() as u32)
}

/// All cases.
///
/// # Errors
/// Where the list is wrong.
pub fn all() -> Result<Vec<Case>, String> {
    list(CASES)
}

/// All cases whose tiers stand on hosts of their own.
///
/// # Errors
/// Where the list is wrong.
pub fn on_hosts() -> Result<Vec<Case>, String> {
    let mut cases = list(ON_HOSTS)?;
    // The namespace at the end of a tier's link is its host.
    for tier in cases.iter_mut().flat_map(|case| &mut case.tiers) {
        tier.surroundings.namespace = false;
    }
    Ok(cases)
}

fn list(text: &str) -> Result<Vec<Case>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        case: Vec<Case>,
    }
    let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(list.case)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        stacks,
        stage::{Stage, Time},
    };

    /// What a tier adds to the time of a request without being asked to, at most.
    const OVERHEAD: std::time::Duration = std::time::Duration::from_micros(300);

    #[test]
    fn the_list_is_as_long_and_as_wide_as_it_says() {
        let cases = all().expect("the list");
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len(), "two cases of one name");
        let stacks: BTreeSet<_> = cases.iter().flat_map(|case| &case.tiers).map(|tier| &tier.stack).collect();
        let count = |wanted: fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count();
        assert!(cases.len() >= 30 && stacks.len() >= 6, "{} cases, {stacks:?}", cases.len());
        assert!(count(|case| case.kind.holds("none") || case.kind.holds("changes")) >= 3);
        assert!(count(|case| case.beside.is_some()) >= 4);
        assert!(count(|case| case.short) >= 6);
    }

    #[test]
    fn every_case_names_stacks_that_exist_and_has_an_exact_answer() {
        for case in all().expect("the list") {
            for tier in &case.tiers {
                assert!(stacks::find(&tier.stack).is_ok(), "{}: no stack {}", case.name, tier.stack);
            }
            let answer = case.saturation().unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let open = case.kind.holds("none") || case.kind.holds("changes");
            assert_eq!(answer.is_none(), open, "{}: {answer:?}", case.name);
            assert!(open || !case.holder.is_empty(), "{}: who holds it?", case.name);
        }
    }

    #[test]
    fn of_tiers_on_hosts_of_their_own_each_and_each_link_is_the_bottleneck_of_a_case() {
        let cases = on_hosts().expect("the list");
        let of = |wanted: fn(&Case) -> bool| {
            let chosen = cases.iter().filter(|case| wanted(case));
            let mut hosts: Vec<_> = chosen.filter_map(|case| case.on.as_deref()).collect();
            hosts.sort_unstable();
            hosts
        };
        assert_eq!(of(|case| case.kind.holds("network")), ["back", "db", "front"]);
        assert_eq!(of(|case| !case.kind.holds("network")), ["back", "db", "front", "generator"]);
        assert_eq!(of(|case| case.short), ["back", "back"]);
        for case in &cases {
            let answer = case.saturation().unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert_eq!(answer.is_none(), case.kind.holds("generator"), "{}: {answer:?}", case.name);
            assert!(!case.is_idle() && case.tiers.iter().all(|tier| !tier.surroundings.namespace));
        }
    }

    /// Requests cost a little more than the stages say. An N* that this shifts would not be exact.
    #[test]
    fn no_case_stands_on_a_knife_edge() {
        for case in [all(), on_hosts()].into_iter().flat_map(|list| list.expect("the list")) {
            let slower = |mut case: Case| {
                let more = Stage::Delay(Time { mean: OVERHEAD, exponential: false });
                case.tiers.iter_mut().for_each(|tier| tier.stages.insert(0, more));
                case
            };
            let users = |case: &Case| case.saturation().expect("an answer").map(|(_, users)| users);
            assert_eq!(users(&slower(case.clone())), users(&case), "{}: choose other times", case.name);
        }
    }
}
