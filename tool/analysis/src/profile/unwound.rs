//! What the callers of a sampled thread are found from where their frames are not linked, and how far that leads.

use crate::run::CutShort;

/// The registers that say where a thread was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// The address of the instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer, or whatever else code built without frame pointers keeps in its register.
    pub frame: u64,
    /// The return address that a call leaves in a register; 0 on processors where calls put it on the stack.
    pub link: u64,
}

/// What was copied of a thread when it was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// The process that it was copied from meanwhile, whose code is at the same addresses.
    pub copied_from: Option<u32>,
    /// The registers.
    pub registers: Registers,
    /// The stack from the stack pointer on: its innermost part.
    pub stack: Vec<u8>,
    /// Whether the stack may go on beyond what was copied.
    pub goes_on: bool,
    /// The calls that the kernel found by following frame pointers, the innermost first.
    pub linked: Vec<u64>,
}

/// How a stack ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StackEnd {
    /// Where its thread began.
    Start,
    /// In code whose callers neither tables nor frame pointers tell.
    Untold,
    /// Where the copy of the stack ends, or after as many calls as are followed.
    TooDeep,
    /// With what frame pointers tell, because there was no time to read the tables.
    NotInTime,
}

/// The calls of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwound {
    /// Addresses in the program, the innermost call first; of callers, an address within the call.
    pub calls: Vec<u64>,
    /// How it ends.
    pub end: StackEnd,
}

/// Finds callers by the tables that compilers write for it.
pub trait Unwinder: Send {
    /// The calls that a snapshot shows.
    fn unwind(&mut self, snapshot: &Snapshot) -> Unwound;
}

/// Stacks that are cut short, out of all whose end is known; `None` where that is known of none.
pub(super) fn cut_short(ends: impl Iterator<Item = (StackEnd, u64)>) -> Option<CutShort> {
    let (mut all, mut cut) = (0_u64, CutShort::default());
    for (end, samples) in ends {
        all += samples;
        match end {
            StackEnd::Start => {}
            StackEnd::Untold => cut.untold += samples,
            StackEnd::TooDeep => cut.too_deep += samples,
            StackEnd::NotInTime => cut.not_in_time += samples,
        }
    }
    cut.share = (cut.untold + cut.too_deep + cut.not_in_time) as f64 / all as f64;
    (all > 0).then_some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_counted_by_how_they_end() {
        let ends = [
            (StackEnd::Start, 90),
            (StackEnd::TooDeep, 4),
            (StackEnd::Untold, 3),
            (StackEnd::NotInTime, 2),
            (StackEnd::TooDeep, 1),
        ];
        let cut = CutShort { share: 0.1, untold: 3, too_deep: 5, not_in_time: 2 };
        assert_eq!(cut_short(ends.into_iter()), Some(cut));
        assert_eq!(cut_short([].into_iter()), None);
    }
}
