//! Samples and looks as they may be believed: of bounded size, and with names that can be shown.

use analysis::counters::{
    CLIENTS_MAX, ConnectionLimits, Container, Counters, CpuQuota, Hop, IoLimit, MemoryLimit, Process,
    SAMPLED_THREADS_MAX, ServerAddress, ThreadLook,
};

use super::in_one_line;

/// No kernel can be built for more processors that are common.
const PROCESSORS_MAX: usize = 8_192;

/// Processes of servers and tiers: more than a server usually has that gives each connection a process.
const PROCESSES_MAX: usize = 16_384;

/// Disks, and interfaces, of one host.
const DEVICES_MAX: usize = 4_096;

/// Sockets that listen, with room to spare.
const LISTENERS_MAX: usize = 16_384;

/// Addresses of which connections are told, with room for all that a server is known by.
const HOPS_MAX: usize = 1_024;

/// Limits of cgroups, of one process or of all.
const LIMITS_MAX: usize = 1_024;

/// Network namespaces of which limits on connections are told: two, with room to spare.
const NAMESPACES_MAX: usize = 8;

/// Threads of one process of a look, with room to spare.
const LOOKED_AT_MAX: usize = 1_024;

/// The longest name of a process, a thread or a disk.
const NAME_CHARS_MAX: usize = 64;

/// The longest name of a file, and of what people name.
const LONG_NAME_CHARS_MAX: usize = 256;

/// The longest path of a cgroup. They are nested by whoever runs containers.
const CGROUP_CHARS_MAX: usize = 1_024;

/// The longest path of a unix socket: what the kernel takes.
const SOCKET_CHARS_MAX: usize = 108;

/// What a piece of memory takes besides what is in it.
const PIECE_BYTES: usize = 16;

/// The same cut to what may be kept and shown.
pub(crate) fn bounded_sample(mut sample: Counters) -> Counters {
    cut(&mut sample.cpus, PROCESSORS_MAX);
    cut(&mut sample.processes, PROCESSES_MAX);
    sample.processes.iter_mut().for_each(bound_process);
    cut(&mut sample.disks, DEVICES_MAX);
    sample.disks.iter_mut().for_each(|disk| bound_name(&mut disk.name, NAME_CHARS_MAX));
    cut(&mut sample.interfaces, DEVICES_MAX);
    sample.interfaces.iter_mut().for_each(|interface| bound_name(&mut interface.name, LONG_NAME_CHARS_MAX));
    cut(&mut sample.listeners, LISTENERS_MAX);
    if let Some(hops) = &mut sample.hops {
        cut(hops, HOPS_MAX);
        hops.iter_mut().for_each(bound_hop);
    }
    if let Some(limits) = &mut sample.memory_limits {
        cut(limits, LIMITS_MAX);
        limits.iter_mut().for_each(bound_memory_limit);
    }
    if let Some(limits) = &mut sample.connection_limits {
        cut(limits, NAMESPACES_MAX);
    }
    sample
}

/// The same cut to what may be kept and shown.
pub(crate) fn bounded_look(mut look: ThreadLook) -> ThreadLook {
    cut(&mut look.processes, PROCESSES_MAX);
    for process in &mut look.processes {
        bound_name(&mut process.name, NAME_CHARS_MAX);
        cut(&mut process.futexes, LOOKED_AT_MAX);
    }
    look
}

/// How much memory a sample takes, bytes.
pub(crate) fn sample_bytes(sample: &Counters) -> usize {
    let hops = sample.hops.as_deref().unwrap_or_default();
    let memory_limits = sample.memory_limits.as_deref().unwrap_or_default();
    let connection_limits: &[ConnectionLimits] = sample.connection_limits.as_deref().unwrap_or_default();
    size_of::<Counters>()
        + list_bytes(&sample.cpus, |_| 0)
        + list_bytes(&sample.processes, process_bytes)
        + list_bytes(&sample.disks, |disk| name_bytes(&disk.name))
        + list_bytes(&sample.interfaces, |interface| name_bytes(&interface.name))
        + list_bytes(&sample.listeners, |_| 0)
        + list_bytes(hops, hop_bytes)
        + list_bytes(memory_limits, |limit| name_bytes(&limit.cgroup) + list_bytes(&limit.pids, |_| 0))
        + list_bytes(connection_limits, |_| 0)
}

/// How much memory a look takes, bytes.
pub(crate) fn look_bytes(look: &ThreadLook) -> usize {
    let processes = list_bytes(&look.processes, |process| {
        name_bytes(&process.name) + list_bytes(&process.futexes, |_| 0)
    });
    size_of::<ThreadLook>() + processes
}

/// Leaves so many at most, and gives the memory of the others back.
fn cut<T>(list: &mut Vec<T>, most: usize) {
    if list.len() > most {
        list.truncate(most);
        list.shrink_to_fit();
    }
}

fn bound_name(name: &mut String, chars_max: usize) {
    if name.len() > chars_max || name.contains(char::is_control) {
        *name = in_one_line(name, chars_max);
    }
}

fn bound_process(process: &mut Process) {
    bound_name(&mut process.name, NAME_CHARS_MAX);
    bound_name(&mut process.program, LONG_NAME_CHARS_MAX);
    cut(&mut process.threads, SAMPLED_THREADS_MAX);
    process.threads.iter_mut().for_each(|thread| bound_name(&mut thread.name, NAME_CHARS_MAX));
    cut(&mut process.allowed_cpu_numbers, PROCESSORS_MAX);
    process.cpu_quota = process.cpu_quota.take().and_then(bounded_quota);
    cut(&mut process.io_limits, LIMITS_MAX);
    process.io_limits.iter_mut().for_each(bound_io_limit);
    if let Some(Container { engine, id, name, pod }) = &mut process.container {
        let names = [engine, id].into_iter().chain(name).chain(pod);
        names.for_each(|name| bound_name(name, LONG_NAME_CHARS_MAX));
    }
    process.unit.iter_mut().for_each(|unit| bound_name(unit, LONG_NAME_CHARS_MAX));
}

/// A limit that is a number.
fn bounded_quota(mut quota: CpuQuota) -> Option<CpuQuota> {
    bound_name(&mut quota.cgroup, CGROUP_CHARS_MAX);
    (quota.cores.is_finite() && quota.cores > 0.0).then_some(quota)
}

fn bound_io_limit(limit: &mut IoLimit) {
    bound_name(&mut limit.cgroup, CGROUP_CHARS_MAX);
    bound_name(&mut limit.device, NAME_CHARS_MAX);
}

fn bound_hop(hop: &mut Hop) {
    if let ServerAddress::Unix { path } = &mut hop.address {
        bound_name(path, SOCKET_CHARS_MAX);
    }
    cut(&mut hop.callers, PROCESSES_MAX);
    cut(&mut hop.clients, CLIENTS_MAX);
}

fn bound_memory_limit(limit: &mut MemoryLimit) {
    bound_name(&mut limit.cgroup, CGROUP_CHARS_MAX);
    cut(&mut limit.pids, PROCESSES_MAX);
}

fn process_bytes(process: &Process) -> usize {
    let container = process.container.iter();
    let of_container =
        container.flat_map(|of| [Some(&of.engine), Some(&of.id), of.name.as_ref(), of.pod.as_ref()]);
    let quota = process.cpu_quota.as_ref().map(|quota| &quota.cgroup);
    let names = [Some(&process.name), Some(&process.program), process.unit.as_ref(), quota];
    list_bytes(&process.threads, |thread| name_bytes(&thread.name))
        + list_bytes(&process.allowed_cpu_numbers, |_| 0)
        + list_bytes(&process.io_limits, |limit| name_bytes(&limit.cgroup) + name_bytes(&limit.device))
        + names.into_iter().chain(of_container).flatten().map(|name| name_bytes(name)).sum::<usize>()
}

fn hop_bytes(hop: &Hop) -> usize {
    let path = if let ServerAddress::Unix { path } = &hop.address { name_bytes(path) } else { 0 };
    path + list_bytes(&hop.callers, |_| 0) + list_bytes(&hop.clients, |_| 0)
}

/// What a list takes, with what each of it holds elsewhere.
fn list_bytes<T>(list: &[T], elsewhere: impl Fn(&T) -> usize) -> usize {
    PIECE_BYTES + size_of_val(list) + list.iter().map(elsewhere).sum::<usize>()
}

fn name_bytes(name: &str) -> usize {
    if name.is_empty() { 0 } else { PIECE_BYTES + name.len() }
}

#[cfg(test)]
mod tests {
    use analysis::counters::{Cpu, Disk, Interface, ProcessLook, Thread};

    use super::*;

    fn odd() -> String {
        "a\n\x1b[31m".repeat(999)
    }

    /// More of everything than any host has, with names that nobody has.
    fn endless() -> Counters {
        let quota = |cores| CpuQuota { cgroup: odd(), cores, ..CpuQuota::default() };
        let container = Container { engine: odd(), id: odd(), name: Some(odd()), pod: Some(odd()) };
        let process = Process {
            name: odd(),
            program: odd(),
            unit: Some(odd()),
            threads: vec![Thread { name: odd(), ..Thread::default() }; 300],
            allowed_cpu_numbers: vec![7; 9_000],
            cpu_quota: Some(quota(f64::NAN)),
            io_limits: vec![IoLimit { cgroup: odd(), device: odd(), ..IoLimit::default() }; 2],
            container: Some(container),
            ..Process::default()
        };
        let limited = Process { cpu_quota: Some(quota(1.5)), ..Process::default() };
        let mut hop = Hop::without_connections(ServerAddress::Unix { path: odd() });
        hop.clients = vec![([10, 0, 0, 7], 80).into(); 999];
        Counters {
            cpus: vec![Cpu::default(); 9_000],
            processes: [vec![process, limited], vec![Process::default(); 20_000]].concat(),
            disks: vec![Disk { name: odd(), ..Disk::default() }; 2],
            interfaces: vec![Interface { name: odd(), ..Interface::default() }; 2],
            hops: Some(vec![hop; 1_100]),
            memory_limits: Some(vec![MemoryLimit { cgroup: odd(), ..MemoryLimit::default() }; 2_000]),
            connection_limits: Some(vec![ConnectionLimits::default(); 100_000]),
            ..Counters::default()
        }
    }

    #[test]
    fn a_sample_without_end_is_cut_to_what_can_be_kept_and_shown() {
        let sample = bounded_sample(endless());
        let [process, limited, ..] = &sample.processes[..] else { panic!("none is left") };
        let lengths = [sample.cpus.len(), sample.processes.len(), process.threads.len()];
        assert_eq!(lengths, [PROCESSORS_MAX, PROCESSES_MAX, SAMPLED_THREADS_MAX]);
        let (hops, limits) = (sample.hops.as_ref().unwrap(), sample.memory_limits.as_ref().unwrap());
        let lengths = [hops.len(), hops[0].clients.len(), limits.len(), process.allowed_cpu_numbers.len()];
        assert_eq!(lengths, [HOPS_MAX, CLIENTS_MAX, LIMITS_MAX, PROCESSORS_MAX]);
        let namespaces = sample.connection_limits.as_ref().unwrap();
        assert_eq!(namespaces.len(), NAMESPACES_MAX);
        assert!(namespaces.capacity() < 100, "{}", namespaces.capacity());
        assert_eq!(process.cpu_quota, None, "no limit is not a number");
        assert_eq!(limited.cpu_quota.as_ref().map(|quota| quota.cores), Some(1.5));
        let shown = format!("{process:?} {limited:?} {:?} {:?}", sample.disks, sample.interfaces);
        let shown = [shown, format!("{:?} {:?}", hops[0], limits[0])].concat();
        assert!(!shown.contains("\\n") && !shown.contains("\\u{"), "{shown}");
        assert_eq!(bounded_sample(sample.clone()), sample, "nothing is left to be cut");
    }

    #[test]
    fn a_look_without_end_is_cut_too() {
        let process = ProcessLook { name: odd(), futexes: vec![16; 9_000], ..ProcessLook::default() };
        let look = bounded_look(ThreadLook { at_us: 1, processes: vec![process; 2] });
        let [first, _] = &look.processes[..] else { panic!("{look:?}") };
        assert_eq!((first.futexes.len(), first.name.chars().count()), (LOOKED_AT_MAX, NAME_CHARS_MAX));
        assert!(!first.name.contains(char::is_control), "{:?}", first.name);
        assert!(look_bytes(&look) > 2 * LOOKED_AT_MAX * size_of::<u64>(), "{}", look_bytes(&look));
    }

    #[test]
    fn what_an_honest_host_tells_is_believed_as_it_is() {
        let thread = Thread { name: "worker-7".into(), ..Thread::default() };
        let process = Process { name: "nginx".into(), threads: vec![thread; 9], ..Process::default() };
        let sample = Counters { at_us: 5, processes: vec![process], ..Counters::default() };
        assert_eq!(bounded_sample(sample.clone()), sample);
    }

    /// A few bytes on the way may be a hundred in memory.
    #[test]
    fn what_a_sample_takes_in_memory_is_counted() {
        let limits = Some(vec![ConnectionLimits::default(); 1_000]);
        let small = Counters { connection_limits: limits, ..Counters::default() };
        assert!(sample_bytes(&small) > 1_000 * size_of::<ConnectionLimits>());
        let thread = Thread { name: "worker".into(), ..Thread::default() };
        let process = Process { threads: vec![thread; 1_000], ..Process::default() };
        let many = Counters { processes: vec![process], ..Counters::default() };
        assert!(sample_bytes(&many) > 1_000 * (size_of::<Thread>() + "worker".len()));
    }
}
