//! Samples of the host: processors, disks, pressure, memory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use analysis::counters::{Cpu, Disk, Memory, Pressure};

use crate::clock::ticks_per_second;
use crate::kernel_files::{KernelPaths, SampledFile};
use crate::proc::{host, softnet};

/// Block devices that are really memory or files.
const NOT_DISKS: [&str; 3] = ["loop", "ram", "zram"];

/// Samples the host.
#[derive(Debug)]
pub(super) struct HostSampler {
    stat: SampledFile,
    softnet: SampledFile,
    diskstats: SampledFile,
    meminfo: SampledFile,
    vmstat: SampledFile,
    cpu_pressure: SampledFile,
    io_pressure: SampledFile,
    memory_pressure: SampledFile,
    block: PathBuf,
    /// The devices seen so far, and whether each is a whole disk.
    whole: BTreeMap<String, bool>,
}

impl HostSampler {
    pub(super) fn new(paths: &KernelPaths) -> Self {
        let file = |name: &str| SampledFile::new(paths.proc.join(name));
        Self {
            stat: file("stat"),
            softnet: file("net/softnet_stat"),
            diskstats: file("diskstats"),
            meminfo: file("meminfo"),
            vmstat: file("vmstat"),
            cpu_pressure: file("pressure/cpu"),
            io_pressure: file("pressure/io"),
            memory_pressure: file("pressure/memory"),
            block: paths.sys.join("block"),
            whole: BTreeMap::new(),
        }
    }

    pub(super) fn cpus(&mut self) -> Vec<Cpu> {
        let mut cpus = host::cpus(&self.stat.text(), ticks_per_second());
        softnet::add_to(&mut cpus, &softnet::softnet(&self.softnet.text()));
        cpus
    }

    /// Whole devices only, because a partition's traffic is its device's too.
    pub(super) fn disks(&mut self) -> Vec<Disk> {
        let mut disks = host::disks(&self.diskstats.text());
        disks.retain(|disk| self.is_whole(&disk.name));
        disks
    }

    fn is_whole(&mut self, name: &str) -> bool {
        if let Some(known) = self.whole.get(name) {
            return *known;
        }
        // A slash in a device's name is an exclamation mark in /sys.
        let listed = self.block.join(name.replace('/', "!")).exists();
        let whole = listed && !NOT_DISKS.iter().any(|prefix| is_numbered(name, prefix));
        self.whole.insert(name.to_owned(), whole);
        whole
    }

    pub(super) fn pressure(&mut self) -> Pressure {
        let (cpu, io, memory) =
            (self.cpu_pressure.text(), self.io_pressure.text(), self.memory_pressure.text());
        Pressure {
            cpu_some_us: host::pressure_total_us(&cpu, "some"),
            io_some_us: host::pressure_total_us(&io, "some"),
            io_full_us: host::pressure_total_us(&io, "full"),
            memory_some_us: host::pressure_total_us(&memory, "some"),
            memory_full_us: host::pressure_total_us(&memory, "full"),
        }
    }

    pub(super) fn memory(&mut self) -> Memory {
        host::memory(&self.meminfo.text(), &self.vmstat.text())
    }
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_real_devices_are_disks() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir_all(at("proc")).unwrap();
        for name in ["vda", "loop0", "zram0", "ram1", "cciss!c0d0"] {
            std::fs::create_dir_all(at("sys/block").join(name)).unwrap();
        }
        let line = |name: &str| format!("1 0 {name} 1 1 1 1 1 1 1 1 0 1 1\n");
        let text: String = ["vda", "vda1", "loop0", "zram0", "ram1", "cciss/c0d0"].map(line).concat();
        std::fs::write(at("proc/diskstats"), text).unwrap();
        let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
        let names: Vec<_> = HostSampler::new(&paths).disks().into_iter().map(|disk| disk.name).collect();
        assert_eq!(names, ["vda", "cciss/c0d0"]);
    }

    #[test]
    fn a_host_that_tells_nothing_gives_zeros() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
        let mut machine = HostSampler::new(&paths);
        assert!(machine.cpus().is_empty() && machine.disks().is_empty());
        assert_eq!((machine.pressure(), machine.memory()), (Pressure::default(), Memory::default()));
    }
}
