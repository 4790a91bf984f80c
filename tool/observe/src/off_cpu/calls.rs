//! The names of system calls that threads sleep in.

/// The name of the call in a file `syscall`, or its number where it is none of those that usually sleep; `None` where the
/// thread is in none.
pub(super) fn called(syscall: &str) -> Option<String> {
    let number: i64 = syscall.split_whitespace().next()?.parse().ok()?;
    let name =
        || CALLS.iter().chain(OLDER_CALLS).find(|(of, _)| *of == number).map(|(_, name)| (*name).to_owned());
    (number >= 0).then(|| name().unwrap_or_else(|| number.to_string()))
}

macro_rules! named {
    ($($constant:ident $name:literal),* $(,)?) => { &[$((libc::$constant, $name)),*] };
}

/// Calls that every architecture has.
const CALLS: &[(i64, &str)] = named![
    SYS_accept "accept", SYS_accept4 "accept4", SYS_clock_nanosleep "clock_nanosleep", SYS_clone "clone",
    SYS_clone3 "clone3", SYS_close "close", SYS_connect "connect", SYS_copy_file_range "copy_file_range",
    SYS_epoll_pwait "epoll_pwait", SYS_epoll_pwait2 "epoll_pwait2", SYS_execve "execve", SYS_exit "exit",
    SYS_exit_group "exit_group", SYS_fallocate "fallocate", SYS_fcntl "fcntl", SYS_fdatasync "fdatasync",
    SYS_flock "flock", SYS_fsync "fsync", SYS_ftruncate "ftruncate", SYS_futex "futex",
    SYS_futex_waitv "futex_waitv", SYS_getdents64 "getdents64", SYS_io_getevents "io_getevents",
    SYS_io_submit "io_submit", SYS_io_uring_enter "io_uring_enter", SYS_ioctl "ioctl", SYS_madvise "madvise",
    SYS_mmap "mmap", SYS_mprotect "mprotect", SYS_mremap "mremap", SYS_msgrcv "msgrcv", SYS_msgsnd "msgsnd",
    SYS_msync "msync", SYS_munmap "munmap", SYS_nanosleep "nanosleep", SYS_newfstatat "newfstatat",
    SYS_openat "openat", SYS_ppoll "ppoll", SYS_pread64 "pread64", SYS_preadv "preadv", SYS_preadv2 "preadv2",
    SYS_pselect6 "pselect6", SYS_pwrite64 "pwrite64", SYS_pwritev "pwritev", SYS_pwritev2 "pwritev2",
    SYS_read "read", SYS_readv "readv", SYS_recvfrom "recvfrom", SYS_recvmmsg "recvmmsg", SYS_recvmsg "recvmsg",
    SYS_renameat2 "renameat2", SYS_restart_syscall "restart_syscall", SYS_rt_sigsuspend "rt_sigsuspend",
    SYS_rt_sigtimedwait "rt_sigtimedwait", SYS_sched_yield "sched_yield", SYS_semop "semop",
    SYS_semtimedop "semtimedop", SYS_sendfile "sendfile", SYS_sendmmsg "sendmmsg", SYS_sendmsg "sendmsg",
    SYS_sendto "sendto", SYS_splice "splice", SYS_statx "statx", SYS_sync "sync",
    SYS_sync_file_range "sync_file_range", SYS_syncfs "syncfs", SYS_truncate "truncate", SYS_unlinkat "unlinkat",
    SYS_wait4 "wait4", SYS_waitid "waitid", SYS_write "write", SYS_writev "writev",
];

/// Calls that only the first architectures have.
#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: &[(i64, &str)] = named![
    SYS_creat "creat", SYS_epoll_wait "epoll_wait", SYS_fork "fork", SYS_open "open", SYS_pause "pause",
    SYS_poll "poll", SYS_rename "rename", SYS_select "select", SYS_stat "stat", SYS_unlink "unlink",
    SYS_vfork "vfork",
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: &[(i64, &str)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names_and_rare_ones_numbers() {
        let text = |number: i64| format!("{number} 0x7 0x0 0x7ffd 0x55\n");
        assert_eq!(called(&text(libc::SYS_futex)).as_deref(), Some("futex"));
        assert_eq!(called(&text(libc::SYS_fdatasync)).as_deref(), Some("fdatasync"));
        assert_eq!(called("9999 0x0\n").as_deref(), Some("9999"));
        assert_eq!([called("-1 0x0 0x0\n"), called("running\n"), called("")], [None, None, None]);
    }
}
