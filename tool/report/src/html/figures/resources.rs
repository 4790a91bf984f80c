//! Utilisation of resources against users.

use std::borrow::Cow;

use analysis::run::{Identity, Resource, ResourceKind, Run, Step, Unit};

use super::{Figure, notes, saturation, step_rows, users_axis, users_cell};
use crate::axis::Axis;
use crate::html::chart::{Plot, Series};
use crate::html::table::{Cell, Column, Row, Table};
use crate::number;
use crate::sentences::holders;
use crate::words;

/// The most resources that are drawn; the table has them all.
const RESOURCES_MAX: usize = 6;

pub(super) fn resources(run: &Run) -> Option<Figure> {
    const CLASSES: [&str; RESOURCES_MAX] = ["main", "line-2", "line-3", "line-4", "line-5", "line-6"];
    let all = distinct_resources(run);
    let series = all.iter().zip(CLASSES).map(|(key, class)| Series {
        class,
        name: key.name_among(&all),
        short_name: key.short_name_among(&all),
        values: run
            .steps
            .iter()
            .filter_map(|step| Some((f64::from(step.users), key.of(step)?.utilization)))
            .collect(),
        intervals: Vec::new(),
    });
    let plot = Plot {
        id: "resources".into(),
        title: "Utilisation of resources against users".into(),
        description: "Busy share of each resource. The table beside the chart has every value.".into(),
        y_name: "utilisation".into(),
        x_name: "users",
        x: users_axis(run),
        y: Axis::from_zero([1.0]),
        y_tick: number::percent,
        series: series.collect(),
        saturation: saturation(run),
        notes: notes(run, busiest_note),
    };
    let rest = match all.len().saturating_sub(RESOURCES_MAX) {
        0 => "",
        1 => " One more is in the table.",
        _ => " The others are in the table.",
    };
    let reading = format!("How busy each resource is, of what its holder could use.{rest}");
    (!all.is_empty()).then(|| Figure::new(&plot, "Resources", reading, resources_table(run, &all)))
}

fn busiest_note(step: &Step) -> String {
    let busiest = step.resources.iter().take(3);
    let shares = busiest.map(|r| format!("{} {}", holders::resource_name(r), number::percent(r.utilization)));
    shares.collect::<Vec<_>>().join(", ")
}

fn resources_table(run: &Run, all: &[Key]) -> Table {
    let at = run.verdict_step();
    let rows = all.iter().map(|key| {
        let resource = at.and_then(|step| key.of(step));
        let share = resource.map_or_else(Cell::missing, |resource| {
            Cell::figure("utilization", resource.utilization, number::percent(resource.utilization))
        });
        let used = resource.map_or_else(|| number::MISSING.into(), used);
        Row { marked: key.is_bottleneck(run), cells: vec![key.cell(), share, Cell::words(used)] }
    });
    let users = at.map_or_else(String::new, |step| words::users(step.users));
    Table {
        id: "resources-table".into(),
        caption: format!("Resources at {users}"),
        columns: vec![Column::words("Resource"), Column::numeric("Utilisation"), Column::numeric("In use")],
        rows: rows.collect(),
    }
}

fn used(resource: &Resource) -> String {
    let Resource { used, capacity, unit, .. } = resource;
    let one = *capacity == 1.0;
    let name = match unit {
        Unit::BitsPerSecond => {
            return format!(
                "{} of {}",
                number::prefixed(*used, "bit/s"),
                number::prefixed(*capacity, "bit/s")
            );
        }
        Unit::Cores if one => "core",
        Unit::Threads if one => "thread",
        Unit::Devices if one => "device",
        Unit::Sessions if one => "session",
        unit => unit.as_str(),
    };
    format!("{} of {} {name}", number::plain(*used), number::tick(*capacity)).trim_end().to_owned()
}

/// Utilisation of every resource at every step. For a single step, how much of each is in use as well.
pub(in crate::html) fn utilization_table(run: &Run) -> Option<Table> {
    let all = distinct_resources(run);
    if run.steps.len() == 1 && !all.is_empty() {
        return Some(resources_table(run, &all));
    }
    let row = |step: &Step| {
        let shares = all.iter().map(|key| {
            key.of(step).map_or_else(Cell::missing, |r| {
                Cell::figure("utilization", r.utilization, number::percent(r.utilization))
            })
        });
        std::iter::once(users_cell(step)).chain(shares).collect()
    };
    (!all.is_empty()).then(|| Table {
        id: "utilization-table".into(),
        caption: "Utilisation of every resource at each number of users".into(),
        columns: std::iter::once("Users".to_owned())
            .chain(all.iter().map(|key| key.name_among(&all)))
            .map(Column::numeric)
            .collect(),
        rows: step_rows(run, row),
    })
}

/// Identifies a resource.
#[derive(Debug, PartialEq)]
struct Key {
    kind: ResourceKind,
    identity: Option<Identity>,
}

impl Key {
    fn of<'a>(&self, step: &'a Step) -> Option<&'a Resource> {
        step.resources.iter().find(|r| r.kind == self.kind && r.identity == self.identity)
    }

    fn is_bottleneck(&self, run: &Run) -> bool {
        let bottleneck = &run.verdict.bottleneck;
        self.kind == bottleneck.kind && self.identity == bottleneck.identity
    }

    fn cell(&self) -> Cell {
        let kind = words::kind(self.kind);
        Cell::words(self.name()).with_note(if self.identity.is_none() { "" } else { kind })
    }

    /// The name, with the kind where another resource has the same holder.
    fn name_among(&self, all: &[Self]) -> String {
        self.with_kind_among(all, self.name())
    }

    /// The same without the number of the process, which says least.
    fn short_name_among(&self, all: &[Self]) -> String {
        self.with_kind_among(all, self.identity.as_ref().map_or_else(|| self.name(), holders::short_name))
    }

    fn with_kind_among(&self, all: &[Self], name: Cow<'_, str>) -> String {
        match all.iter().filter(|key| key.name() == self.name()).count() {
            0 | 1 => name.into_owned(),
            _ => format!("{name}, {}", words::kind(self.kind)),
        }
    }

    fn name(&self) -> Cow<'_, str> {
        holders::holder_or_kind(self.kind, self.identity.as_ref())
    }
}

/// The run's resources: the bottleneck first, then those of the verdict's step in their order, then those of other steps.
fn distinct_resources(run: &Run) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for resource in run.verdict_step().into_iter().chain(&run.steps).flat_map(|step| &step.resources) {
        let key = Key { kind: resource.kind, identity: resource.identity.clone() };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| !key.is_bottleneck(run));
    keys
}
