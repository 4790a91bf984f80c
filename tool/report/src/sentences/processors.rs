//! Sentences about processors: who fills them, who shares them, and what their time was spent on.

use analysis::run::{Busy, CpuTimeEvidence, Processes, ProcessorEvidence, ShareEvidence, Shares, TierDemand};

use super::holders::processes;
use super::{at_saturation, core_noun};
use crate::number::{about, cores, count, percent, quantity, time};
use crate::words::users;

/// Processors and threads that are full.
pub(super) fn full(seen: &ProcessorEvidence) -> String {
    match seen {
        ProcessorEvidence::CpuBusy { of, busy, users, demand_us } => cpu_busy(of, *busy, *users, *demand_us),
        ProcessorEvidence::TooFewThreads { cores, threads } => format!(
            "It may use {} cores, but has only {} threads to use them with: more workers could use the rest.",
            count(*cores),
            count(*threads)
        ),
        ProcessorEvidence::ThreadFull { cores: may_use, thread, tid, others_cores } => {
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
        ProcessorEvidence::NeverAsleep { runnable, samples } => format!(
            "That thread was running or waiting to run in {} of {} samples, so it hardly ever waited for work; the rest \
             of the core went to interrupts or to waiting for a processor.",
            percent(*runnable),
            count(*samples)
        ),
        ProcessorEvidence::GlobalLock { program, cores: may_use } => format!(
            "It may use {} cores, but {program} lets one thread of a process compute at a time: the others wait for its \
             global lock.",
            count(*may_use)
        ),
        ProcessorEvidence::OneThreadAtATime { threads, cores, runnable, samples } => {
            one_at_a_time(*threads, *cores, *runnable, *samples)
        }
    }
}

fn one_at_a_time(threads: u64, cores: u64, runnable: f64, samples: u64) -> String {
    let found = match samples {
        0 => String::new(),
        _ => format!(
            " One of them was running or waiting to run in {} of {} samples; threads that work independently would all \
             have been asleep in many of them.",
            percent(runnable),
            count(samples)
        ),
    };
    format!(
        "{} of its threads worked and it may use {} cores, yet together they never used more than about one: they run one \
         at a time, as behind a global lock (an interpreter's, or a runtime told to use one processor).{found}",
        count(threads),
        count(cores)
    )
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

/// Processors that several share, or that a quota limits.
pub(super) fn shared(seen: &ShareEvidence) -> String {
    match seen {
        ShareEvidence::QuotaSpent { of, cgroup, cores: quota, spent, stopped_periods, users, demand_us } => {
            format!(
                "{} used {} of its CPU quota of {} {} (cgroup {cgroup}) and was stopped in {} of the periods, {}; each \
             request costs it {} of CPU.",
                processes(of),
                percent(*spent),
                cores(*quota),
                core_noun(*quota),
                percent(*stopped_periods),
                at_saturation(*users),
                time(*demand_us)
            )
        }
        ShareEvidence::QuotaHeldBack { cores: more } => {
            format!(
                "Without the quota it would have run on up to {} more {}.",
                cores(*more),
                core_noun(*more)
            )
        }
        ShareEvidence::FullWithTiers { of, other_tiers, shares, demand_us } => format!(
            "{}: {} {}, the load generator {}, everything else {}; each request costs the tiers {} of CPU.",
            all_full(shares),
            if *other_tiers {
                format!("{} and the other tiers use", processes(of))
            } else {
                format!("{} uses", processes(of))
            },
            cores(shares.tiers),
            cores(shares.generator),
            cores(shares.others),
            time(*demand_us)
        ),
        ShareEvidence::FullWithGenerator { shares } => format!(
            "{}: the load generator uses {}, the server and its tiers only {}.",
            all_full(shares),
            cores(shares.generator),
            cores(shares.tiers)
        ),
        ShareEvidence::FullWithOthers { shares } => format!(
            "{}: processes that are not part of the test use {}, whatever the load; the server and its tiers use {}, the \
             load generator {}.",
            all_full(shares),
            cores(shares.others),
            cores(shares.tiers),
            cores(shares.generator)
        ),
        ShareEvidence::WithoutGenerator { throughput_per_s } => format!(
            "The generator takes part of what the server could use: with these processors to itself the server would \
             reach about {} req/s.",
            about(*throughput_per_s)
        ),
        ShareEvidence::UnseenWork => {
            "What everything else used came and went with the load: children too short-lived to be seen, \
                             interrupts, or processes not recognised as the server's."
                .to_owned()
        }
    }
}

/// `All 2 cores are full`, as the beginning of a sentence.
fn all_full(shares: &Shares) -> String {
    if shares.available <= 1.0 {
        "The one core that the server may use is full".to_owned()
    } else {
        format!("All {} cores are full", cores(shares.available))
    }
}

/// Where CPU time went.
pub(super) fn cpu_time(seen: &CpuTimeEvidence) -> String {
    match seen {
        CpuTimeEvidence::GrewWithLoad { users: 0, cores: used } => {
            format!("Before the load began it used {} {}.", cores(*used), core_noun(*used))
        }
        CpuTimeEvidence::GrewWithLoad { users: number, cores: used } => format!(
            "At {} it used {} {}; its use grew with the load until throughput stopped growing.",
            users(*number),
            cores(*used),
            core_noun(*used)
        ),
        CpuTimeEvidence::KernelTime { share } => {
            format!("{} of that CPU time was spent in the kernel.", percent(*share))
        }
        CpuTimeEvidence::RunQueue { threads } => {
            format!("On average {} of its runnable threads waited for a processor.", quantity(*threads))
        }
        CpuTimeEvidence::ShortLivedChildren { share } => {
            format!("{} of that CPU time was used by child processes that came and went.", percent(*share))
        }
        CpuTimeEvidence::ThreadsOfOneName { of, name, threads, share, demand_us } => {
            let threads = match threads {
                None => "threads".to_owned(),
                Some(0 | 1) => "one thread".to_owned(),
                Some(many) => format!("{} threads", count(*many)),
            };
            format!(
                "Of the CPU time of {}, {} was spent in {threads} named `{name}`: {} of each request.",
                processes(of),
                percent(*share),
                time(*demand_us)
            )
        }
        CpuTimeEvidence::ThreadsLeftOut { share, threads } => format!(
            "{} of that CPU time was spent in threads that were not sampled, because there are {} of them.",
            percent(*share),
            count(*threads)
        ),
        CpuTimeEvidence::ShortLivedThreads { share } => {
            format!("{} of that CPU time was spent in threads that came and went.", percent(*share))
        }
        CpuTimeEvidence::CollectorThreads { of, name, cores: used } => format!(
            "Threads of {} named `{name}` used {} {} on average: its garbage collector stops all other threads meanwhile.",
            processes(of),
            cores(*used),
            core_noun(*used)
        ),
        CpuTimeEvidence::WorkedInPauses { of, cores: used } => format!(
            "{} used {} {} on average, more than there was time for between these pauses: it worked while nobody was \
             answered, as a garbage collector does.",
            processes(of),
            cores(*used),
            core_noun(*used)
        ),
        CpuTimeEvidence::CpuByTier { tiers } => by_tier(tiers),
    }
}

fn by_tier(tiers: &[TierDemand]) -> String {
    let each = |tier: &TierDemand| format!("{} {}", processes(&tier.of), time(tier.demand_us));
    format!("CPU time of a request in each tier: {}.", tiers.iter().map(each).collect::<Vec<_>>().join(", "))
}
