//! Sentences about where CPU time went.

use analysis::run::{CpuTimeEvidence as Seen, TierDemand};

use super::core_noun;
use super::holders::processes;
use crate::number::{cores, count, percent, quantity, time};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::GrewWithLoad { users: number, cores: used } => format!(
            "At {} it used {} {}; its use grew with the load until throughput stopped growing.",
            users(*number),
            cores(*used),
            core_noun(*used)
        ),
        Seen::KernelTime { share } => {
            format!("{} of that CPU time was spent in the kernel.", percent(*share))
        }
        Seen::RunQueue { threads } => {
            format!("On average {} of its runnable threads waited for a processor.", quantity(*threads))
        }
        Seen::ShortLivedChildren { share } => {
            format!("{} of that CPU time was used by child processes that came and went.", percent(*share))
        }
        Seen::ThreadsOfOneName { of, name, threads, share, demand_us } => {
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
        Seen::ThreadsLeftOut { share, threads } => format!(
            "{} of that CPU time was spent in threads that were not looked at, because there are {} of them.",
            percent(*share),
            count(*threads)
        ),
        Seen::ShortLivedThreads { share } => {
            format!("{} of that CPU time was spent in threads that came and went.", percent(*share))
        }
        Seen::CpuByTier { tiers } => by_tier(tiers),
    }
}

fn by_tier(tiers: &[TierDemand]) -> String {
    let each = |tier: &TierDemand| format!("{} {}", processes(&tier.of), time(tier.demand_us));
    format!("CPU time of a request in each tier: {}.", tiers.iter().map(each).collect::<Vec<_>>().join(", "))
}
