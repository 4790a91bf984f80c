//! Sentences about processors and threads that are full.

use analysis::run::{Busy, Processes, ProcessorEvidence as Seen};

use super::at_saturation;
use super::holders::processes;
use crate::number::{cores, count, percent, time};

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::CpuBusy { of, busy, users, demand_us } => cpu_busy(of, *busy, *users, *demand_us),
        Seen::TooFewThreads { cores, threads } => format!(
            "It may use {} cores, but has only {} threads to use them with: more workers could use the rest.",
            count(*cores),
            count(*threads)
        ),
        Seen::ThreadFull { cores: may_use, thread, tid, others_cores } => {
            let thread = if thread.is_empty() { tid.to_string() } else { format!("{thread} ({tid})") };
            let others = if seen.is_of_one_thread() {
                "its other threads did next to nothing".to_owned()
            } else {
                format!("its other threads together used {}", cores(*others_cores))
            };
            format!(
                "It may use {} cores, but its thread {thread} can use only one; {others}.",
                count(*may_use)
            )
        }
        Seen::NeverAsleep { runnable, samples } => format!(
            "That thread was running or waiting to run at {} of {} looks, so it hardly ever waited for work; the rest \
             of the core went to interrupts or to waiting for a processor.",
            percent(*runnable),
            count(*samples)
        ),
        Seen::OneThreadAtATime { threads, cores, waiting_for_lock } => format!(
            "{} of its threads worked and it may use {} cores, yet together they never used more than about one: they \
             run one at a time, as behind a global lock (an interpreter's, or a runtime told to use one processor). {} of \
             the looks at its threads found them waiting for a lock.",
            count(*threads),
            count(*cores),
            percent(*waiting_for_lock)
        ),
    }
}

fn cpu_busy(of: &Processes, busy: Busy, users: u32, demand_us: f64) -> String {
    let how = match busy {
        Busy::Cores { share, cores: 0 | 1 } => format!("{} of the one core it may use", percent(share)),
        Busy::Cores { share, cores } => {
            format!("{} of the {} cores it may use", percent(share), count(cores))
        }
        Busy::EachThread { share, threads } => {
            format!("{} of one core in each of {} threads", percent(share), count(threads))
        }
        Busy::OneThread { share } => format!("{} of one core, all in one thread", percent(share)),
        Busy::OneThreadAndInterrupts { share } => format!("{} of one core in one thread", percent(share)),
        Busy::OneAtATime { cores: used } => {
            format!("{} times one core, all its threads together", cores(used))
        }
    };
    format!(
        "{} is busy {how}, {}; each request costs it {} of CPU.",
        processes(of),
        at_saturation(users),
        time(demand_us)
    )
}
