//! Where the processor time goes: a flame graph of each tier, callers above what they call.

use analysis::profile::{Node, tree};
use analysis::run::{Function, Profile, Run, Stack, TierProfile};
use serde::Serialize;

use crate::number;
use crate::sentences::{self, holders};
use crate::words;

/// Smaller parts are not drawn.
const SHARE_MIN: f64 = 0.002;
/// Most parts that are drawn in all: a part is some 300 bytes of the page.
const NODES_MAX: usize = 2_200;
/// Most tiers that are drawn.
pub(super) const TIERS_MAX: usize = 8;

/// Size of the drawing.
const WIDTH: f64 = 1_100.0;
const ROW: f64 = 18.0;
/// Width of a character, on the safe side.
const LETTER: f64 = 7.0;

/// The section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    reading: String,
    troubles: Vec<String>,
    tiers: Vec<Graph>,
}

/// The drawing of one tier.
#[derive(Debug, Serialize)]
pub(super) struct Graph {
    pub(super) id: String,
    pub(super) heading: String,
    pub(super) sentence: String,
    pub(super) drawing: Drawing,
}

/// The stacks of one tier.
#[derive(Debug, Serialize)]
pub(super) struct Drawing {
    dropped: Option<String>,
    width: f64,
    height: f64,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    title: String,
    label: String,
    kernel: bool,
    x: String,
    y: f64,
    width: String,
}

/// The section; `None` without a profile.
pub(super) fn section(run: &Run) -> Option<Section> {
    let profile = run.profile.as_ref()?;
    let tiers: Vec<_> = profile.tiers.iter().take(TIERS_MAX).enumerate().collect();
    let nodes_max = NODES_MAX / tiers.len().max(1);
    Some(Section {
        reading: if tiers.is_empty() { String::new() } else { reading(profile) },
        troubles: sentences::profile_troubles(profile),
        tiers: tiers.into_iter().map(|(number, tier)| graph(number, tier, nodes_max)).collect(),
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

fn graph(number: usize, tier: &TierProfile, nodes_max: usize) -> Graph {
    let processes = holders::processes(&tier.processes);
    Graph {
        id: format!("flame-{number}"),
        heading: format!("{processes}, {} of a processor", number::percent(tier.cores)),
        sentence: sentences::profile_tier(tier),
        drawing: drawing((&tier.functions, &tier.stacks), nodes_max),
    }
}

/// Draws stacks with at most so many parts.
pub(super) fn drawing((functions, stacks): (&[Function], &[Stack]), nodes_max: usize) -> Drawing {
    let tree = tree(stacks, SHARE_MIN, nodes_max);
    let rows = tree.nodes.iter().map(|node| node.depth + 1).max().unwrap_or(0);
    let dropped = (tree.dropped > 0).then(|| {
        let below = number::percent(tree.share_min);
        format!("{} parts below {below} are not drawn.", number::count(tree.dropped as u64))
    });
    Drawing {
        dropped,
        width: WIDTH,
        height: rows as f64 * ROW,
        parts: tree.nodes.iter().filter_map(|node| part(functions, node)).collect(),
    }
}

fn part(functions: &[Function], node: &Node) -> Option<Part> {
    let function = functions.get(usize::try_from(node.function).ok()?)?;
    let name = sentences::short(&sentences::function(function));
    let width = node.share * WIDTH;
    let (share, own) = (number::percent(node.share), number::percent(node.own));
    let module = Some(sentences::short(&function.module)).filter(|module| !module.is_empty());
    let module = module.map_or_else(String::new, |module| format!(" ({module})"));
    Some(Part {
        title: format!("{name}{module}: {share}, itself {own}"),
        label: label(&name, width),
        kernel: function.kernel,
        x: format!("{:.1}", node.left * WIDTH),
        y: node.depth as f64 * ROW,
        width: format!("{width:.1}"),
    })
}

/// As much of a name as has room.
fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER) as usize;
    match name.chars().count() {
        _ if room < 3 => String::new(),
        letters if letters <= room => name.to_owned(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_to_its_room() {
        let cut = [100.0, 40.0, 20.0].map(|width| label("deflate_slow", width));
        assert_eq!(cut, ["deflate_slow", "def…", ""].map(str::to_owned));
    }
}
