//! Where the processor time goes: a flame graph of each tier.

use analysis::run::{Profile, Run, TierProfile};
use serde::Serialize;

use super::flame::{Drawing, Graph, Room, Tier, drawings};
use crate::number;
use crate::sentences::{self, holders};
use crate::words;

/// Most parts that are drawn in all.
const PARTS_MAX: usize = 2_200;
/// Most tiers that are shown.
pub(super) const TIERS_MAX: usize = 8;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    reading: String,
    troubles: Vec<String>,
    tiers: Vec<Graph>,
}

/// The section, with graphs of at most so many bytes; `None` without a profile.
pub(super) fn section(run: &Run, bytes: usize) -> Option<Section> {
    let profile = run.profile.as_ref()?;
    let tiers = profile.tiers.get(..TIERS_MAX).unwrap_or(&profile.tiers);
    let to_draw = tiers.iter().map(|tier| Tier {
        title: format!("Flame graph of {}", holders::processes(&tier.processes)),
        functions: &tier.functions,
        stacks: &tier.stacks,
    });
    let drawn = drawings(to_draw.collect(), Room { bytes, parts: PARTS_MAX });
    let graphs = tiers.iter().zip(drawn).enumerate();
    let more = sentences::flame::more_tiers(profile.tiers.len() - tiers.len());
    Some(Section {
        reading: if tiers.is_empty() { String::new() } else { reading(profile) },
        troubles: sentences::profile_troubles(profile).into_iter().chain(more).collect(),
        tiers: graphs.map(|(number, (tier, drawing))| graph(number, tier, drawing)).collect(),
    })
}

fn reading(of: &Profile) -> String {
    let cost = of.throughput_share.map_or_else(String::new, |share| {
        format!(" Throughput meanwhile was {} of what it was without.", number::percent(share))
    });
    format!(
        "What ran on the processors with {}, looked at {} times in each second of CPU time, for {}. A part is a function, as \
         wide as its share of the time, what it called included; below it is what it called. Dashed parts are the kernel.{cost}",
        words::users(of.users),
        of.hertz,
        number::elapsed(of.elapsed_s)
    )
}

fn graph(number: usize, tier: &TierProfile, drawing: Drawing) -> Graph {
    let processes = holders::processes(&tier.processes);
    Graph {
        id: format!("flame-{number}"),
        heading: format!("{processes}, {} of a processor", number::percent(tier.cores)),
        sentence: sentences::profile_tier(tier),
        drawing,
    }
}
