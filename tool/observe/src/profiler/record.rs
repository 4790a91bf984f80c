//! The records in a ring buffer, as `perf_event_open(2)` lays them out.

use analysis::profile::{Registers, Sampled, SampledStack};

use super::{event::Callers, registers};

// Types of records.
const LOST: u32 = 2;
const NAMED: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;

// What is said of the registers in a sample.
const NO_REGISTERS: u64 = 0;
const REGISTERS_64: u64 = 2;

/// Says of a process that is named anew that it runs another program now.
const BY_EXEC: u16 = 1 << 13;

/// Addresses from here on are none, but say where those after them are.
const CONTEXT_MIN: u64 = (-4095_i64) as u64;
const CONTEXT_KERNEL: u64 = (-128_i64) as u64;
const CONTEXT_USER: u64 = (-512_i64) as u64;

/// Adds what records tell of processes. Returns how many samples they say were lost. What is unknown is passed over.
pub(super) fn processes_into(records: &[u8], sampled: &mut Sampled) -> u64 {
    let mut lost = 0_u64;
    for (kind, about, mut body) in Reader(records).records() {
        match kind {
            FORK => {
                if let Some([pid, parent]) = body.u32().zip(body.u32()).map(<[u32; 2]>::from)
                    && pid != parent
                {
                    sampled.parents.insert(pid, parent);
                }
            }
            NAMED if about & BY_EXEC != 0 => sampled.replaced.extend(body.u32()),
            LOST => {
                let (_id, count) = (body.u64(), body.u64());
                lost = lost.saturating_add(count.unwrap_or_default());
            }
            _ => {}
        }
    }
    lost
}

/// The samples among records. What is cut short is passed over.
pub(super) fn samples(records: &[u8], callers: Callers) -> impl Iterator<Item = Sample<'_>> {
    let samples = Reader(records).records().filter(|(kind, _, _)| *kind == SAMPLE);
    samples.filter_map(move |(_, _, mut body)| body.sample(callers))
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    /// Its calls, as frame pointers tell them.
    pub(super) stack: SampledStack,
    /// The registers and the stack of a 64-bit program, where they were copied.
    pub(super) copied: Option<Copied<'a>>,
}

/// What was copied of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copied<'a> {
    pub(super) registers: Registers,
    pub(super) stack: &'a [u8],
    /// Whether as much as wanted could be copied, so that there may be more.
    pub(super) is_full: bool,
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The type of each record, flags about it, and its body.
    fn records(mut self) -> impl Iterator<Item = (u32, u16, Reader<'a>)> {
        std::iter::from_fn(move || self.record())
    }

    fn record(&mut self) -> Option<(u32, u16, Reader<'a>)> {
        let kind = self.u32()?;
        let about = u16::from_ne_bytes(self.array()?);
        let size = u16::from_ne_bytes(self.array()?);
        let body = self.bytes(usize::from(size).checked_sub(8)?)?;
        Some((kind, about, Reader(body)))
    }

    /// A sample: process, thread, the addresses of its calls, and what was copied.
    fn sample(&mut self, callers: Callers) -> Option<Sample<'a>> {
        let (pid, _thread) = (self.u32()?, self.u32()?);
        let stack = SampledStack { pid, ..self.calls()? };
        let copied = if callers == Callers::Copied { self.copied() } else { None };
        (!stack.kernel.is_empty() || !stack.user.is_empty()).then_some(Sample { stack, copied })
    }

    fn calls(&mut self) -> Option<SampledStack> {
        let mut stack = SampledStack::default();
        let mut context = CONTEXT_USER;
        for _ in 0..self.u64()? {
            let address = self.u64()?;
            if address >= CONTEXT_MIN {
                context = address;
                continue;
            }
            let calls = match context {
                CONTEXT_KERNEL => &mut stack.kernel,
                CONTEXT_USER => &mut stack.user,
                _ => continue,
            };
            // All but the innermost are where a call returns to: the byte before belongs to the call, and to the caller.
            calls.push(if calls.is_empty() { address } else { address.saturating_sub(1) });
        }
        // A frame pointer that is none ends the chain with an address that is none.
        stack.user.retain(|address| *address > 4096);
        Some(stack)
    }

    /// Registers, and the stack from the stack pointer on. A thread of the kernel has neither.
    fn copied(&mut self) -> Option<Copied<'a>> {
        let width = self.u64()?;
        let mut values = [0; registers::COUNT_MAX];
        if width != NO_REGISTERS {
            for value in values.iter_mut().take(registers::MASK.count_ones() as usize) {
                *value = self.u64()?;
            }
        }
        let room = usize::try_from(self.u64()?).ok().filter(|room| *room > 0)?;
        let stack = self.bytes(room)?;
        let filled = usize::try_from(self.u64()?).unwrap_or(usize::MAX).min(room);
        let (registers, stack) = (registers::from_record(values), stack.get(..filled)?);
        (width == REGISTERS_64).then_some(Copied { registers, stack, is_full: filled == room })
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(body.len() + 8).expect("a short record");
        [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The body of a sample: its calls alone.
    fn calls(pid: u32, addresses: &[u64]) -> Vec<u8> {
        let ids = [pid.to_ne_bytes(), (pid + 1).to_ne_bytes()].concat();
        [ids, words(&[addresses.len() as u64]), words(addresses)].concat()
    }

    fn sample(pid: u32, addresses: &[u64]) -> Vec<u8> {
        record(SAMPLE, &calls(pid, addresses))
    }

    /// A sample of an address, with registers of this width and a stack of which so much was filled.
    fn copied(width: u64, stack: &[u64], filled: u64) -> Vec<u8> {
        let values: Vec<u64> = (0x70..).take(registers::MASK.count_ones() as usize).collect();
        let values = if width == NO_REGISTERS { &[] } else { &values[..] };
        let size = 8 * stack.len() as u64;
        let stack = if stack.is_empty() { words(&[0]) } else { words(&[&[size], stack, &[filled]].concat()) };
        record(SAMPLE, &[calls(7, &[0x5010]), words(&[width]), words(values), stack].concat())
    }

    /// What was read of it.
    fn read(record: &[u8]) -> Option<(Registers, Vec<u8>, bool)> {
        let sample = samples(record, Callers::Copied).next().expect("a sample");
        assert_eq!(sample.stack.user, [0x5010]);
        sample.copied.map(|copied| (copied.registers, copied.stack.into(), copied.is_full))
    }

    #[test]
    fn forks_and_losses_are_read() {
        let numbers =
            |numbers: [u32; 4]| -> Vec<u8> { numbers.into_iter().flat_map(u32::to_ne_bytes).collect() };
        let (fork, thread) = (numbers([8, 7, 8, 7]), numbers([7, 7, 9, 7]));
        let mut by_exec = record(NAMED, &thread);
        by_exec.splice(4..6, BY_EXEC.to_ne_bytes());
        let records = [
            sample(7, &[CONTEXT_USER, 0x5010]),
            record(FORK, &fork),
            record(FORK, &thread),
            record(77, b"unknown!"),
            record(LOST, &words(&[3, 5])),
            record(NAMED, &fork),
            by_exec,
        ];
        let mut sampled = Sampled::default();
        assert_eq!(processes_into(&records.concat(), &mut sampled), 5);
        assert_eq!((sampled.parents, sampled.replaced), ([(8, 7)].into(), [7].into()));
    }

    #[test]
    fn calls_are_read() {
        let chain =
            [CONTEXT_KERNEL, 0xffff_f000_0000_0010, 0xffff_f000_0000_0020, CONTEXT_USER, 0x5010, 0x6020, 1];
        let records = [sample(7, &chain), record(77, b"unknown!"), sample(7, &[]), sample(7, &chain)];
        let stack = SampledStack {
            pid: 7,
            kernel: vec![0xffff_f000_0000_0010, 0xffff_f000_0000_001f],
            user: vec![0x5010, 0x601f],
            end: None,
        };
        let seen = Sample { stack, copied: None };
        let read: Vec<_> =
            samples(&records.concat(), Callers::Linked).map(|sample| format!("{sample:?}")).collect();
        assert_eq!(read, vec![format!("{seen:?}"); 2]);
    }

    #[test]
    fn registers_and_the_stack_are_read() {
        let mut values = [0; registers::COUNT_MAX];
        for (value, seen) in values.iter_mut().zip(0x70..).take(registers::MASK.count_ones() as usize) {
            *value = seen;
        }
        let registers = registers::from_record(values);
        let stack = |words_filled: usize| words(&[1, 2, 3][..words_filled]);
        assert_eq!(read(&copied(REGISTERS_64, &[1, 2, 3], 24)), Some((registers, stack(3), true)));
        assert_eq!(read(&copied(REGISTERS_64, &[1, 2, 3], 16)), Some((registers, stack(2), false)));
        assert_eq!(read(&copied(REGISTERS_64, &[1, 2, 3], u64::MAX)), Some((registers, stack(3), true)));
        assert_eq!(read(&copied(REGISTERS_64, &[], 0)), None, "nothing could be copied");
        assert_eq!(read(&copied(1, &[1, 2, 3], 24)), None, "a 32-bit program");
        assert_eq!(read(&copied(NO_REGISTERS, &[], 0)), None, "a thread of the kernel");
        let cut = copied(REGISTERS_64, &[1, 2, 3], 24);
        assert_eq!(
            read(&record(SAMPLE, &cut[8..cut.len() - 8])),
            None,
            "a record that ends before it should"
        );
    }

    proptest! {
        #[test]
        fn whatever_is_in_the_buffer_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..160) {
            let whole = copied(REGISTERS_64, &[1, 2, 3], 24);
            let mixed = record(SAMPLE, &bytes);
            for records in [&bytes[..], &mixed, whole.get(..cut).unwrap_or(&whole)] {
                for callers in [Callers::Linked, Callers::Copied] {
                    samples(records, callers).for_each(drop);
                }
                processes_into(records, &mut Sampled::default());
            }
        }
    }
}
