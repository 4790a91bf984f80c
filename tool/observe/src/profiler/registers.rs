//! Which registers the kernel copies with a sample, and in which order.

use analysis::profile::Registers;

/// How many are copied at most.
pub(super) const COUNT_MAX: usize = 4;

/// Their bits in `perf_event_attr.sample_regs_user`, from `asm/perf_regs.h`; none where stacks are not unwound.
pub(super) const MASK: u64 = if cfg!(target_arch = "x86_64") {
    x86_64::MASK
} else if cfg!(target_arch = "aarch64") {
    aarch64::MASK
} else {
    0
};

/// Their values in the order of the bits, which is that of a record.
pub(super) fn from_record(values: [u64; COUNT_MAX]) -> Registers {
    if cfg!(target_arch = "aarch64") { aarch64::from_record(values) } else { x86_64::from_record(values) }
}

mod x86_64 {
    use super::{COUNT_MAX, Registers};

    /// rbp, rsp, rip.
    pub(super) const MASK: u64 = 1 << 6 | 1 << 7 | 1 << 8;

    pub(super) fn from_record([frame, stack, instruction, _]: [u64; COUNT_MAX]) -> Registers {
        Registers { instruction, stack, frame, link: 0 }
    }
}

mod aarch64 {
    use super::{COUNT_MAX, Registers};

    /// x29, x30 (the link register), sp, pc.
    pub(super) const MASK: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

    pub(super) fn from_record([frame, link, stack, instruction]: [u64; COUNT_MAX]) -> Registers {
        Registers { instruction, stack, frame, link }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_their_places() {
        let [arm, x86] = [aarch64::from_record, x86_64::from_record].map(|read| read([1, 2, 3, 4]));
        assert_eq!(arm, Registers { frame: 1, link: 2, stack: 3, instruction: 4 });
        assert_eq!(x86, Registers { frame: 1, stack: 2, instruction: 3, link: 0 });
        assert!(MASK.count_ones() as usize <= COUNT_MAX);
    }
}
