//! The unwind tables of files, each read once and kept as long as there is room.

use std::{collections::BTreeMap, fs::File, os::unix::fs::FileExt, sync::Arc};

use super::elf::{Elf, Read};
use crate::maps::{Mapping, Maps};

/// As much as is kept of tables.
const SIZE_MAX: usize = 64 << 20;

/// Most files that are known.
const FILES_MAX: usize = 1_024;

/// Those of all files that were met.
#[derive(Debug, Default)]
pub(super) struct TablesOfFiles {
    files: BTreeMap<String, Option<Arc<Elf>>>,
    size: usize,
    vdso: Option<Arc<Elf>>,
}

impl TablesOfFiles {
    /// The tables of what is mapped in a process; `None` where there are none, or no room for more.
    pub(super) fn of(&mut self, pid: u32, mapping: &Mapping) -> Option<Arc<Elf>> {
        let Some(file) = &mapping.file else {
            return mapping.is_vdso().then(|| self.vdso()).flatten();
        };
        if let Some(known) = self.files.get(file) {
            return known.clone();
        }
        if self.files.len() >= FILES_MAX || self.size >= SIZE_MAX {
            return None;
        }
        let elf = mapping.open(pid).ok().and_then(|file| Elf::read(&file));
        let elf = elf.filter(|elf| self.size + elf.size() <= SIZE_MAX).map(Arc::new);
        self.size += elf.as_ref().map_or(0, |elf| elf.size());
        self.files.insert(file.clone(), elf.clone());
        elf
    }

    /// Those of the code that the kernel maps into every process: it is in no file, so this process's own is read.
    fn vdso(&mut self) -> Option<Arc<Elf>> {
        if self.vdso.is_none() {
            self.vdso = vdso().and_then(|image| Elf::read(&&image[..])).map(Arc::new);
        }
        self.vdso.clone()
    }
}

fn vdso() -> Option<Vec<u8>> {
    let maps = Maps::of(std::process::id());
    let mapping = maps.iter().find(|mapping| mapping.is_vdso())?;
    File::open("/proc/self/mem").ok()?.read(mapping.start, mapping.end - mapping.start)
}

impl Read for File {
    fn read(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = bytes.get_mut(filled..)?;
            match self.read_at(rest, offset.checked_add(filled as u64)?) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        bytes.truncate(filled);
        Some(bytes)
    }
}
