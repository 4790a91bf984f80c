//! Names what a process runs, each file that it has mapped by itself: one that cannot be read takes no names of others with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use analysis::run::Function;
use blazesym::{
    Pid,
    symbolize::{
        Input, Symbolizer,
        source::{Elf, Process, Source},
    },
};

use super::{
    look_up,
    maps::{Mapping, Maps},
    perf_map,
};

/// The functions of addresses in a process. Those without a name have their module and place; where nothing is mapped, not even
/// those.
pub(crate) fn functions(symbolizer: &Symbolizer, pid: u32, addresses: &[u64]) -> Vec<Function> {
    let maps = Maps::of(pid);
    let mut names = BTreeMap::new();
    for together in addresses.chunk_by(|one, next| maps.at(*one) == maps.at(*next)) {
        if let Some(mapping) = together.first().and_then(|address| maps.at(*address)) {
            let found = in_mapping(symbolizer, pid, mapping, together);
            names.extend(together.iter().zip(found).filter_map(|(address, name)| Some((*address, name?))));
        }
    }
    let made =
        |address: &u64| !names.contains_key(address) && maps.at(*address).is_some_and(Mapping::is_memory);
    let made: BTreeSet<u64> = addresses.iter().copied().filter(made).collect();
    names.extend(perf_map::names(pid, &made));
    let function = |address: &u64| {
        let place = maps.place(*address);
        match names.get(address) {
            Some(name) => Function { name: name.clone(), offset: None, ..place },
            None => place,
        }
    };
    addresses.iter().map(function).collect()
}

/// The names of addresses in one mapping.
fn in_mapping(
    symbolizer: &Symbolizer,
    pid: u32,
    mapping: &Mapping,
    addresses: &[u64],
) -> Vec<Option<String>> {
    if mapping.is_vdso() {
        let process =
            Process { debug_syms: false, perf_map: false, map_files: false, ..Process::new(Pid::from(pid)) };
        return look_up(symbolizer, &process.into(), Input::AbsAddr(addresses)).unwrap_or_default();
    }
    let Some(path) = mapping.openable(pid) else { return Vec::new() };
    let offsets: Vec<u64> = addresses.iter().map(|address| mapping.offset_of(*address)).collect();
    in_file(symbolizer, &path, &offsets)
}

/// The names of places in a file; none where it cannot be read.
fn in_file(symbolizer: &Symbolizer, path: &Path, offsets: &[u64]) -> Vec<Option<String>> {
    let source = |debug_syms| Source::from(Elf { debug_syms, ..Elf::new(path) });
    let Some(from_tables) = look_up(symbolizer, &source(false), Input::FileOffset(offsets)) else {
        return Vec::new();
    };
    // Debugging information costs seconds and memory, so it is asked only where the tables say nothing.
    let unnamed = offsets.iter().zip(&from_tables).filter(|(_, found)| found.is_none());
    let unnamed: Vec<u64> = unnamed.map(|(offset, _)| *offset).collect();
    if unnamed.is_empty() {
        return from_tables;
    }
    let rest = look_up(symbolizer, &source(true), Input::FileOffset(&unnamed)).unwrap_or_default();
    let mut rest = rest.into_iter();
    from_tables.into_iter().map(|found| found.or_else(|| rest.next().flatten())).collect()
}
