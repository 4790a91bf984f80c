//! The addresses of a process: which of them are code, and by which tables a stack is followed through it.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use analysis::profile::{Snapshot, StackEnd};
use framehop::{
    CacheNative, Error, ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, UnwindRegsNative,
    Unwinder, UnwinderNative,
};

use super::{
    bounds,
    elf::{Elf, Table},
};
use crate::maps::{Mapping, Maps};

/// As many calls as the kernel gives of a stack.
const CALLS_MAX: usize = 127;

/// A word at most so far beyond the end of what was copied is taken for one of the same stack: that is how long stacks may be.
const STACK_MAX: u64 = 8 << 20;

/// Most addresses of which it is kept whether their rules are bounded.
const JUDGED_MAX: usize = 16_384;

/// Rules that were found for addresses: one for all spaces. Memory is set aside beforehand, so that no table can ask for more.
#[derive(Default)]
pub(super) struct Cache(CacheNative<MustNotAllocateDuringUnwind>);

/// What is mapped in some processes.
pub(super) struct Space {
    maps: Maps,
    /// The files of the mappings that have tables, and the addresses that these have where the file's are 0, by where the
    /// mappings begin.
    told: BTreeMap<u64, (u64, Arc<Elf>)>,
    /// Whether the rules for an address are bounded.
    judged: RefCell<BTreeMap<u64, bool>>,
    unwinder: UnwinderNative<Arc<[u8]>, MustNotAllocateDuringUnwind>,
}

/// How far a stack could be followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// The innermost call first; of callers, an address within the call.
    pub(super) calls: Vec<u64>,
    pub(super) end: StackEnd,
    /// Whether it ended because it led where no code was known to be.
    pub(super) met_unknown_code: bool,
}

impl Space {
    /// A space with these mappings. `tables` finds those of a mapping.
    pub(super) fn new(maps: Maps, mut tables: impl FnMut(&Mapping) -> Option<Arc<Elf>>) -> Self {
        let (mut unwinder, mut told) = (UnwinderNative::new(), BTreeMap::new());
        for mapping in maps.iter() {
            let Some(elf) = tables(mapping) else { continue };
            if let Some((base, module)) = module(mapping, &elf) {
                unwinder.add_module(module);
                told.insert(mapping.start, (base, elf));
            }
        }
        Self { maps, told, judged: RefCell::default(), unwinder }
    }

    pub(super) fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Follows a stack as far as it goes.
    pub(super) fn walk(&self, snapshot: &Snapshot, cache: &mut Cache) -> Walk {
        let mut calls = Vec::new();
        let mut read = |address| word(snapshot, address).ok_or(());
        let registers = registers(snapshot, &self.unwinder);
        let mut frames =
            self.unwinder.iter_frames(snapshot.registers.instruction, registers, &mut cache.0, &mut read);
        let (end, met_unknown_code) = loop {
            if calls.last().is_some_and(|call| !self.is_bounded(*call)) {
                break (StackEnd::Untold, false);
            }
            match frames.next() {
                Ok(Some(_)) if calls.len() == CALLS_MAX => break (StackEnd::TooDeep, false),
                Ok(Some(frame)) if self.maps.at(frame.address_for_lookup()).is_none() => {
                    break (StackEnd::Untold, true);
                }
                Ok(Some(frame)) => calls.push(frame.address_for_lookup()),
                Ok(None) => break (self.end(&calls, snapshot), false),
                Err(error) => break (end_by(error, snapshot), false),
            }
        };
        let calls = if end == StackEnd::Start { calls } else { continued(calls, self.linked(snapshot)) };
        Walk { calls, end, met_unknown_code }
    }

    /// Whether the rules for the caller of a call are carried out in a bounded number of steps.
    fn is_bounded(&self, call: u64) -> bool {
        let mut judged = self.judged.borrow_mut();
        if let Some(known) = judged.get(&call) {
            return *known;
        }
        if judged.len() >= JUDGED_MAX {
            judged.clear();
        }
        let is_bounded = self.judge(call).unwrap_or(true);
        judged.insert(call, is_bounded);
        is_bounded
    }

    /// The same, from the tables; `None` where there are none.
    fn judge(&self, call: u64) -> Option<bool> {
        let (base, elf) = self.told.get(&self.maps.at(call)?.start)?;
        Some(bounds::is_bounded(elf.tables.as_ref()?, call.wrapping_sub(*base)))
    }

    /// The calls that frame pointers tell, as far as they lead through code; the innermost one in any case.
    fn linked<'a>(&self, snapshot: &'a Snapshot) -> &'a [u64] {
        let is_code = |call: &u64| self.maps.at(*call).is_some();
        let length = snapshot.linked.iter().take_while(|call| is_code(call)).count();
        snapshot.linked.get(..length.max(1)).unwrap_or_default()
    }

    /// How a stack ends that has no more callers. Without tables that is what the frame pointer says, or another value in its
    /// register: it is believed if the kernel, who followed frame pointers all the way, came to the same end.
    fn end(&self, calls: &[u64], snapshot: &Snapshot) -> StackEnd {
        let has_tables =
            |call: &u64| self.maps.at(*call).is_some_and(|code| self.told.contains_key(&code.start));
        let is_linked = calls.len() > 1 && calls.last() == snapshot.linked.last();
        if is_linked || calls.last().is_some_and(has_tables) { StackEnd::Start } else { StackEnd::Untold }
    }
}

/// A stack that is cut short, and what frame pointers add to it: those callers that follow the last one that is known, or all of
/// them where they are more.
pub(super) fn continued(mut calls: Vec<u64>, linked: &[u64]) -> Vec<u64> {
    let at_last = calls.last().and_then(|last| linked.iter().position(|call| call == last));
    match at_last {
        Some(at) => calls.extend_from_slice(linked.get(at + 1..).unwrap_or_default()),
        None if linked.len() > calls.len() => calls = linked.to_vec(),
        None => {}
    }
    calls.truncate(CALLS_MAX);
    calls
}

/// Code with its tables, and the address that it has where the file's is 0. None of it is used where the file is not laid out as
/// it is mapped.
fn module(mapping: &Mapping, elf: &Elf) -> Option<(u64, Module<Arc<[u8]>>)> {
    let [index, table] = elf.tables.as_ref()?;
    let base = mapping.start.checked_sub(elf.address_of(mapping.offset)?)?;
    let addresses =
        |table: &Table| Some(table.address..table.address.saturating_add(table.bytes.len() as u64));
    let sections = ExplicitModuleSectionInfo {
        eh_frame_hdr_svma: addresses(index),
        eh_frame_hdr: Some(Arc::clone(&index.bytes)),
        eh_frame_svma: addresses(table),
        eh_frame: Some(Arc::clone(&table.bytes)),
        ..ExplicitModuleSectionInfo::default()
    };
    Some((base, Module::new(String::new(), mapping.start..mapping.end, base, sections)))
}

/// A word of the stack that was copied.
fn word(snapshot: &Snapshot, address: u64) -> Option<u64> {
    let at = usize::try_from(address.checked_sub(snapshot.registers.stack)?).ok()?;
    snapshot.stack.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// How a stack ends that cannot be followed further.
fn end_by(error: Error, snapshot: &Snapshot) -> StackEnd {
    let after = snapshot.registers.stack.saturating_add(snapshot.stack.len() as u64);
    // The word that ends the copy may be in it by half.
    let beyond = after.saturating_sub(7)..after.saturating_add(STACK_MAX);
    match error {
        Error::CouldNotReadStack(address) if snapshot.goes_on && beyond.contains(&address) => {
            StackEnd::TooDeep
        }
        _ => StackEnd::Untold,
    }
}

#[cfg(target_arch = "x86_64")]
fn registers<U>(snapshot: &Snapshot, _: &U) -> UnwindRegsNative {
    let registers = snapshot.registers;
    UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame)
}

/// Return addresses may be signed in the bits that no address of code needs.
#[cfg(target_arch = "aarch64")]
fn registers<U: Unwinder>(snapshot: &Snapshot, unwinder: &U) -> UnwindRegsNative {
    let registers = snapshot.registers;
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(unwinder.max_known_code_address());
    UnwindRegsNative::new_with_ptr_auth_mask(mask, registers.link, registers.stack, registers.frame)
}
