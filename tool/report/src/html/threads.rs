//! The threads that used the CPU time of the bottleneck's holder.

use analysis::run::{NamedThreads, Run};

use super::table::{Cell, Column, Row, Table};
use crate::number;
use crate::sentences::holders;

/// The threads by name. `None` if their names say no more than that of their process.
pub(super) fn table(run: &Run) -> Option<Table> {
    let bottleneck = &run.verdict.bottleneck;
    let threads = bottleneck.threads.as_ref()?;
    let mut rows: Vec<Row> = threads.names.iter().map(named).collect();
    rows.extend(threads.listed_rest().map(rest));
    Some(Table {
        id: "threads-table".into(),
        caption: format!(
            "CPU time of {} by the names of its threads, at N* and beyond",
            holders::name_or_nothing(bottleneck.identity.as_ref())
        ),
        columns: vec![
            Column::words("Threads"),
            Column::numeric("At once"),
            Column::numeric("Share"),
            Column::numeric("Per request"),
        ],
        rows,
    })
}

fn named(threads: &NamedThreads) -> Row {
    let demand = threads
        .demand_us
        .map_or_else(Cell::missing, |us| Cell::figure("threads.demand_us", us, number::time(us)));
    Row {
        marked: false,
        cells: vec![
            Cell::words(&threads.name),
            Cell::figure("threads.threads", threads.threads, number::count(threads.threads)),
            share(threads.share),
            demand,
        ],
    }
}

fn rest(share_of_rest: f64) -> Row {
    let name =
        Cell::words("others").with_note("started or ended between samples, too many to sample, or below 1 %");
    Row { marked: false, cells: vec![name, Cell::missing(), share(share_of_rest), Cell::missing()] }
}

fn share(share: f64) -> Cell {
    Cell::figure("threads.share", share, number::percent(share))
}
