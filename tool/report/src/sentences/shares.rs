//! Sentences about processors that several share, or that a quota limits.

use analysis::run::{ShareEvidence as Seen, Shares};

use super::holders::processes;
use super::{at_saturation, core_noun};
use crate::number::{about, cores, percent, time};

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::QuotaSpent { of, cgroup, cores: quota, spent, stopped_periods, users, demand_us } => format!(
            "{} used {} of its CPU quota of {} {} (cgroup {cgroup}) and was stopped in {} of the periods, {}; each \
             request costs it {} of CPU.",
            processes(of),
            percent(*spent),
            cores(*quota),
            core_noun(*quota),
            percent(*stopped_periods),
            at_saturation(*users),
            time(*demand_us)
        ),
        Seen::QuotaHeldBack { cores: more } => {
            format!(
                "Without the quota it would have run on up to {} more {}.",
                cores(*more),
                core_noun(*more)
            )
        }
        Seen::FullWithTiers { of, other_tiers, shares, demand_us } => format!(
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
        Seen::FullWithGenerator { shares } => format!(
            "{}: the load generator uses {}, the server and its tiers only {}.",
            all_full(shares),
            cores(shares.generator),
            cores(shares.tiers)
        ),
        Seen::FullWithOthers { shares } => format!(
            "{}: processes that are not part of the test use {}, whatever the load; the server and its tiers use {}, the \
             load generator {}.",
            all_full(shares),
            cores(shares.others),
            cores(shares.tiers),
            cores(shares.generator)
        ),
        Seen::WithoutGenerator { throughput_per_s } => format!(
            "The generator takes part of what the server could use: with these processors to itself the server would \
             reach about {} req/s.",
            about(*throughput_per_s)
        ),
        Seen::UnseenWork => {
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
