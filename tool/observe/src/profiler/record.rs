//! The records in a ring buffer, as `perf_event_open(2)` lays them out.

use analysis::profile::{Sampled, SampledStack};

// Types of records.
const LOST: u32 = 2;
const NAMED: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;

/// Says of a process that is named anew that it runs another program now.
const BY_EXEC: u16 = 1 << 13;

/// Addresses from here on are none, but say where those after them are.
const CONTEXT_MIN: u64 = (-4095_i64) as u64;
const CONTEXT_KERNEL: u64 = (-128_i64) as u64;
const CONTEXT_USER: u64 = (-512_i64) as u64;

/// Adds what records tell. Returns how many samples they say were lost. What is cut short or unknown is passed over.
pub(super) fn read_into(records: &[u8], sampled: &mut Sampled) -> u64 {
    let (mut rest, mut lost) = (Reader(records), 0_u64);
    while let Some((kind, about, body)) = rest.record() {
        let mut body = Reader(body);
        match kind {
            SAMPLE => {
                if let Some(stack) = body.sample() {
                    *sampled.stacks.entry(stack).or_default() += 1;
                }
            }
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

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The type of the next record, flags about it, and its body.
    fn record(&mut self) -> Option<(u32, u16, &'a [u8])> {
        let kind = self.u32()?;
        let about = u16::from_ne_bytes(self.bytes()?);
        let size = u16::from_ne_bytes(self.bytes()?);
        let length = usize::from(size).checked_sub(8)?;
        let (body, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((kind, about, body))
    }

    /// A sample: process, thread, and the addresses of its calls.
    fn sample(&mut self) -> Option<SampledStack> {
        let (pid, _thread, calls) = (self.u32()?, self.u32()?, self.u64()?);
        let mut stack = SampledStack { pid, ..SampledStack::default() };
        let mut context = CONTEXT_USER;
        for _ in 0..calls {
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
        (!stack.kernel.is_empty() || !stack.user.is_empty()).then_some(stack)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
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

    fn sample(pid: u32, addresses: &[u64]) -> Vec<u8> {
        let ids = [pid.to_ne_bytes(), (pid + 1).to_ne_bytes()].concat();
        let words = [&[addresses.len() as u64], addresses].concat();
        record(SAMPLE, &[ids, words.iter().flat_map(|word| word.to_ne_bytes()).collect()].concat())
    }

    #[test]
    fn samples_forks_and_losses_are_read() {
        let chain =
            [CONTEXT_KERNEL, 0xffff_f000_0000_0010, 0xffff_f000_0000_0020, CONTEXT_USER, 0x5010, 0x6020, 1];
        let fork: Vec<u8> = [8_u32, 7, 8, 7].into_iter().flat_map(u32::to_ne_bytes).collect();
        let thread: Vec<u8> = [7_u32, 7, 9, 7].into_iter().flat_map(u32::to_ne_bytes).collect();
        let lost: Vec<u8> = [3_u64, 5].into_iter().flat_map(u64::to_ne_bytes).collect();
        let records = [
            sample(7, &chain),
            record(FORK, &fork),
            record(FORK, &thread),
            record(77, b"unknown!"),
            record(LOST, &lost),
            sample(7, &chain),
            sample(7, &[]),
        ];
        let mut by_exec = record(NAMED, &thread);
        by_exec.splice(4..6, BY_EXEC.to_ne_bytes());
        let records = [records.concat(), record(NAMED, &fork), by_exec];
        let mut sampled = Sampled::default();
        assert_eq!(read_into(&records.concat(), &mut sampled), 5);
        let stack = SampledStack {
            pid: 7,
            kernel: vec![0xffff_f000_0000_0010, 0xffff_f000_0000_001f],
            user: vec![0x5010, 0x601f],
        };
        assert_eq!(sampled.stacks, [(stack, 2)].into());
        assert_eq!((sampled.parents, sampled.replaced), ([(8, 7)].into(), [7].into()));
    }

    proptest! {
        #[test]
        fn whatever_is_in_the_buffer_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..60) {
            let mut sampled = Sampled::default();
            read_into(&bytes, &mut sampled);
            let whole = sample(7, &[CONTEXT_USER, 0x5010, 0x6020]);
            read_into(whole.get(..cut).unwrap_or(&whole), &mut sampled);
        }
    }
}
