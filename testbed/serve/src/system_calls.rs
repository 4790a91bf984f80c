//! The system calls that a server gives up (seccomp): those that it never makes, and with which somebody who took it over
//! would go on, to run programs, to reach other processes, or to attack the kernel.
//!
//! What is refused is listed, not what is allowed. Which calls the C library, SQLite and libp2p make changes with their
//! versions, and one that a list of allowed calls lacks would be missed where nobody tested: on another kernel, out of
//! memory, at the end of a disk. What is refused fails with EPERM, as where the administrator forbids it.

use std::{collections::BTreeMap, env};

use engine::Model;
use libc::c_int;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// When calls are refused, by their numbers: if any of the rules holds, and always where there is none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What no server calls.
const NEVER_CALLED: &[i64] = &[
    // Programs, and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // The kernel: code for it, and what has often been a way into it.
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    // Other namespaces, and files past their names.
    libc::SYS_chroot,
    libc::SYS_fanotify_init,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // What the administrator of a machine sets.
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_personality,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// What makes processes besides clone(2). Other architectures have nothing else.
const MAKING_PROCESSES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// io_uring(7), whose operations pass no filter.
const IO_URING: &[i64] = &[libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_uring_setup];

/// The flags of clone(2) that make a namespace.
const NAMESPACES: [c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// The requests of ioctl(2) that type into the terminal from which a server was started.
const TYPING: [u64; 2] = [libc::TIOCLINUX, libc::TIOCSTI];

/// The families of sockets. Netlink tells the addresses of this machine, also to the C library when it looks up a host.
const FAMILIES: [c_int; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_UNIX];

/// Leaves the calling thread, and those that it starts from now on, the calls of a server that runs as one of `models`.
///
/// # Errors
/// When the kernel has no seccomp or refuses it, or the filter is not known for this architecture.
pub(crate) fn keep_to_calls_of(models: &[Model]) -> Result<(), Error> {
    // No filter sees the flags of clone3(2). The C library makes threads by clone(2) where the kernel has no other.
    let newer = always(&[libc::SYS_clone3]).collect();
    apply_filter(&compiled(newer, libc::ENOSYS)?)?;
    apply_filter(&compiled(refused(models)?, libc::EPERM)?)
}

fn refused(models: &[Model]) -> Result<Rules, BackendError> {
    let forks = models.iter().any(|model| model.forks());
    let mut rules: Rules = always(NEVER_CALLED).collect();
    if !forks {
        rules.extend(always(MAKING_PROCESSES));
    }
    if !models.contains(&Model::Uring) {
        rules.extend(always(IO_URING));
    }
    rules.insert(libc::SYS_clone, cloning(forks)?);
    rules.insert(libc::SYS_ioctl, typing()?);
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, other_families()?);
    }
    Ok(rules)
}

fn always(calls: &[i64]) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|&call| (call, Vec::new()))
}

/// New namespaces, and new processes unless the server `forks`.
fn cloning(forks: bool) -> Result<Vec<SeccompRule>, BackendError> {
    let namespaces = NAMESPACES.iter().map(|&flag| (flag, flag));
    // What is made with this flag is a thread.
    let processes = (!forks).then_some((libc::CLONE_THREAD, 0));
    let all = namespaces.chain(processes);
    all.map(|(mask, value)| {
        SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(bits(mask)), bits(value))?])
    })
    .collect()
}

fn typing() -> Result<Vec<SeccompRule>, BackendError> {
    let requests = TYPING.iter();
    requests.map(|&request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?])).collect()
}

/// Other families of sockets, and other protocols of netlink.
fn other_families() -> Result<Vec<SeccompRule>, BackendError> {
    let others = FAMILIES.iter().map(|&family| argument(0, SeccompCmpOp::Ne, bits(family)));
    let protocols = vec![
        argument(0, SeccompCmpOp::Eq, bits(libc::AF_NETLINK))?,
        argument(2, SeccompCmpOp::Ne, bits(libc::NETLINK_ROUTE))?,
    ];
    Ok(vec![SeccompRule::new(others.collect::<Result<Vec<_>, _>>()?)?, SeccompRule::new(protocols)?])
}

/// Holds if the lower 32 bits of an argument, which are all that the kernel looks at here, compare so with `value`.
fn argument(number: u8, compared: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(number, SeccompCmpArgLen::Dword, compared, value)
}

fn bits(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

fn compiled(rules: Rules, errno: c_int) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(errno.cast_unsigned());
    let target = TargetArch::try_from(env::consts::ARCH)?;
    SeccompFilter::new(with_x32(rules), SeccompAction::Allow, refusal, target)?.try_into()
}

/// The same rules for x32 too, a second set of numbers that some kernels of x86-64 have. They bear a mark, and those from
/// 512 on are x32's own, execve(2) among them.
fn with_x32(mut rules: Rules) -> Rules {
    const MARK: i64 = 0x4000_0000;
    if cfg!(target_arch = "x86_64") {
        let marked: Vec<_> = rules.iter().map(|(call, refused)| (call | MARK, refused.clone())).collect();
        rules.extend(marked);
        // Without the mark they led to the same calls before Linux 5.4.
        rules.extend((512..=547).flat_map(|call| [call, call | MARK]).map(|call| (call, Vec::new())));
    }
    rules
}

#[cfg(test)]
mod tests {
    use std::{io, net::UdpSocket, os::unix::net::UnixStream, process::Command, thread, time::Duration};

    use engine::{
        EngineError, Options,
        service::{Connection, Factory, Service},
    };
    use rustix::{
        io::Errno,
        net::{AddressFamily, SocketType, netlink, socket},
    };

    use super::*;

    /// Serves nothing.
    struct Nothing;

    impl Factory for Nothing {
        type Service<C: Connection> = Nothing;

        fn make<C: Connection>(&self) -> io::Result<Nothing> {
            Ok(Nothing)
        }
    }

    impl<C: Connection> Service<C> for Nothing {
        async fn serve(&self, _: C) {}
    }

    /// What `work` returns in a thread of its own, as that stays confined. `None` where the kernel has no seccomp.
    fn kept_to_calls_of<T: Send + 'static>(
        models: &[Model],
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let models = models.to_vec();
        let confined = move || match keep_to_calls_of(&models) {
            Ok(()) => Some(work()),
            Err(Error::Seccomp(error)) => {
                eprintln!("SKIPPED: this kernel has no seccomp: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        };
        thread::spawn(confined).join().unwrap()
    }

    /// Starts a server and ends it.
    fn start(model: Model) -> Result<(), EngineError> {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server =
            engine::start(model, &Options { loops: 1, workers: 1, ..Options::new(listen) }, Nothing)?;
        server.drain(Duration::ZERO);
        server.join();
        Ok(())
    }

    #[test]
    fn a_confined_thread_makes_threads_and_runs_no_programs() {
        let run = || Command::new("true").status().map(drop);
        run().unwrap();
        // The second may make processes, and they run no program either.
        for model in [Model::Epoll, Model::Prefork] {
            let made = kept_to_calls_of(&[model], move || (thread::spawn(|| 7).join().unwrap(), run()));
            let Some((returned, ran)) = made else { return };
            assert_eq!(returned, 7);
            assert_eq!(ran.unwrap_err().raw_os_error(), Some(libc::EPERM), "{model}");
        }
    }

    #[test]
    fn every_model_starts_with_the_calls_that_it_is_left() {
        for &model in Model::ALL {
            let Some(confined) = kept_to_calls_of(&[model], move || start(model)) else { return };
            // io_uring may be denied here anyway.
            assert_eq!(confined.is_ok(), start(model).is_ok(), "{model}: {confined:?}");
        }
    }

    #[test]
    fn other_models_have_neither_processes_nor_io_uring() {
        for model in [Model::Processes, Model::Prefork, Model::Uring] {
            let Some(started) = kept_to_calls_of(&[Model::Epoll], move || start(model)) else { return };
            let said = started.unwrap_err().to_string();
            assert!(said.contains("Operation not permitted"), "{model}: {said}");
        }
    }

    #[test]
    fn sockets_are_those_of_the_network_and_of_this_machine() {
        let made = kept_to_calls_of(&[Model::Epoll], || {
            UdpSocket::bind("127.0.0.1:0").unwrap();
            UnixStream::pair().unwrap();
            let of = |family, protocol| socket(family, SocketType::RAW, protocol).map(drop);
            of(AddressFamily::NETLINK, None).unwrap();
            [
                of(AddressFamily::NETLINK, Some(netlink::SOCK_DIAG)),
                of(AddressFamily::VSOCK, None),
                of(AddressFamily::PACKET, None),
            ]
        });
        for refused in made.into_iter().flatten() {
            assert_eq!(refused, Err(Errno::PERM));
        }
    }

    #[test]
    fn calls_of_x32_are_refused_as_well() {
        let all = with_x32(refused(&[Model::Epoll]).unwrap());
        if cfg!(target_arch = "x86_64") {
            // ptrace(2) and unshare(2), and execve(2) of x32.
            for call in [521, 272, 520] {
                assert_eq!(all.get(&(call | 0x4000_0000)), Some(&Vec::new()), "{call}");
            }
        }
    }
}
