//! Where threads sleep: a table of each tier, and the kernel's stacks.

use std::borrow::Cow;

use analysis::run::{OffCpu, Run, TierOffCpu, Wait};
use serde::Serialize;

use super::flame::{Drawing, Graph, Room, Tier, drawings};
use super::profile::TIERS_MAX;
use super::table::{Cell, Column, Row, Table};
use crate::number;
use crate::sentences::{self, holders};

/// Most parts that are drawn in all.
const PARTS_MAX: usize = 300;

/// The section of the page about threads that sleep.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    reading: String,
    troubles: Vec<String>,
    tiers: Vec<Sleepers>,
    has_graphs: bool,
}

/// What threads of one tier were doing.
#[derive(Debug, Serialize)]
struct Sleepers {
    heading: String,
    sentence: String,
    table: Table,
    graph: Option<Graph>,
}

/// Where threads slept, with graphs of at most so many bytes; `None` where that was not seen.
pub(super) fn section(run: &Run, bytes: usize) -> Option<Section> {
    let seen = run.profile.as_ref()?.off_cpu.as_ref().filter(|seen| !seen.tiers.is_empty())?;
    let tiers = seen.tiers.get(..TIERS_MAX).unwrap_or(&seen.tiers);
    let to_draw = tiers.iter().map(|tier| Tier {
        title: format!("The kernel’s stacks of sleeping threads of {}", name(tier)),
        functions: &tier.functions,
        stacks: &tier.stacks,
    });
    let drawn = drawings(to_draw.collect(), Room { bytes, parts: PARTS_MAX });
    let shown = tiers.iter().zip(drawn).enumerate();
    let more = sentences::flame::more_tiers(seen.tiers.len() - tiers.len());
    Some(Section {
        reading: reading(seen),
        troubles: sentences::off_cpu_troubles(seen).into_iter().chain(more).collect(),
        tiers: shown.map(|(number, (tier, drawing))| sleepers(number, tier, drawing)).collect(),
        has_graphs: tiers.iter().any(|tier| !tier.stacks.is_empty()),
    })
}

fn name(tier: &TierOffCpu) -> Cow<'_, str> {
    holders::named_on(&tier.processes.name, &tier.processes.on)
}

fn reading(of: &OffCpu) -> String {
    format!(
        "What threads were doing, looked at {} times in {}: the share of the time of all threads of a tier, by system call and \
         by the kernel’s function (wchan). This is what was seen, and no cause: threads that wait for work sleep too.",
        number::count(of.looks),
        number::elapsed(of.elapsed_s)
    )
}

fn sleepers(number: usize, tier: &TierOffCpu, drawing: Drawing) -> Sleepers {
    let columns =
        [("Threads", false), ("System call", false), ("In the kernel", false), ("Share of time", true)];
    let column = |(heading, numeric)| if numeric { Column::numeric(heading) } else { Column::words(heading) };
    let graph = (!tier.stacks.is_empty()).then(|| Graph {
        id: format!("asleep-{number}"),
        heading: drawing.title.clone(),
        sentence: "Each part is as wide as its share of the time asleep.".to_owned(),
        drawing,
    });
    Sleepers {
        heading: holders::processes(&tier.processes),
        sentence: sentences::off_cpu_tier(tier),
        table: Table {
            id: format!("asleep-table-{number}"),
            caption: format!("What threads of {} were doing", name(tier)),
            columns: columns.into_iter().map(column).collect(),
            rows: tier.waits.iter().map(wait).collect(),
        },
        graph,
    }
}

fn wait(of: &Wait) -> Row {
    let word = |word: &Option<String>| {
        word.as_deref().map_or_else(Cell::missing, |word| Cell::words(sentences::short(word)))
    };
    let share = Cell::figure("profile.off_cpu.tiers.waits.share", of.share, number::percent(of.share));
    let cells = vec![Cell::words(sentences::off_cpu_state(of.state)), word(&of.call), word(&of.wchan), share];
    Row { marked: false, cells }
}
