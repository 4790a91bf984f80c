//! Slows processes by lowering the CPU quota that they are under by a tenth of itself.

use std::time::Duration;

use analysis::run::LeftAloneReason;
use observe::{CpuLimit, KernelPaths};

use super::{
    lock::Lock,
    slowing::{BY, Slowing},
    stand_by::{Script, StandBy},
};
use crate::progress::NotPutBack;

/// A quota to be lowered, now and then.
#[derive(Debug)]
pub(super) struct LowerQuota {
    paths: KernelPaths,
    /// The processes under it.
    pids: Vec<u32>,
    now: CpuLimit,
    lower: CpuLimit,
    /// By which it is lower, 0 to 1.
    share: f64,
}

impl LowerQuota {
    /// Prepares to lower the quota of these processes.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn of(paths: &KernelPaths, pids: &[u32]) -> Result<Self, LeftAloneReason> {
        let now = CpuLimit::of_only(paths, pids)?;
        let lower = now.lower_by(BY);
        let share = 1.0 - lower.cores() / now.cores();
        Ok(Self { paths: paths.clone(), pids: pids.to_vec(), now, lower, share })
    }

    /// How often processor time is handed out.
    pub(super) fn period(&self) -> Duration {
        self.now.period()
    }

    /// Keeps other runs of nstar from lowering it.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn lock(&self) -> Result<Lock, LeftAloneReason> {
        Lock::on(&self.now.file())
    }

    /// Lowers it, with its lock held.
    ///
    /// # Errors
    /// The reason to leave it alone: somebody else has changed it meanwhile or come under it, or the kernel refuses it.
    pub(super) fn start(&self, lock: &Lock) -> Result<Slowing, LeftAloneReason> {
        if CpuLimit::of_only(&self.paths, &self.pids)? != self.now {
            return Err(LeftAloneReason::ChangedByOthers);
        }
        let stand_by = StandBy::start(Script {
            begin: r#"printf %s "$2" >"$1""#,
            // What somebody else has set meanwhile stays.
            undo: r#"read -r is <"$1"; [ "$is" != "$2" ] || printf %s "$3" >"$1""#,
            arguments: vec![self.now.file().into(), self.lower.text().into(), self.now.text().into()],
            namespace: None,
            lock: Some(lock.shared()?),
        })?;
        // Not every shell tells that the kernel refused what it wrote.
        if self.lower.is_set() {
            Ok(Slowing::Lowered { stand_by, share: self.share })
        } else {
            Err(LeftAloneReason::NotAllowed)
        }
    }

    /// Itself, where it is still lower; `None` also where its cgroup has gone.
    pub(super) fn not_put_back(&self) -> Option<NotPutBack> {
        let quota = || NotPutBack::Quota { file: self.now.file(), held: self.now.text() };
        self.lower.is_set().then(quota)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// Process 7, alone in a cgroup with this quota.
    struct Group(TempDir);

    impl Group {
        fn with(quota: &str) -> Self {
            let group = Self(TempDir::new().unwrap());
            for folder in ["proc/7", "cgroup/web"] {
                fs::create_dir_all(group.0.path().join(folder)).unwrap();
            }
            for (file, text) in [("proc/7/cgroup", "0::/web\n"), ("cgroup/web/cgroup.procs", "7\n")] {
                fs::write(group.0.path().join(file), text).unwrap();
            }
            group.set(quota);
            group
        }

        fn set(&self, quota: &str) {
            fs::write(self.0.path().join("cgroup/web/cpu.max"), quota).unwrap();
        }

        fn quota(&self) -> String {
            fs::read_to_string(self.0.path().join("cgroup/web/cpu.max")).unwrap()
        }

        fn lowered(&self) -> LowerQuota {
            let at = |name| self.0.path().join(name);
            let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cgroup") };
            LowerQuota::of(&paths, &[7]).unwrap()
        }
    }

    #[test]
    fn a_quota_is_a_tenth_lower_for_a_time() {
        let group = Group::with("20000 100000");
        let lowered = group.lowered();
        let lock = lowered.lock().unwrap();
        let slowing = lowered.start(&lock).unwrap();
        assert_eq!(group.quota(), "18000 100000");
        assert!(slowing.finish().is_some_and(|share| (share - 0.1).abs() < 1e-9));
        assert_eq!(group.quota(), "20000 100000");
        drop(lowered.start(&lock).unwrap());
        assert_eq!(group.quota(), "20000 100000", "also where it is not finished");
    }

    #[test]
    fn a_quota_that_another_run_lowers_is_left_alone() {
        let group = Group::with("20000 100000");
        let one = group.lowered();
        let _lock = one.lock().unwrap();
        assert_eq!(group.lowered().lock().err(), Some(LeftAloneReason::ChangedByOthers));
    }

    #[test]
    fn a_quota_that_could_not_be_put_back_is_told_with_what_it_was() {
        let group = Group::with("20000 100000");
        let lowered = group.lowered();
        let lock = lowered.lock().unwrap();
        drop(lowered.start(&lock).unwrap());
        assert_eq!(lowered.not_put_back(), None);
        // As if it had failed.
        group.set("18000 100000");
        let file = group.0.path().join("cgroup/web/cpu.max");
        let expected = NotPutBack::Quota { file: file.clone(), held: "20000 100000".into() };
        assert_eq!(lowered.not_put_back(), Some(expected));
        fs::remove_file(file).unwrap();
        assert_eq!(lowered.not_put_back(), None, "nobody is slowed by what has gone");
    }

    #[test]
    fn what_somebody_else_sets_while_it_is_lower_stays() {
        let group = Group::with("20000 100000");
        let lowered = group.lowered();
        let slowing = lowered.start(&lowered.lock().unwrap()).unwrap();
        group.set("50000 100000\n");
        slowing.finish();
        assert_eq!(group.quota(), "50000 100000\n");
        assert_eq!(lowered.not_put_back(), None);
    }

    #[test]
    fn a_quota_that_somebody_else_changed_or_came_under_is_left_alone() {
        let group = Group::with("20000 100000");
        let lowered = group.lowered();
        let lock = lowered.lock().unwrap();
        group.set("30000 100000");
        assert_eq!(lowered.start(&lock).err(), Some(LeftAloneReason::ChangedByOthers));
        assert_eq!(group.quota(), "30000 100000");
        group.set("20000 100000");
        fs::write(group.0.path().join("cgroup/web/cgroup.procs"), "7\n9\n").unwrap();
        assert_eq!(lowered.start(&lock).err(), Some(LeftAloneReason::QuotaShared));
        assert_eq!(group.quota(), "20000 100000");
    }
}
