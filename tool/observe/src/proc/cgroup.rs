//! `/proc/PID/cgroup` (cgroups(7)).

/// Where a process stands in the hierarchies that matter here; paths below the mount point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Membership {
    /// Version 2.
    pub(crate) unified: Option<String>,
    /// Version 1, controller `cpu`.
    pub(crate) cpu: Option<String>,
    /// Version 1, controller `cpuacct`.
    pub(crate) cpuacct: Option<String>,
    /// Version 1, controller `blkio`.
    pub(crate) blkio: Option<String>,
}

/// Lines `number:controllers:path`.
pub(crate) fn parse(text: &str) -> Membership {
    let mut membership = Membership::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if number == "0" && controllers.is_empty() {
            membership.unified = Some(path.to_owned());
        }
        for controller in controllers.split(',') {
            match controller {
                "cpu" => membership.cpu = Some(path.to_owned()),
                "blkio" => membership.blkio = Some(path.to_owned()),
                "cpuacct" => membership.cpuacct = Some(path.to_owned()),
                _ => {}
            }
        }
    }
    membership
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let text = "5:blkio:/io\n4:memory:/m\n3:cpu,cpuacct:/web:1\n0::/user.slice\nbroken\n";
        let web = Some("/web:1".to_owned());
        let (unified, blkio) = (Some("/user.slice".to_owned()), Some("/io".to_owned()));
        let expected = Membership { unified, cpu: web.clone(), cpuacct: web, blkio };
        assert_eq!(parse(text), expected);
    }
}
