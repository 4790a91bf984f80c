//! Names the functions that addresses lie in, of programs that run and of the kernel.
//!
//! Names come from the symbol tables of programs and libraries, from their debugging information where that is all there
//! is, from the maps that runtimes with a compiler of their own write (`/tmp/perf-PID.map`), and for the kernel from
//! `/proc/kallsyms`. Files are found through `/proc/PID`, so that those of containers are too, with or without root. Where
//! there is no name, the module and the place in it are told.
//!
//! Callers are found by the unwind tables of the same files, where code links its frames by no pointers.

mod maps;
mod perf_map;
mod process;
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
    MaybeDefault,
    symbolize::{
        Input, Symbolized, Symbolizer,
        source::{Kernel, Source},
    },
};

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
            Space::Process(pid) => process::functions(&symbolizer, *pid, &addresses),
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
    let named = look_up(symbolizer, &source.into(), Input::AbsAddr(addresses));
    let named = named.unwrap_or_else(|| vec![None; addresses.len()]);
    let function = |name: Option<String>| Function {
        name: name.unwrap_or_default(),
        module: KERNEL.into(),
        offset: None,
        kernel: true,
    };
    named.into_iter().map(function).collect()
}

/// The name of each place, as far as it is found; `None` where the source cannot be read.
fn look_up(
    symbolizer: &Symbolizer,
    source: &Source<'_>,
    places: Input<&[u64]>,
) -> Option<Vec<Option<String>>> {
    let found = symbolizer.symbolize(source, places).ok()?;
    let name = |found: Symbolized<'_>| match found {
        Symbolized::Sym(symbol) => Some(symbol.name.into_owned()),
        Symbolized::Unknown(_) => None,
    };
    Some(found.into_iter().map(name).collect())
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
