//! Another mix of the kinds of request.
//!
//! A user who draws the kind of each request is one chain of a queueing network whose customers change class. There, stations
//! at which all are served alike, processors that they share or delays, depend on the mean demand alone (Baskett, Chandy, Muntz
//! and Palacios, JACM 22(2), 1975), so that one class with other demands stands for another mix.
//!
//! Each demand changes by the ratio of its means over both mixes, and stays calibrated. So does the time that no resource
//! accounts for, of which each kind has what remains of its response time with the fewest users.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::change::{device_demand, places_name, tier_demand};
use super::kinds::KindPart;
use super::model::Model;
use super::parts::{DevicePart, Parts, TierPart};
use crate::run::{Identity, ResourceKind};

/// The share that a kind of request gets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixShare {
    /// The kind, by its name in the scenario.
    pub name: String,
    /// Its share of all requests, 0 to 1.
    pub share: f64,
}

/// Why nothing can be said of another mix.
#[derive(Debug, Clone, PartialEq)]
pub enum NoMix {
    /// The load has one kind of request.
    OneKind,
    /// The shares sum to more than 1; or to less, with no other kind left.
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// Several kinds of request have this name.
    SameName {
        /// The name.
        name: String,
    },
    /// One kind of request has two shares.
    NamedTwice {
        /// The kind.
        name: String,
    },
    /// How long each kind of request holds the lock that is the bottleneck does not show.
    Lock {
        /// Its holder.
        name: String,
    },
    /// What each kind takes of a bottleneck, of which only the throughput is known, does not show.
    Bottleneck {
        /// Its kind.
        kind: ResourceKind,
    },
    /// It is not known what a kind of request costs of a resource that may become a limit.
    Cost {
        /// The kind of request.
        request: String,
        /// The demand, as changes call it.
        of: String,
    },
    /// It is not known how long a kind of request takes with the fewest users.
    Alone {
        /// The kind of request.
        request: String,
    },
}

impl From<NoMix> for Refusal {
    fn from(why: NoMix) -> Self {
        Self::Mix(why)
    }
}

/// Shares that miss 1 by less than this were rounded.
const ROUNDING: f64 = 1e-9;

/// A tier or device of which nothing is known by kind stays as it is where it would be less busy than this at the throughput
/// that was measured, whatever each kind costs of it.
const ROOM: f64 = 0.5;

/// Changes a model from the mix that ran to one with these shares. Kinds that are not named share what is left in their old
/// proportions.
pub(super) fn make(model: &mut Model, parts: &Parts, named: &[MixShare]) -> Result<(), Refusal> {
    let mixed = Mixed::of(&parts.kinds, named)?;
    refuse_bottleneck(model)?;
    let waits = mixed.waits(model, parts)?;
    for (tier, part) in model.tiers.iter_mut().zip(&parts.tiers) {
        let factor = mixed.of_tier(part).or_else(|request| mixed.kept(request, part.busy, tier_demand(tier)));
        tier.cpu_us *= factor?;
    }
    for (device, part) in model.devices.iter_mut().zip(&parts.devices) {
        let factor =
            mixed.of_device(part).or_else(|request| mixed.kept(request, part.busy, device_demand(device)));
        device.busy_us *= factor?;
    }
    model.delay_us *= waits;
    if let Some(places) = &mut model.places {
        places.delay_us *= waits;
    }
    Ok(())
}

/// The demands that stay as they are in another mix, because what each kind costs there is not known.
pub(super) fn kept(model: &Model, parts: &Parts, named: &[MixShare]) -> Vec<String> {
    let Ok(mixed) = Mixed::of(&parts.kinds, named) else { return Vec::new() };
    let tiers = model.tiers.iter().zip(&parts.tiers).filter(|(_, part)| mixed.of_tier(part).is_err());
    let devices = model.devices.iter().zip(&parts.devices).filter(|(_, part)| mixed.of_device(part).is_err());
    let tiers = tiers.map(|(tier, _)| tier_demand(tier));
    tiers.chain(devices.map(|(device, _)| device_demand(device))).collect()
}

/// How long each kind holds a lock does not show, nor what it takes of a limit of which only the throughput is known; a limit
/// on the rate of requests takes all alike.
fn refuse_bottleneck(model: &Model) -> Result<(), NoMix> {
    if let Some(places) = model.places.as_ref().filter(|places| places.kind == ResourceKind::Lock) {
        return Err(NoMix::Lock { name: places_name(places) });
    }
    match &model.ceiling {
        Some(ceiling) if ceiling.kind != ResourceKind::RateLimit => {
            Err(NoMix::Bottleneck { kind: ceiling.kind })
        }
        _ => Ok(()),
    }
}

/// Both mixes.
struct Mixed<'a> {
    kinds: Vec<Mixing<'a>>,
    /// The share that a kind which is not named gets, over the one that it had.
    others: f64,
}

/// A kind, and its share in both.
struct Mixing<'a> {
    of: &'a KindPart,
    is_named: bool,
    from: f64,
    to: f64,
}

impl<'a> Mixed<'a> {
    fn of(kinds: &'a [KindPart], named: &[MixShare]) -> Result<Self, Refusal> {
        check_names(kinds, named)?;
        let given = |kind: &KindPart| named.iter().find(|one| one.name == kind.name).map(|one| one.share);
        let all: f64 = kinds.iter().map(|kind| kind.share).sum();
        let from = |kind: &KindPart| kind.share / all.max(f64::MIN_POSITIVE);
        let rest: f64 = kinds.iter().filter(|kind| given(kind).is_none()).map(from).sum();
        let sum: f64 = kinds.iter().filter_map(given).sum();
        let left = 1.0 - sum;
        if left < -ROUNDING || (left > ROUNDING && rest <= 0.0) {
            return Err(NoMix::Shares { sum }.into());
        }
        let others = if rest > 0.0 { left.max(0.0) / rest } else { 0.0 };
        let mixing = |of: &'a KindPart| {
            let (from, given) = (from(of), given(of));
            Mixing { of, is_named: given.is_some(), from, to: given.unwrap_or(others * from) }
        };
        Ok(Self { kinds: kinds.iter().map(mixing).collect(), others })
    }

    /// What a request costs on average over what it did, where a request of the run cost `mean_us`. Kinds of which that is not
    /// known, and which do not become more frequent, cost together what is left of the mean; one that is in neither mix costs
    /// nothing.
    ///
    /// # Errors
    /// The name of another kind of which it is not known. That depends on nothing that is drawn.
    fn factor(&self, cost_us: impl Fn(&KindPart) -> Option<f64>, mean_us: f64) -> Result<f64, &'a str> {
        let (mut before, mut after, mut is_whole) = (0.0, 0.0, true);
        for kind in &self.kinds {
            match cost_us(kind.of) {
                Some(us) => {
                    before += kind.from * us;
                    after += kind.to * us;
                }
                None if kind.from <= 0.0 && kind.to <= 0.0 => {}
                None if !kind.is_named && self.others <= 1.0 + ROUNDING => is_whole = false,
                None => return Err(kind.of.name.as_str()),
            }
        }
        if !is_whole {
            let left_us = (mean_us - before).max(0.0);
            before += left_us;
            after += self.others * left_us;
        }
        Ok(if before > 0.0 { after / before } else { 1.0 })
    }

    fn of_tier(&self, part: &TierPart) -> Result<f64, &'a str> {
        self.factor(|kind| kind.demand_us(|identity| is_tier(identity, part)), part.cpu_us.value)
    }

    fn of_device(&self, part: &DevicePart) -> Result<f64, &'a str> {
        self.factor(|kind| kind.demand_us(|identity| *identity == part.identity), part.busy_us.value)
    }

    /// The factor of a resource of which it is not known what this kind costs.
    fn kept(&self, request: &str, busy: f64, of: String) -> Result<f64, NoMix> {
        let grows = |kind: &Mixing<'_>| if kind.to > 0.0 { kind.to / kind.from } else { 0.0 };
        // No mean grows by more than the kind does that becomes most frequent.
        let most = self.kinds.iter().map(grows).fold(0.0, f64::max);
        let has_room = busy * most <= ROOM;
        has_room.then_some(1.0).ok_or_else(|| NoMix::Cost { request: request.to_owned(), of })
    }

    /// The factor of the time that no resource accounts for.
    fn waits(&self, model: &Model, parts: &Parts) -> Result<f64, NoMix> {
        let held_us = model.places.as_ref().map_or(0.0, |places| places.delay_us);
        let mean_us = model.delay_us + held_us;
        let waited_us =
            |kind: &KindPart| Some((kind.alone_us?.us - accounted_us(model, parts, kind)).max(0.0));
        self.factor(waited_us, mean_us).map_err(|request| NoMix::Alone { request: request.to_owned() })
    }
}

fn check_names(kinds: &[KindPart], named: &[MixShare]) -> Result<(), Refusal> {
    if kinds.len() < 2 {
        return Err(NoMix::OneKind.into());
    }
    for (index, one) in named.iter().enumerate() {
        let name = one.name.clone();
        match kinds.iter().filter(|kind| kind.name == name).count() {
            0 => {
                let known = kinds.iter().map(|kind| kind.name.clone()).collect();
                return Err(Refusal::UnknownName { name, known });
            }
            1 => {}
            _ => return Err(NoMix::SameName { name }.into()),
        }
        if named.iter().take(index).any(|other| other.name == name) {
            return Err(NoMix::NamedTwice { name }.into());
        }
    }
    Ok(())
}

fn is_tier(identity: &Identity, part: &TierPart) -> bool {
    let Identity::Processes(of) = identity else { return false };
    (&of.name, &of.on, of.role) == (&part.of.name, &part.of.on, part.of.role)
}

/// The time that a kind of request takes at the resources of a model, alone there; where it is not known, that of the mean.
fn accounted_us(model: &Model, parts: &Parts, kind: &KindPart) -> f64 {
    let tiers = model.tiers.iter().zip(&parts.tiers).map(|(tier, part)| {
        let own = kind.demand_us(|identity| is_tier(identity, part));
        let cpu_us = own.map_or(tier.cpu_us, |us| us * tier.cpu_us / part.cpu_us.value);
        cpu_us / tier.servers().min(1.0)
    });
    let devices = model.devices.iter().zip(&parts.devices).map(|(device, part)| {
        let own = kind.demand_us(|identity| *identity == part.identity);
        own.map_or(device.busy_us, |us| us * device.busy_us / part.busy_us.value)
    });
    let held_us = model.ceiling.as_ref().and_then(|ceiling| ceiling.held_us).unwrap_or(0.0);
    tiers.chain(devices).sum::<f64>() + held_us
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Role;
    use crate::prediction::kinds::Cost;
    use crate::prediction::tests::parts;
    use crate::run::Processes;

    fn cost(us: f64) -> Cost {
        Cost { us, error_us: us / 50.0 }
    }

    fn kind(name: &str, share: f64, alone_us: f64, demands_us: [f64; 2]) -> KindPart {
        let tier = |name: &str, role| {
            Identity::Processes(Processes { role, name: name.into(), ..Processes::default() })
        };
        let tiers = [tier("app", Role::Server), tier("db", Role::Downstream)];
        let demands = tiers.into_iter().zip(demands_us.map(cost)).collect();
        KindPart { name: name.into(), share, alone_us: Some(cost(alone_us)), demands }
    }

    /// Four in five requests read, in 15 ms; the others write, in 40. On average they cost 500 us of the server, a third of it
    /// of the database, and take 20 ms.
    fn reads_and_writes(bottleneck: ResourceKind) -> Parts {
        let mut parts = parts(bottleneck, 500.0, 2, 200.0, 20_000.0, 4);
        (parts.hosts, parts.devices) = (Vec::new(), Vec::new());
        parts.kinds = vec![
            kind("read", 0.8, 15_000.0, [250.0, 50.0]),
            kind("write", 0.2, 40_000.0, [1_500.0, 1_900.0 / 3.0]),
        ];
        parts
    }

    fn shares(named: &[(&str, f64)]) -> Vec<MixShare> {
        named.iter().map(|(name, share)| MixShare { name: (*name).into(), share: *share }).collect()
    }

    /// By how much each tier costs more, and the place is held for longer.
    fn factors(parts: &Parts, named: &[(&str, f64)]) -> Result<[f64; 3], Refusal> {
        let before = Model::of(parts);
        let mut after = before.clone();
        make(&mut after, parts, &shares(named))?;
        let held = |model: &Model| model.places.as_ref().map_or(model.delay_us, |places| places.delay_us);
        let tier = |index: usize| after.tiers[index].cpu_us / before.tiers[index].cpu_us;
        Ok([tier(0), tier(1), held(&after) / held(&before)])
    }

    fn no(why: NoMix) -> Result<[f64; 3], Refusal> {
        Err(why.into())
    }

    fn are(found: Result<[f64; 3], Refusal>, expected: [f64; 3]) -> bool {
        let is_near = |(one, other): (&f64, f64)| (one / other - 1.0).abs() < 1e-3;
        found.is_ok_and(|found| found.iter().zip(expected).all(is_near))
    }

    /// By hand: half of them write, which cost 875 us of the server, 341.7 of the database, and wait for 26.3 ms and not 19.3.
    #[test]
    fn demands_and_waits_are_those_of_the_new_mix() {
        let parts = reads_and_writes(ResourceKind::WorkerPool);
        let half = [1.75, 2.05, 26_283.3 / 19_333.3];
        assert!(are(factors(&parts, &[("write", 0.5)]), half), "{:?}", factors(&parts, &[("write", 0.5)]));
        assert!(are(factors(&parts, &[("read", 0.5), ("write", 0.5)]), half));
        assert!(are(factors(&parts, &[("read", 0.5)]), half), "those not named get the rest");
        assert!(are(factors(&parts, &[("write", 0.2)]), [1.0; 3]), "nothing changes");
        assert!(are(factors(&parts, &[("read", 1.0)]), [0.5, 0.3, 14_700.0 / 19_333.3]));
    }

    #[test]
    fn kinds_not_named_keep_their_proportions() {
        let mut parts = reads_and_writes(ResourceKind::WorkerPool);
        parts.kinds[0].share = 0.6;
        parts.kinds.push(kind("search", 0.2, 15_000.0, [250.0, 50.0]));
        let mixed = Mixed::of(&parts.kinds, &shares(&[("write", 0.6)])).expect("a mix");
        let to: Vec<f64> = mixed.kinds.iter().map(|kind| kind.to).collect();
        assert!(to.iter().zip([0.3, 0.6, 0.1]).all(|(one, other)| (one - other).abs() < 1e-12), "{to:?}");
    }

    #[test]
    fn what_is_not_known_of_others_is_what_is_left_of_the_mean() {
        let mut parts = reads_and_writes(ResourceKind::WorkerPool);
        parts.kinds[0].demands.clear();
        let found = factors(&parts, &[("write", 0.5)]).map(|[server, database, _]| [server, database, 1.0]);
        assert!(are(found, [1.75, 2.05, 1.0]), "reads cost the rest");
        let more = factors(&parts, &[("write", 0.1)]);
        assert_eq!(more, no(NoMix::Cost { request: "read".into(), of: "app.cpu".into() }));
        let named = factors(&parts, &[("read", 0.5)]);
        assert_eq!(named, no(NoMix::Cost { request: "read".into(), of: "app.cpu".into() }));
    }

    #[test]
    fn a_kind_that_never_came_and_stays_away_needs_no_cost() {
        let mut parts = reads_and_writes(ResourceKind::WorkerPool);
        let (demands, alone_us) = (Vec::new(), None);
        parts.kinds.push(KindPart { name: "search".into(), share: 0.0, alone_us, demands });
        let fewer = [0.75, 0.65, 17_016.7 / 19_333.3];
        assert!(are(factors(&parts, &[("write", 0.1)]), fewer), "{:?}", factors(&parts, &[("write", 0.1)]));
        let comes = factors(&parts, &[("search", 0.1)]);
        assert_eq!(comes, no(NoMix::Alone { request: "search".into() }));
    }

    #[test]
    fn a_tier_with_room_stays_as_it_is_where_its_costs_are_not_known() {
        let mut parts = reads_and_writes(ResourceKind::WorkerPool);
        parts.kinds.iter_mut().for_each(|kind| kind.demands.truncate(1));
        // Writes become two and a half times as frequent.
        for (busy, has_room) in [(0.19, true), (0.21, false)] {
            parts.tiers[1].busy = busy;
            let found = factors(&parts, &[("write", 0.5)]);
            let refused = NoMix::Cost { request: "write".into(), of: "db.cpu".into() };
            match has_room {
                true => assert!(found.is_ok_and(|found| found[0] > 1.7 && found[1] == 1.0)),
                false => assert_eq!(found, no(refused)),
            }
        }
        assert_eq!(kept(&Model::of(&parts), &parts, &shares(&[("write", 0.5)])), ["db.cpu"]);
    }

    #[test]
    fn a_kind_of_unknown_response_time_is_refused() {
        let mut parts = reads_and_writes(ResourceKind::WorkerPool);
        parts.kinds[1].alone_us = None;
        let found = factors(&parts, &[("write", 0.5)]);
        assert_eq!(found, no(NoMix::Alone { request: "write".into() }));
    }

    #[test]
    fn bottlenecks_of_unknown_use_by_kind_are_refused() {
        let of = |kind| factors(&reads_and_writes(kind), &[("write", 0.5)]);
        assert_eq!(of(ResourceKind::Lock), no(NoMix::Lock { name: "app".into() }));
        let queue = ResourceKind::AcceptQueue;
        assert_eq!(of(queue), no(NoMix::Bottleneck { kind: queue }));
        assert!(of(ResourceKind::RateLimit).is_ok(), "all requests are alike to it");
        let mut link = parts(ResourceKind::Network, 500.0, 2, 200.0, 20_000.0, 4);
        link.kinds = reads_and_writes(ResourceKind::Network).kinds;
        link.devices[0].busy = 0.99;
        let refused = NoMix::Cost { request: "write".into(), of: "eth0.network".into() };
        assert_eq!(factors(&link, &[("write", 0.5)]), no(refused));
        for (kind, us) in link.kinds.iter_mut().zip([1_000.0, 21_000.0]) {
            kind.demands.push((link.devices[0].identity.clone(), cost(us)));
        }
        let mut model = Model::of(&link);
        let before_us = model.devices[0].busy_us;
        make(&mut model, &link, &shares(&[("write", 0.5)])).expect("known");
        assert!((model.devices[0].busy_us / before_us / 2.2 - 1.0).abs() < 1e-9, "11 ms and not 5");
    }

    #[test]
    fn shares_and_names_that_make_no_mix_are_refused() {
        let parts = reads_and_writes(ResourceKind::WorkerPool);
        let of = |named: &[(&str, f64)]| factors(&parts, named);
        let known = vec!["read".to_owned(), "write".to_owned()];
        assert_eq!(of(&[("rite", 0.5)]), Err(Refusal::UnknownName { name: "rite".into(), known }));
        let sum = |found: Result<[f64; 3], Refusal>| match found {
            Err(Refusal::Mix(NoMix::Shares { sum })) => sum,
            other => panic!("{other:?}"),
        };
        assert!((sum(of(&[("read", 0.9), ("write", 0.2)])) - 1.1).abs() < 1e-9);
        assert!((sum(of(&[("read", 0.7), ("write", 0.2)])) - 0.9).abs() < 1e-9, "nobody takes the rest");
        let twice = of(&[("read", 0.5), ("read", 0.5)]);
        assert_eq!(twice, no(NoMix::NamedTwice { name: "read".into() }));
        let mut same = parts.clone();
        same.kinds.push(kind("read", 0.1, 15_000.0, [250.0, 50.0]));
        assert_eq!(factors(&same, &[("read", 0.5)]), no(NoMix::SameName { name: "read".into() }));
        let mut one = parts.clone();
        one.kinds.truncate(1);
        assert_eq!(factors(&one, &[("read", 1.0)]), no(NoMix::OneKind));
    }
}
