//! Profiles of processes where an agent runs: what is asked for, and what is told of it, cut to what may be sent and believed.
//!
//! A profile passes as JSON, made of the run file's own types: these leave out what is absent, which other messages cannot.

mod bounds;
mod soundness;

use std::collections::BTreeSet;

use analysis::profile::{HostProfile, Tier};
use serde::{Deserialize, Serialize};

/// The longest profile, bytes of JSON. Where it would be longer, the rarest stacks are left out.
pub const PROFILE_BYTES_MAX: usize = 2 << 20;

/// Tiers of one host: programs that serve, or are called.
pub(crate) const TIERS_MAX: usize = 64;

/// Tiers to profile. It replaces what was asked for before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOrder {
    /// Its number, which the answer repeats.
    pub number: u64,
    /// For how long at most, milliseconds.
    pub most_ms: u32,
    /// The numbers of each tier's processes. Those that are not watched are left out.
    pub tiers: Vec<BTreeSet<u32>>,
}

/// What was sampled of some tiers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiled {
    /// The number of what was asked for.
    pub number: u64,
    /// A [`HostProfile`] in JSON, of at most [`PROFILE_BYTES_MAX`]. Its tiers are in the order in which they were asked for, and
    /// there are none where nothing could be sampled.
    pub json: String,
}

impl Profiled {
    /// What was sampled, as it is sent.
    pub(crate) fn new(number: u64, of: HostProfile) -> Self {
        Self { number, json: bounds::fitting(of) }
    }

    /// What was sampled of these tiers, cut to what may be kept and shown; `None` where it cannot be. What they are called is
    /// known to whoever asked, and not taken from what was told.
    #[must_use]
    pub fn into_host(self, tiers: &[Tier]) -> Option<HostProfile> {
        if self.json.len() > PROFILE_BYTES_MAX {
            return None;
        }
        let mut told = bounds::cut(serde_json::from_str(&self.json).ok()?);
        if !soundness::is_sound(&told, tiers.len()) {
            return None;
        }
        let on_cpu = told.tiers.iter_mut().map(|tier| &mut tier.processes);
        on_cpu.zip(tiers).for_each(|(of, tier)| *of = tier.processes.clone());
        let seen = told.off_cpu.iter_mut().flat_map(|seen| &mut seen.tiers).map(|tier| &mut tier.processes);
        seen.zip(tiers).for_each(|(of, tier)| *of = tier.processes.clone());
        Some(told)
    }
}

#[cfg(test)]
pub(super) mod tests;
