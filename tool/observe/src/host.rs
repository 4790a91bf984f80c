//! Facts about the host that do not change.

use analysis::run::Host;

use crate::kernel_files::{KernelPaths, read_or_empty};
use crate::proc::{self, named};

/// This host, as the run file describes it.
#[must_use]
pub fn host() -> Host {
    host_in(&KernelPaths::default())
}

fn host_in(paths: &KernelPaths) -> Host {
    let read = |name: &str| read_or_empty(&paths.proc.join(name));
    let cores = proc::host::cpus(&read("stat"), 1).len();
    Host {
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_bytes: named(&read("meminfo"), "MemTotal:").saturating_mul(1024),
        kernel: read("sys/kernel/osrelease").trim().to_owned(),
        processor: processor(&read("cpuinfo")),
    }
}

/// The name of the processor: `model name` on x86, `Model` or `Hardware` on ARM boards, otherwise the architecture.
fn processor(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let line =
            cpuinfo.lines().find_map(|line| line.split_once(':').filter(|pair| pair.0.trim() == key))?;
        Some(line.1.trim().to_owned())
    };
    ["model name", "Model", "Hardware"]
        .into_iter()
        .find_map(value)
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_the_essentials() {
        let host = host();
        assert!(
            host.cores > 0 && host.memory_bytes > 0 && !host.kernel.is_empty() && !host.processor.is_empty()
        );
    }

    #[test]
    fn processors_have_the_name_that_the_kernel_gives() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Fast 9000: turbo\n"), "Fast 9000: turbo");
        assert_eq!(processor("processor : 0\nModel : Board 4\n"), "Board 4");
        assert_eq!(processor(""), std::env::consts::ARCH);
    }
}
