//! Why the system denies io_uring, and what to do about it.

use std::{fs, io};

use rustix::io::Errno;

use crate::error::EngineError;

/// The model's name.
pub(super) const MODEL: &str = "uring";

/// The administrator's setting: Documentation/admin-guide/sysctl/kernel.rst.
const SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";

/// Classifies a failure to make a ring by what can be done about it.
pub(crate) fn explain(source: io::Error) -> EngineError {
    explain_under(source, fs::read_to_string(SYSCTL).ok().as_deref())
}

fn explain_under(source: io::Error, sysctl: Option<&str>) -> EngineError {
    let disabled = sysctl.map(str::trim).is_some_and(|value| value != "0");
    let (reason, remedy) = match Errno::from_io_error(&source) {
        Some(Errno::PERM) if disabled => (
            "this system disables it (sysctl kernel.io_uring_disabled)",
            "set that to 0, or to 1 with this user in the group of kernel.io_uring_group",
        ),
        Some(Errno::PERM | Errno::ACCESS) => (
            "a sandbox forbids it (a seccomp filter or a security module, as containers have)",
            "allow io_uring_setup, io_uring_enter and io_uring_register there",
        ),
        Some(Errno::NOSYS) => (
            "the kernel is built without it, or a sandbox hides it (a seccomp filter, as containers have)",
            "allow it there, or take a kernel with CONFIG_IO_URING",
        ),
        Some(Errno::INVAL) => {
            ("the kernel is too old for what this model asks of it", "take Linux 6.1 or later")
        }
        _ => return EngineError::System { what: "an io_uring", source },
    };
    EngineError::ModelUnavailable { model: MODEL, reason, remedy, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_denial_names_its_reason_and_a_remedy() {
        let said = |errno: Errno, sysctl| explain_under(errno.into(), sysctl).to_string();
        assert!(said(Errno::PERM, Some("2\n")).contains("kernel.io_uring_disabled"));
        assert!(said(Errno::PERM, Some("0\n")).contains("seccomp"));
        assert!(said(Errno::PERM, None).contains("seccomp"));
        assert!(said(Errno::NOSYS, None).contains("CONFIG_IO_URING"));
        assert!(said(Errno::INVAL, Some("0\n")).contains("6.1"));
        assert!(
            said(Errno::MFILE, Some("2\n")).starts_with("cannot start the server: an io_uring: Too many")
        );
    }
}
