//! Checks, before anything is started, that this machine has room for an experiment.

use std::{env, fmt, path::PathBuf};

use load::{document::DocumentError, limits};
use rustix::fs::statvfs;
use sweep::cores::Split;

use crate::{
    data,
    definition::{Experiment, PageCache},
    resolve::{DataSet, Places, TrialSetup},
};

/// Descriptors that this process holds for each program besides those of users: pipes to its guard.
const PER_PROGRAM: u32 = 2;

/// Why there is no room for an experiment here.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// Too little room for its data.
    #[error(
        "the experiment puts {wanted} on the disk, but {folder} has room for {free}: set TMPDIR to a folder with room, or \
         ask for less data, or for less `room`"
    )]
    Disk {
        /// What is needed.
        wanted: Size,
        /// Where.
        folder: PathBuf,
        /// What is free there.
        free: Size,
    },
    /// Files that are to be read from a disk would lie in memory.
    #[error(
        "the experiment reads its files from a disk (page_cache = \"cold\"), but {folder} is in memory: set TMPDIR to a \
         folder on a disk"
    )]
    NoDisk {
        /// Where the files would lie.
        folder: PathBuf,
    },
    /// Too few descriptors.
    #[error(
        "{programs} programs and their users need {needed} open files, but this process may have {allowed} more: run \
         `ulimit -n` with a larger number first, or ask for less"
    )]
    Descriptors {
        /// How many programs.
        programs: u32,
        /// What that needs.
        needed: u32,
        /// What there is.
        allowed: u32,
    },
    /// The experiment cannot be filled in.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Checks the room for the largest measurement, where processors are shared out like this (`None`: all share all of them).
///
/// # Errors
/// What is lacking.
pub fn check(experiment: &Experiment, split: Option<&Split>) -> Result<(), NoRoom> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let allowed = limits::users_allowed(threads);
    let folder = env::temp_dir();
    // If this is unknown, making the files will show whether there is room.
    let free = statvfs(&folder).map_or(u64::MAX, |room| room.f_bavail.saturating_mul(room.f_frsize));
    if experiment.page_cache == PageCache::Cold && data::is_in_memory(&folder).unwrap_or(false) {
        return Err(NoRoom::NoDisk { folder });
    }
    let places = Places::example(experiment);
    for variant in &experiment.variants {
        for work in &experiment.works {
            let setup = TrialSetup { experiment, variant, work };
            let instances = setup.instances(&places)?;
            for one in &instances {
                let values = setup.values_of(one.process, one.number, &places);
                setup.processors(one.process, split, &values)?;
            }
            let programs = u32::try_from(instances.len()).unwrap_or(u32::MAX);
            let needed = setup.users_max(&places)?.saturating_add(programs.saturating_mul(PER_PROGRAM));
            if programs > 1 && needed > allowed {
                return Err(NoRoom::Descriptors { programs, needed, allowed });
            }
            let files: u64 = setup.data(&places)?.iter().map(DataSet::bytes_on_disk).sum();
            let wanted = files.saturating_add(setup.room(&places)?);
            if wanted > free {
                return Err(NoRoom::Disk { wanted: Size(wanted), folder, free: Size(free) });
            }
        }
    }
    Ok(())
}

/// A number of bytes, shown in the decimal units that experiments use: `100 KB`, `1.5 MB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
        let bytes = self.0 as f64;
        let (scale, unit) = UNITS.into_iter().find(|(scale, _)| bytes >= *scale).unwrap_or((1.0, "bytes"));
        let text = format!("{:.1}", bytes / scale);
        write!(f, "{} {unit}", text.trim_end_matches(".0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_they_were_asked_for() {
        let cases = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (100_000, "100 KB"),
            (1_500_000, "1.5 MB"),
            (10_000_000_000, "10 GB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
