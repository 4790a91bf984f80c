//! Sentences about times in which nothing was answered.

use analysis::run::{Identity, Meanwhile, Stalls};

use super::core_noun;
use super::holders::{name, processes, the_host};
use crate::number::{cores, count, percent, time};
use crate::words::users;

/// How much of the time, how long at most, and what went on meanwhile.
pub(super) fn sentence(stalls: &Stalls) -> String {
    let Stalls { users: number, share, longest_s, times, meanwhile: then } = stalls;
    format!(
        "At {} nothing was answered in {} of the time, though requests were under way: {} times, for up to {}, which chance \
         does not explain. {}",
        users(*number),
        percent(*share),
        count(*times),
        time(longest_s * 1e6),
        meanwhile(then)
    )
}

fn meanwhile(what: &Meanwhile) -> String {
    match what {
        Meanwhile::Throttled { of, cgroup, share } => format!(
            "For {} of that time {} was kept stopped: its cgroup {cgroup} had used up its CPU quota.",
            percent(*share),
            processes(of)
        ),
        Meanwhile::Collected { of, threads, cores: used } => format!(
            "Threads of {} named `{threads}` used {} {} meanwhile: they collect garbage.",
            processes(of),
            cores(*used),
            core_noun(*used)
        ),
        Meanwhile::MemoryAwaited { on, share } => format!(
            "For {} of that time some task on {} waited for memory, until some was reclaimed or came back.",
            percent(*share),
            the_host(on)
        ),
        Meanwhile::DiskAwaited { on, device: Some(device), share } => format!(
            "For {} of that time the disk {} was at work: look for what is written or flushed (fsync) then.",
            percent(*share),
            name(&Identity::Disk { name: device.clone(), on: on.clone() })
        ),
        Meanwhile::DiskAwaited { on, device: None, share } => format!(
            "For {} of that time some task on {} waited for a disk: look for what is written or flushed (fsync) then.",
            percent(*share),
            the_host(on)
        ),
        Meanwhile::WorkedOn { of, share } => format!(
            "For {} of that time {} worked on, as its runtime does when it collects garbage, or in a long request that holds \
             up all others.",
            percent(*share),
            processes(of)
        ),
        Meanwhile::NothingSeen => {
            "No garbage collector, CPU quota, lack of memory or disk was seen to go with it: the server pauses by itself, is \
             stopped from outside, or single requests hold up all others."
                .to_owned()
        }
        Meanwhile::NotWatched => "What the server did meanwhile was not watched.".to_owned(),
    }
}
