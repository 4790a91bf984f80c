//! Names the functions that addresses lie in, of programs that run and of the kernel.
//!
//! Names come from the symbol tables of programs and libraries, from their debugging information where that is all there
//! is, from the maps that runtimes with a compiler of their own write (`/tmp/perf-PID.map`), and for the kernel from
//! `/proc/kallsyms`. Files are found through `/proc/PID`, so that those of containers are too. Where there is no name, the
//! module and the place in it are told.
//!
//! Callers are found by the unwind tables of the same files, where code links its frames by no pointers.

mod maps;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod unwind;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use analysis::{
    profile::{Names, Space, Unwinder},
    run::Function,
};
use blazesym::{
    MaybeDefault, Pid,
    symbolize::{
        Input, Symbolized, Symbolizer,
        source::{Kernel, Process, Source},
    },
};

use self::maps::Maps;

/// The name of the kernel as a module.
const KERNEL: &str = "kernel";

/// Names addresses as far as possible. A process that has ended has no names.
#[must_use]
pub fn names(addresses: &BTreeMap<Space, BTreeSet<u64>>) -> Names {
    let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
    let mut names = Names::new();
    for (space, addresses) in addresses {
        let addresses: Vec<u64> = addresses.iter().copied().collect();
        let functions = match space {
            Space::Kernel => kernel(&symbolizer, &addresses),
            Space::Process(pid) => process(&symbolizer, *pid, &addresses),
        };
        let keys = addresses.into_iter().map(|address| (*space, address));
        names.extend(keys.zip(functions).filter(|(_, function)| !function.module.is_empty()));
    }
    names
}

/// What finds callers by unwind tables; `None` on processors for which that is not known.
#[must_use]
pub fn unwinder() -> Option<Box<dyn Unwinder>> {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return Some(unwind::unwinder());
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

fn kernel(symbolizer: &Symbolizer, addresses: &[u64]) -> Vec<Function> {
    let source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
    let named = look_up(symbolizer, &source.into(), addresses);
    let function = |found: Option<(String, String)>| {
        let (name, _) = found.unwrap_or_default();
        Function { name, module: KERNEL.into(), offset: None, kernel: true }
    };
    named.into_iter().map(function).collect()
}

fn process(symbolizer: &Symbolizer, pid: u32, addresses: &[u64]) -> Vec<Function> {
    let maps = Maps::of(pid);
    let from_tables = look_up(symbolizer, &source(pid, false).into(), addresses);
    // Debugging information costs seconds and memory, so it is asked only where the tables say nothing.
    let unnamed: Vec<u64> =
        addresses.iter().zip(&from_tables).filter(|(_, found)| found.is_none()).map(|(at, _)| *at).collect();
    let rest = look_up(symbolizer, &source(pid, true).into(), &unnamed);
    let rest: BTreeMap<u64, _> = unnamed.into_iter().zip(rest).collect();
    let function = |(address, found): (&u64, Option<(String, String)>)| {
        let found = found.or_else(|| rest.get(address).cloned().flatten());
        found.map_or_else(|| maps.place(*address), |(name, module)| named(name, module, &maps, *address))
    };
    addresses.iter().zip(from_tables).map(function).collect()
}

/// A function with a name, in the module that the symbol was found in, or else the one that is mapped there.
fn named(name: String, module: String, maps: &Maps, address: u64) -> Function {
    let module = if module.is_empty() { maps.place(address).module } else { module };
    Function { name, module, offset: None, kernel: false }
}

fn source(pid: u32, debug_syms: bool) -> Process {
    // The kernel opens the very file that is mapped, for root alone.
    let map_files = rustix::process::geteuid().is_root();
    Process { debug_syms, map_files, ..Process::new(Pid::from(pid)) }
}

/// The name and the module of each address, as far as they are found.
fn look_up(symbolizer: &Symbolizer, source: &Source<'_>, addresses: &[u64]) -> Vec<Option<(String, String)>> {
    if addresses.is_empty() {
        return Vec::new();
    }
    let Ok(found) = symbolizer.symbolize(source, Input::AbsAddr(addresses)) else {
        return vec![None; addresses.len()];
    };
    let found = found.into_iter().map(|found| match found {
        Symbolized::Sym(symbol) => {
            let module = symbol.module.as_deref().map(|module| file_name(&module.to_string_lossy()));
            Some((symbol.name.into_owned(), module.unwrap_or_default()))
        }
        Symbolized::Unknown(_) => None,
    });
    found.collect()
}

/// The last part of a path.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_of_this_test() -> u64 {
        std::hint::black_box(1)
    }

    #[test]
    fn functions_of_this_process_are_named() {
        let (here, nowhere) = (a_function_of_this_test as *const () as u64, 0x10);
        let space = Space::Process(std::process::id());
        let found = names(&[(space, [here, nowhere].into())].into());
        let function = found.get(&(space, here)).expect("a name");
        assert!(function.name.contains("a_function_of_this_test"), "{function:?}");
        assert!(function.module.starts_with("symbols"), "{function:?}");
        assert_eq!(found.get(&(space, nowhere)), None);
    }

    #[test]
    fn a_process_that_has_ended_has_no_names() {
        let ended = (Space::Process(u32::MAX / 2), [0x5000].into());
        assert_eq!(names(&[ended].into()), Names::new());
    }
}
