//! The tiers of a step, by name, and what a request costs them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{HostName, Identity, Resource, ResourceKind, Step, Unit};

/// The processes of one name, in any run.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Tier {
    /// The kernel's name of them.
    pub name: String,
    /// The host, or the container, that they run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: HostName,
}

impl Tier {
    /// The tier whose processor time a resource is.
    pub(crate) fn of(resource: &Resource) -> Option<Self> {
        resource.identity.as_ref().filter(|_| is_tier(resource)).and_then(Self::named)
    }

    /// The tier that this is.
    pub(crate) fn named(identity: &Identity) -> Option<Self> {
        let of = identity.processes()?;
        Some(Self { name: of.name.clone(), on: of.on.clone() })
    }

    /// Its CPU time per completed request of a step, microseconds.
    pub(crate) fn cpu_us_per_request(&self, step: &Step) -> Option<f64> {
        per_request(step, |resource| Self::of(resource).as_ref() == Some(self))
    }
}

/// Every tier of these steps, in the order of their names; none where there is one alone, which costs what all do.
pub(crate) fn several_tiers<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<Tier> {
    let mut all: Vec<Tier> = steps.flat_map(|step| step.resources.iter().filter_map(Tier::of)).collect();
    all.sort();
    all.dedup();
    if all.len() < 2 { Vec::new() } else { all }
}

/// Whether it is the processor time of the server or of a tier behind it.
pub(crate) fn is_tier(resource: &Resource) -> bool {
    resource.kind == ResourceKind::Cpu && resource.unit == Unit::Cores && !is_host(resource)
}

/// Whether it is what all processors of a host together do.
pub(super) fn is_host(resource: &Resource) -> bool {
    matches!(resource.identity, Some(Identity::Host { .. }))
}

/// CPU time of all watched tiers per completed request, microseconds.
pub(crate) fn cpu_us_per_request(step: &Step) -> Option<f64> {
    per_request(step, is_tier)
}

/// What those that count take of a completed request, by the utilisation law: U = X D.
fn per_request(step: &Step, counts: impl Fn(&Resource) -> bool) -> Option<f64> {
    let own = step.resources.iter().filter(|resource| counts(resource));
    let used: Vec<f64> = own.map(|resource| resource.used).collect();
    let known = !used.is_empty() && step.throughput_per_s > 0.0;
    known.then(|| used.iter().sum::<f64>() / step.throughput_per_s * 1e6)
}
