//! The far end profiles tiers that it watches: a thread that samples, has functions named, and tells what comes of it.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use analysis::profile::{HostProfile, Tier};
use analysis::run::ProfileTrouble;
use observe::{Profiling as Sampling, ProgramTables};

use crate::protocol::{ProfileOrder, Profiled, Report, TIERS_MAX};
use crate::serve::Output;
use crate::stream::named;

/// The longest that is sampled, whatever is asked for.
const MOST: Duration = Duration::from_secs(10);

/// Orders that wait.
const QUEUE: usize = 16;

/// What is to be done next.
enum Next {
    /// Sample the tiers of this order.
    Begin(ProfileOrder),
    /// Tell what was sampled by now.
    End,
}

/// A thread that profiles as it is told, one thing at a time.
pub(crate) struct Profiling {
    orders: SyncSender<Next>,
}

impl Profiling {
    /// Starts the thread, which waits for orders. Without tables there is nothing to name functions by, and that is told.
    pub(crate) fn start(tables: Option<ProgramTables>, output: Output) -> std::io::Result<Self> {
        let (orders, told) = sync_channel(QUEUE);
        named("nstar-profile", move || work(&told, tables, &output))?;
        Ok(Self { orders })
    }

    /// Begins with an order, of whose processes only those count that are watched. Returns whether there was room for it:
    /// nobody sends so many that there is none.
    pub(crate) fn begin(&self, mut order: ProfileOrder, watched: &BTreeSet<u32>) -> bool {
        order.tiers.truncate(TIERS_MAX);
        order.tiers.iter_mut().for_each(|pids| pids.retain(|pid| watched.contains(pid)));
        self.pass_on(Next::Begin(order))
    }

    /// Ends what is under way. Returns whether there was room for it.
    pub(crate) fn end(&self) -> bool {
        self.pass_on(Next::End)
    }

    fn pass_on(&self, next: Next) -> bool {
        !matches!(self.orders.try_send(next), Err(TrySendError::Full(_)))
    }
}

/// Does what it is told until nobody tells anything any more.
fn work(told: &Receiver<Next>, tables: Option<ProgramTables>, output: &Output) {
    let mut next = told.recv().ok();
    while let Some(order) = next {
        next = match order {
            Next::Begin(order) => profile(order, tables, (told, output)),
            // It was over before.
            Next::End => told.recv().ok(),
        };
    }
}

/// Samples, and tells what came of it. Returns what is to be done next.
fn profile(
    order: ProfileOrder,
    tables: Option<ProgramTables>,
    (told, output): (&Receiver<Next>, &Output),
) -> Option<Next> {
    let ProfileOrder { number, most_ms, tiers } = order;
    let tell = |sampled: HostProfile| {
        // Whoever reads nothing any more has ended the stream.
        let _ = output.report(&Report::Profiled(Profiled::new(number, sampled)));
        told.recv().ok()
    };
    let Some(tables) = tables else { return tell(HostProfile::without(ProfileTrouble::NotBuilt)) };
    let tiers = tiers.into_iter().map(|pids| Tier { pids, ..Tier::default() }).collect();
    let most = Duration::from_millis(most_ms.into()).min(MOST);
    let sampling = Sampling::start(tiers, most, tables);
    if !sampling.is_under_way() {
        return tell(sampling.finish());
    }
    match told.recv_timeout(most) {
        Ok(Next::End) | Err(RecvTimeoutError::Timeout) => tell(sampling.finish()),
        Ok(another @ Next::Begin(_)) => {
            sampling.abandon();
            Some(another)
        }
        Err(RecvTimeoutError::Disconnected) => {
            sampling.abandon();
            None
        }
    }
}
