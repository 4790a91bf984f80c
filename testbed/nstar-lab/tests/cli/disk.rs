//! A database whose commits wait for a disk: is the disk named, and not the queue in front of it?

use std::{fs, os::linux::fs::MetadataExt, path::PathBuf, thread, time::Duration};

use database_server::Kind;

use crate::{
    common::program::tree::descendants,
    common::support::{Place, is_root_or_skip},
    common::verdict::{is_said, named, verdict},
    locks::{before, database, holder, name, says},
};

/// The limit of writes per second: few enough for any disk, and enough for a sweep.
const WRITES_PER_S: u32 = 200;

/// A cgroup (version 1 or 2) that limits how often its processes write. Removed when dropped.
struct WriteLimit {
    folder: PathBuf,
    file: &'static str,
    value: String,
}

impl WriteLimit {
    /// Limits the disk of the temporary files. `None` if they are on no disk, or cgroups cannot limit it.
    fn make(of: &str) -> Option<Self> {
        let number = fs::metadata(std::env::temp_dir()).expect("a folder").st_dev();
        let device = whole_device(rustix::fs::major(number), rustix::fs::minor(number))?;
        let name = format!("nstar-test-{of}-{}", std::process::id());
        let version_1 = PathBuf::from("/sys/fs/cgroup/blkio");
        let (folder, file, value) = if version_1.exists() {
            (version_1.join(name), "blkio.throttle.write_iops_device", format!("{device} {WRITES_PER_S}"))
        } else {
            // Children have a controller only if their parent enables it for them.
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+io").ok()?;
            (PathBuf::from("/sys/fs/cgroup").join(name), "io.max", format!("{device} wiops={WRITES_PER_S}"))
        };
        fs::create_dir(&folder).ok()?;
        Some(WriteLimit { folder, file, value })
    }

    /// Limits the descendants of this process with that name, and all that they start from now on.
    fn limit(&self, name: &str) {
        fs::write(self.folder.join(self.file), &self.value).expect("a limit");
        for pid in descendants(std::process::id()) {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if comm.trim() == name {
                // A process that has just ended cannot be moved.
                let _ = fs::write(self.folder.join("cgroup.procs"), pid.to_string());
            }
        }
    }
}

impl Drop for WriteLimit {
    fn drop(&mut self) {
        // Only an empty cgroup can be removed.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The number of a device or, for a partition, of its disk. `None` for files on no disk.
fn whole_device(major: u32, minor: u32) -> Option<String> {
    let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let whole = if folder.join("partition").exists() { folder.parent()?.to_owned() } else { folder };
    Some(fs::read_to_string(whole.join("dev")).ok()?.trim().to_owned())
}

fn commits_wait_for_the_disk(kind_of_database: Kind) {
    let test = "a database that may write only so often is told to wait for its disk";
    if !is_root_or_skip(test) {
        return;
    }
    let place = Place::beside_sleepers();
    // Outlives the database, because only an empty cgroup can be removed.
    let Some(limit) = WriteLimit::make(name(kind_of_database)) else {
        return eprintln!("SKIPPED: {test}: temporary files are on no disk that a cgroup can limit");
    };
    let Some(database) = database(kind_of_database, None) else { return };
    let made = database.run("CREATE TABLE guests (name TEXT)", Some("nstar_rooms")).expect("a client");
    assert!(made.status.success(), "{made:?}");
    let server = before(&database, "INSERT INTO guests VALUES ('ann'); SELECT 'done' AS ended;");
    limit.limit(name(kind_of_database));
    let run = named(&place, &server.url("/"), &["-c", "1,2,4,8,16,32,64", "-d", "1s"]);
    let Some(run) = run else { return };
    if !is_said(&run, &["disk"]) {
        return;
    }
    assert!(holder(&run).starts_with(name(kind_of_database)), "{}", verdict(&run));
    says(&run, "of the 200 that its cgroup /nstar-test-");
    says(&run, "what the limit holds back does not reach it");
    let page = fs::read_to_string(place.path("report.html")).expect("a report");
    assert!(page.contains(&format!("limited by what its cgroup lets {} (", name(kind_of_database))));
}

#[test]
fn commits_of_postgres_wait_for_the_disk() {
    commits_wait_for_the_disk(Kind::Postgres);
}

#[test]
fn commits_of_mariadb_wait_for_the_disk() {
    commits_wait_for_the_disk(Kind::Mariadb);
}
