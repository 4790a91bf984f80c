//! The host: its processors, the pressure on them, its memory, its listen queues.

use std::collections::BTreeMap;

use super::samples::{grown, growth};
use crate::counters::{Counters, Cpu, Tcp};
use crate::run::HostName;

/// The use of a host's processors and memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostUse {
    /// The host.
    pub name: HostName,
    /// One entry per processor, by number.
    pub cpus: Vec<CpuUse>,
    /// Share of the time some task waited for a processor.
    pub cpu_pressure: f64,
    /// Share of the time some task waited for a disk.
    pub io_pressure: f64,
    /// Share of the time some task waited for memory.
    pub memory_pressure: f64,
    /// Pages swapped in per second.
    pub swapped_in_per_s: f64,
    /// File pages read again soon after being evicted, per second.
    pub refaults_per_s: f64,
    /// Bytes paged in from block devices per second.
    pub paged_in_bytes_per_s: f64,
    /// Smallest share of memory that was available.
    pub memory_available: Option<f64>,
}

/// An account that lacks less than this share of the elapsed time is complete: it is kept in ticks of 10 ms.
const LACKS_TIME: f64 = 0.05;

/// Other work that is at most this share of soft interrupts, seen or not, is little.
const LITTLE_ELSE: f64 = 0.25;

/// The use of one processor, as shares of the elapsed time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuUse {
    /// The processor's number.
    pub number: u32,
    /// In user or kernel mode, with what the kernel's account lacks where that can only be soft interrupts.
    pub busy: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle while a task waited for a disk.
    pub iowait: f64,
    /// In soft interrupts, part of `busy`.
    pub softirq: f64,
    /// Packets dropped because its queue of them was full, per second.
    pub packets_dropped_per_s: f64,
    /// Soft interrupts of the network that used up their time with packets left, per second.
    pub squeezes_per_s: f64,
}

impl CpuUse {
    /// Busy share of what the hypervisor left of it.
    pub fn busy_of_available(&self) -> f64 {
        self.of_available(self.busy)
    }

    /// Share of what the hypervisor left of it that went to soft interrupts.
    pub fn softirq_of_available(&self) -> f64 {
        self.of_available(self.softirq)
    }

    fn of_available(&self, share: f64) -> f64 {
        let available = 1.0 - self.steal;
        if available > 0.0 { (share / available).min(1.0) } else { 0.0 }
    }
}

impl HostUse {
    /// Cores in use, all processors together.
    pub fn busy_cores(&self) -> f64 {
        self.cpus.iter().map(|cpu| cpu.busy).sum()
    }

    /// Cores the hypervisor left to this host.
    pub fn available_cores(&self) -> f64 {
        self.cpus.iter().map(|cpu| 1.0 - cpu.steal).sum()
    }

    /// Share of processor time the hypervisor took.
    pub fn steal(&self) -> f64 {
        if self.cpus.is_empty() { 0.0 } else { 1.0 - self.available_cores() / self.cpus.len() as f64 }
    }
}

pub(super) fn host(samples: &[&Counters], elapsed_us: f64) -> HostUse {
    let share = |read: fn(&Counters) -> u64| (grown(samples, read) as f64 / elapsed_us).min(1.0);
    let per_s = |read: fn(&Counters) -> u64| grown(samples, read) as f64 / elapsed_us * 1e6;
    HostUse {
        name: None,
        cpus: cpus(samples, elapsed_us),
        cpu_pressure: share(|sample| sample.pressure.cpu_some_us),
        io_pressure: share(|sample| sample.pressure.io_some_us),
        memory_pressure: share(|sample| sample.pressure.memory_some_us),
        swapped_in_per_s: per_s(|sample| sample.memory.swapped_in_pages),
        refaults_per_s: per_s(|sample| sample.memory.cache_refaults),
        paged_in_bytes_per_s: per_s(|sample| sample.memory.paged_in_bytes),
        memory_available: memory_available(samples),
    }
}

fn cpus(samples: &[&Counters], elapsed_us: f64) -> Vec<CpuUse> {
    let mut grown: BTreeMap<u32, Cpu> = BTreeMap::new();
    for pair in samples.windows(2) {
        for after in &pair[1].cpus {
            let Some(before) = pair[0].cpus.iter().find(|cpu| cpu.number == after.number) else { continue };
            add_growth(grown.entry(after.number).or_default(), before, after);
        }
    }
    grown.into_iter().map(|(number, cpu)| shares(number, &cpu, elapsed_us)).collect()
}

fn add_growth(sum: &mut Cpu, before: &Cpu, after: &Cpu) {
    let add = |sum: &mut u64, before: u64, after: u64| *sum = sum.saturating_add(growth(before, after));
    add(&mut sum.user_us, before.user_us, after.user_us);
    add(&mut sum.system_us, before.system_us, after.system_us);
    add(&mut sum.idle_us, before.idle_us, after.idle_us);
    add(&mut sum.iowait_us, before.iowait_us, after.iowait_us);
    add(&mut sum.steal_us, before.steal_us, after.steal_us);
    add(&mut sum.softirq_us, before.softirq_us, after.softirq_us);
    add(&mut sum.packets_dropped, before.packets_dropped, after.packets_dropped);
    add(&mut sum.squeezes, before.squeezes, after.squeezes);
}

/// Shares of the processor's own account of its time, which sums to the elapsed time but for the kernel's tick, once soft
/// interrupts are in it; using it as the denominator keeps every share within 0 to 1.
fn shares(number: u32, cpu: &Cpu, elapsed_us: f64) -> CpuUse {
    let parts = [cpu.user_us, cpu.system_us, cpu.idle_us, cpu.iowait_us, cpu.steal_us].map(|us| us as f64);
    let accounted = parts.iter().sum::<f64>();
    let unseen = unseen_softirqs(cpu, accounted, elapsed_us);
    let total = (accounted + unseen).max(1.0);
    let busy = (parts[0] + parts[1] + unseen) / total;
    let per_s = |count: u64| count as f64 / elapsed_us * 1e6;
    CpuUse {
        number,
        busy,
        steal: parts[4] / total,
        iowait: parts[3] / total,
        softirq: ((cpu.softirq_us as f64 + unseen) / total).min(busy),
        packets_dropped_per_s: per_s(cpu.packets_dropped),
        squeezes_per_s: per_s(cpu.squeezes),
    }
}

/// Of the time that a processor's account lacks, what went to soft interrupts, in microseconds: all of it where little else
/// was seen at work. A kernel that counts by ticks leaves out each interrupt that ends idleness, with the soft interrupts that
/// follow, yet measures idleness itself exactly. A hypervisor that takes time and does not say so takes it from other work,
/// which is seen.
fn unseen_softirqs(cpu: &Cpu, accounted_us: f64, elapsed_us: f64) -> f64 {
    let lacking_us = elapsed_us - accounted_us;
    let softirq_us = cpu.softirq_us as f64;
    let other_us = cpu.user_us as f64 + cpu.system_us as f64 - softirq_us;
    let lacks = lacking_us >= LACKS_TIME * elapsed_us;
    if lacks && other_us <= LITTLE_ELSE * (softirq_us + lacking_us) { lacking_us } else { 0.0 }
}

fn memory_available(samples: &[&Counters]) -> Option<f64> {
    samples
        .iter()
        .filter(|sample| sample.memory.total_bytes > 0)
        .map(|sample| (sample.memory.available_bytes as f64 / sample.memory.total_bytes as f64).min(1.0))
        .min_by(f64::total_cmp)
}

/// Listen queues during a step. Overflows and drops are the network namespace's: the kernel does not
/// count them per socket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listening {
    /// Connections that found a listen queue full, per second.
    pub overflows_per_s: f64,
    /// Connection attempts dropped by a listener, overflows included, per second.
    pub drops_per_s: f64,
    /// The fullest queue in any sample: (port, waiting, backlog).
    pub fullest: Option<(u16, u64, u64)>,
    /// Share of samples in which some queue was at least nine tenths full.
    pub full: f64,
    /// Handshakes of the generator's connections that had to be tried again, per second, beyond those that lost packets
    /// explain. Where the server is on another host, only this tells that it lets nobody in.
    pub retried_per_s: f64,
    /// Share of segments sent that had to be sent again.
    pub retransmitted: f64,
}

/// Handshakes are tried again by the loss of packets at most this many times as often as other segments are: either end may
/// lose one, and so few vary by chance.
const LOST_AT_MOST: f64 = 4.0;

/// A queue this full in a sample is counted as full: it empties and fills between samples.
const QUEUE_FULL: f64 = 0.9;

pub(super) fn listening(samples: &[&Counters], elapsed_us: f64) -> Listening {
    let per_s = |read: fn(&Counters) -> u64| grown(samples, read) as f64 / elapsed_us * 1e6;
    let sent = grown(samples, |sample| sample.tcp.segments_sent).max(1) as f64;
    let queues = samples.iter().flat_map(|sample| &sample.listeners).filter(|queue| queue.backlog > 0);
    let fill = |waiting: u64, backlog: u64| waiting as f64 / backlog as f64;
    let fullest = queues
        .map(|queue| (queue.port, queue.waiting, queue.backlog))
        .max_by(|a, b| fill(a.1, a.2).total_cmp(&fill(b.1, b.2)));
    let full = samples.iter().filter(|sample| {
        sample
            .listeners
            .iter()
            .any(|queue| queue.backlog > 0 && fill(queue.waiting, queue.backlog) >= QUEUE_FULL)
    });
    Listening {
        overflows_per_s: per_s(|sample| sample.tcp.listen_overflows),
        drops_per_s: per_s(|sample| sample.tcp.listen_drops),
        fullest,
        full: full.count() as f64 / samples.len().max(1) as f64,
        retried_per_s: retried(samples) / elapsed_us * 1e6,
        retransmitted: (grown(samples, |sample| sample.tcp.retransmits) as f64 / sent).min(1.0),
    }
}

/// Handshakes tried again beyond those that lost packets explain.
fn retried(samples: &[&Counters]) -> f64 {
    let of = |read: fn(&Tcp) -> u64| grown(samples, |sample| read(&sample.generator_tcp)) as f64;
    let retried = of(|tcp| tcp.handshakes_retried);
    let lost = (of(|tcp| tcp.retransmits) - retried).max(0.0) / of(|tcp| tcp.segments_sent).max(1.0);
    (retried - LOST_AT_MOST * lost * of(|tcp| tcp.opened)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_that_packet_loss_makes_fail_say_nothing_of_the_server() {
        let at = |at_us, (opened, retried), others| {
            let generator_tcp = Tcp {
                opened,
                handshakes_retried: retried,
                retransmits: retried + others,
                segments_sent: 10 * opened,
                ..Tcp::default()
            };
            Counters { at_us, generator_tcp, ..Counters::default() }
        };
        let per_s = |retried, others| {
            let (first, last) = (at(0, (0, 0), 0), at(2_000_000, (1_000, retried), others));
            listening(&[&first, &last], 2e6).retried_per_s
        };
        assert_eq!((per_s(0, 0), per_s(60, 0)), (0.0, 30.0));
        assert_eq!(per_s(20, 100), 0.0, "one segment in a hundred is lost, and two handshakes");
        assert!((per_s(200, 100) - 80.0).abs() < 1e-9, "of which forty may have been lost");
    }
}
