//! The system call, and what is asked of it.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use super::{HERTZ, registers};

/// What is sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Depth {
    /// The program and the kernel's work for it.
    #[default]
    Everything,
    /// What the program itself does; the kernel asks for no more rights than this needs.
    ProgramAlone,
}

/// How much of the stack is copied with each sample, bytes. The kernel takes any multiple of 8 below 64 KiB.
pub(super) const COPIED: u32 = 16 << 10;

/// What callers are found from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Callers {
    /// Frame pointers alone, which the kernel follows.
    #[default]
    Linked,
    /// These, and a copy of registers and stack.
    Copied,
}

/// `struct perf_event_attr` in its fifth version, which every kernel since 4.8 knows.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SIZE: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

// From linux/perf_event.h.
const TYPE_SOFTWARE: u32 = 1;
/// A timer, and not a counter of cycles, which many virtual machines lack: the kernel fires it once in so much processor time, so
/// that every sample stands for as much. Cycles sampled at a frequency come at intervals that the kernel keeps adjusting.
const CPU_CLOCK: u64 = 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const NAMES: u64 = 1 << 9;
const FREQUENCY: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const NAMES_BY_EXEC: u64 = 1 << 24;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const IOCTL_SET_OUTPUT: libc::Ioctl = 0x2405;

/// Begins to sample a thread while it runs on a processor.
pub(super) fn open(thread: u32, processor: u32, depth: Depth, callers: Callers) -> io::Result<OwnedFd> {
    let without_kernel = if depth == Depth::ProgramAlone { EXCLUDE_KERNEL } else { 0 };
    open_with(thread as libc::pid_t, processor, INHERIT | without_kernel, callers)
}

/// Begins to sample everything that runs on a processor.
pub(super) fn open_all(processor: u32, callers: Callers) -> io::Result<OwnedFd> {
    const ANY_THREAD: libc::pid_t = -1;
    open_with(ANY_THREAD, processor, EXCLUDE_IDLE, callers)
}

/// Whether an event was refused because this kernel or processor copies no registers or stacks.
pub(super) fn copies_nothing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP))
}

fn open_with(thread: libc::pid_t, processor: u32, flags: u64, callers: Callers) -> io::Result<OwnedFd> {
    let (copies, sample_regs_user, sample_stack_user) = match callers {
        Callers::Linked => (0, 0, 0),
        Callers::Copied => (SAMPLE_REGISTERS | SAMPLE_STACK, registers::MASK, COPIED),
    };
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: SIZE,
        config: CPU_CLOCK,
        frequency: u64::from(HERTZ),
        sample_type: SAMPLE_TID | SAMPLE_CALLCHAIN | copies,
        sample_regs_user,
        sample_stack_user,
        flags: flags | EXCLUDE_HYPERVISOR | FREQUENCY | TASK | NAMES | NAMES_BY_EXEC,
        ..Attributes::default()
    };
    let no_group: libc::c_int = -1;
    // SAFETY: the attributes live through the call, their size is what they say, and the kernel keeps no pointer to them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor as libc::c_int,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the call returned a new descriptor, which nobody else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the samples of an event go to the ring buffer of another.
pub(super) fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open, and this request takes a descriptor by value.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), IOCTL_SET_OUTPUT, to.as_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many processors the kernel knows, whether or not they are online now.
pub(super) fn processors() -> u32 {
    // SAFETY: it takes and returns numbers.
    let known = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(known).unwrap_or(1).max(1)
}
