//! `/proc/net/softnet_stat`: what each processor did with packets that arrived. It is the same in every namespace.

use analysis::counters::Cpu;

/// One processor's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Softnet {
    /// The processor; `None` before Linux 5.10, whose lines follow the order of the processors that are online.
    cpu: Option<u32>,
    /// Packets that it handled, modulo 2^32.
    pub(crate) handled: u64,
    dropped: u64,
    squeezed: u64,
}

/// The lines of the file (net/core/net-procfs.c): hexadecimal numbers, of which the first counts packets that were handled, the
/// second those dropped from a full queue, the third polls that ended with packets left, and the thirteenth is the processor.
pub(crate) fn softnet(text: &str) -> Vec<Softnet> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Softnet> {
    let mut fields = text.split_whitespace().map(|field| u32::from_str_radix(field, 16).ok());
    let [handled, dropped, squeezed] = [fields.next()??, fields.next()??, fields.next()??].map(u64::from);
    Some(Softnet { cpu: fields.nth(9).flatten(), handled, dropped, squeezed })
}

/// Adds the counts to the processors that they belong to.
pub(crate) fn add_to(cpus: &mut [Cpu], lines: &[Softnet]) {
    for (position, cpu) in cpus.iter_mut().enumerate() {
        let named = lines.iter().find(|line| line.cpu == Some(cpu.number));
        let in_order = || lines.get(position).filter(|line| line.cpu.is_none());
        if let Some(line) = named.or_else(in_order) {
            (cpu.packets_dropped, cpu.squeezes) = (line.dropped, line.squeezed);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const TWO: &str = "\
00000018 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
000010e2 0000000a 000000ff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000
";

    fn counted(text: &str) -> Vec<(u32, u64, u64)> {
        let mut cpus = [0, 2].map(|number| Cpu { number, ..Cpu::default() });
        add_to(&mut cpus, &softnet(text));
        cpus.map(|cpu| (cpu.number, cpu.packets_dropped, cpu.squeezes)).into()
    }

    #[test]
    fn counts_belong_to_the_processor_that_is_named() {
        assert_eq!(counted(TWO), [(0, 0, 0), (2, 10, 255)]);
    }

    #[test]
    fn old_kernels_list_processors_in_order() {
        let old = "00000018 00000003 00000001 00000000\n000010e2 0000000a 000000ff 00000000\n";
        assert_eq!(counted(old), [(0, 3, 1), (2, 10, 255)]);
    }

    #[test]
    fn packets_that_were_handled_are_counted_beside_those_dropped() {
        let counted: Vec<_> = softnet(TWO).iter().map(|line| (line.handled, line.dropped)).collect();
        assert_eq!(counted, [(0x18, 0), (0x10e2, 10)]);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(softnet("00000018\n1 -2 3\n1 2 zz\n1 \u{e9} 1\n"), []);
        assert_eq!(softnet("1 ffffffffffffffff 1\n"), []);
        assert_eq!(counted(""), [(0, 0, 0), (2, 0, 0)]);
    }
}
