//! What is mapped where in a process, for addresses without a name.

use std::fs;

use analysis::run::Function;

use super::file_name;

/// Places are told to within so many bytes, so that samples of one function come together.
const PAGE: u64 = 4096;

/// The code that a process has mapped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Maps(Vec<Mapping>);

#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    module: String,
}

impl Maps {
    /// Those of a process; none if it has ended.
    pub(crate) fn of(pid: u32) -> Self {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default())
    }

    /// From the text of `/proc/PID/maps`.
    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Mapping::parse).collect())
    }

    /// The module and the place of an address; nothing where nothing is mapped.
    pub(crate) fn place(&self, address: u64) -> Function {
        let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        self.0.iter().find(holds).map_or_else(Function::default, |mapping| {
            let at = (address - mapping.start).saturating_add(mapping.offset);
            // Where in memory that a compiler filled as it went differs from run to run.
            let offset = (!mapping.module.starts_with('[')).then_some(at - at % PAGE);
            Function { name: String::new(), module: mapping.module.clone(), offset, kernel: false }
        })
    }
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let executable = words.next()?.contains('x');
        let offset = words.next()?;
        let path = words.nth(2).unwrap_or_default().trim().trim_end_matches(" (deleted)");
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let module =
            if path.is_empty() || path.starts_with("//") { "[anonymous]".into() } else { file_name(path) };
        executable.then_some(Self { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, module })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_name_has_a_module_and_a_place() {
        let maps = Maps::parse(
            "55e4a000-55e4c000 r--p 00000000 fd:00 12 /usr/sbin/nginx\n\
             55e4c000-55e5c000 r-xp 00002000 fd:00 12 /usr/sbin/nginx\n\
             7f000000-7f010000 r-xp 00003000 fd:00 13 /usr/lib/with a space/libz.so.1 (deleted)\n\
             7f020000-7f030000 rwxp 00000000 00:00 0 \n\
             damaged\n",
        );
        let place = |at| {
            let Function { module, offset, .. } = maps.place(at);
            (module, offset)
        };
        assert_eq!(place(0x55e4_c123), ("nginx".into(), Some(0x2000)));
        assert_eq!(place(0x7f00_1fff), ("libz.so.1".into(), Some(0x4000)));
        assert_eq!(place(0x7f02_1000), ("[anonymous]".into(), None));
        assert_eq!(place(0x55e4_a000), (String::new(), None), "no code");
    }
}
