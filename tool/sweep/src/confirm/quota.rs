//! Slows processes by a CPU quota that is a tenth less than the processors that they may use.

use std::time::Duration;

use analysis::run::LeftAloneReason;
use observe::CpuLimit;

use super::{
    slowing::{BY, Slowing},
    stand_by::{Script, StandBy},
};

/// A quota to be lowered, now and then.
#[derive(Debug)]
pub(super) struct LowerQuota {
    now: CpuLimit,
    lower: CpuLimit,
    /// By which the processors are fewer that may be used, 0 to 1.
    share: f64,
}

impl LowerQuota {
    /// Lowers a quota, for processes that may use so many processors besides. `None` where there is no limit at all to begin
    /// from.
    pub(super) fn of(now: CpuLimit, processors: Option<f64>) -> Option<Self> {
        let most = now.cores().into_iter().chain(processors).min_by(f64::total_cmp)?;
        let lower = now.with_cores((1.0 - BY) * most);
        let share = 1.0 - lower.cores()? / most;
        Some(Self { now, lower, share })
    }

    /// How often processor time is handed out.
    pub(super) fn period(&self) -> Duration {
        self.now.period()
    }

    /// Lowers it.
    ///
    /// # Errors
    /// The reason to leave it alone: somebody else has changed it meanwhile, or the kernel refuses it.
    pub(super) fn start(&self) -> Result<Slowing, LeftAloneReason> {
        if !self.now.is_set() {
            return Err(LeftAloneReason::NotAllowed);
        }
        let stand_by = StandBy::start(Script {
            begin: r#"printf %s "$2" >"$1""#,
            // What somebody else has set meanwhile stays.
            undo: r#"read -r is <"$1"; [ "$is" != "$2" ] || printf %s "$3" >"$1""#,
            arguments: vec![self.now.file().into(), self.lower.text().into(), self.now.text().into()],
            namespace: None,
        })?;
        // Not every shell tells that the kernel refused what it wrote.
        if self.lower.is_set() {
            Ok(Slowing::Lowered { stand_by, share: self.share })
        } else {
            Err(LeftAloneReason::NotAllowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use observe::KernelPaths;
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

        fn limit(&self) -> CpuLimit {
            let at = |name| self.0.path().join(name);
            let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cgroup") };
            CpuLimit::of_only(&paths, &[7]).unwrap()
        }

        fn lowered(&self, processors: Option<f64>) -> LowerQuota {
            LowerQuota::of(self.limit(), processors).unwrap()
        }
    }

    #[test]
    fn a_quota_is_a_tenth_lower_for_a_time() {
        let group = Group::with("20000 100000");
        let slowing = group.lowered(Some(4.0)).start().unwrap();
        assert_eq!(group.quota(), "18000 100000");
        assert!((slowing.finish() - 0.1).abs() < 1e-9);
        assert_eq!(group.quota(), "20000 100000");
        drop(group.lowered(None).start().unwrap());
        assert_eq!(group.quota(), "20000 100000", "also where it is not finished");
    }

    /// A tenth of what they may use, whatever they do use: below that throughput would fall whatever the bottleneck is.
    #[test]
    fn without_a_quota_it_is_a_tenth_of_the_processors() {
        let group = Group::with("max 50000");
        let slowing = group.lowered(Some(2.0)).start().unwrap();
        assert_eq!(group.quota(), "90000 50000");
        assert!((slowing.finish() - 0.1).abs() < 1e-9);
        assert_eq!(group.quota(), "max 50000");
        assert!(LowerQuota::of(group.limit(), None).is_none());
        let generous = Group::with("400000 100000");
        let slowing = generous.lowered(Some(2.0)).start().unwrap();
        assert_eq!(generous.quota(), "180000 100000");
        drop(slowing);
        assert_eq!(generous.quota(), "400000 100000");
    }

    #[test]
    fn what_somebody_else_sets_while_it_is_lower_stays() {
        let group = Group::with("20000 100000");
        let slowing = group.lowered(None).start().unwrap();
        group.set("50000 100000\n");
        slowing.finish();
        assert_eq!(group.quota(), "50000 100000\n");
    }

    #[test]
    fn a_quota_that_somebody_else_changed_is_left_alone() {
        let group = Group::with("20000 100000");
        let lowered = group.lowered(None);
        group.set("30000 100000");
        assert_eq!(lowered.start().err(), Some(LeftAloneReason::NotAllowed));
        assert_eq!(group.quota(), "30000 100000");
    }
}
