//! Sentences on where threads sleep: what was seen, and no cause.

use analysis::run::{OffCpu, OffCpuTrouble, RunState, TierOffCpu, Wait};

use super::{holders, profile::short};
use crate::number::{self, percent};

/// `postgres’s 12 threads slept 91 % of their time: 71 % in `futex` and 20 % in `epoll_wait`. ..`, or, on another host, `The 12
/// threads of postgres on db slept ..`
pub(crate) fn tier(of: &TierOffCpu) -> String {
    let is_one = of.threads.round() <= 1.0;
    let (threads, their) = match is_one {
        true => ("thread".to_owned(), "its"),
        false => (format!("{} threads", number::count(of.threads.round() as u64)), "their"),
    };
    let name = holders::named_on(&of.processes.name, &of.processes.on);
    let whose = match of.processes.on {
        None => format!("{name}’s {threads}"),
        Some(_) => format!("The {threads} of {name}"),
    };
    let main = of.main_waits();
    let places = main.iter().map(|wait| format!("{} in {}", percent(wait.share), place(wait)));
    let places = Some(listed(places.collect())).filter(|places| !places.is_empty());
    let places = places.map_or_else(String::new, |places| format!(": {places}"));
    let idle: Vec<_> = main.iter().filter(|wait| wait.may_be_idle()).map(place).collect();
    let idle = match idle.len() {
        0 => String::new(),
        _ => format!(" Threads that have nothing to do sleep in {} too.", listed(idle)),
    };
    format!("{whose} slept {} of {their} time{places}.{idle}", percent(of.asleep_share))
}

/// Where a thread slept, within a sentence.
fn place(wait: &Wait) -> String {
    let place = match (&wait.call, &wait.wchan) {
        (Some(call), _) => self::call(call),
        (None, Some(wchan)) => format!("the kernel’s `{}`", short(wchan)),
        (None, None) => "a place that may not be read".to_owned(),
    };
    match wait.state {
        RunState::Uninterruptible => format!("{place} (uninterruptible: mostly a disk)"),
        RunState::Stopped => format!("{place} (stopped)"),
        _ => place,
    }
}

fn call(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("system call {name}")
    } else {
        format!("`{}`", short(name))
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(of: Vec<String>) -> String {
    match &of[..] {
        [rest @ .., before, last] => {
            rest.iter().map(|one| format!("{one}, ")).collect::<String>() + &format!("{before} and {last}")
        }
        few => few.concat(),
    }
}

/// What a thread was doing, as a cell of a table.
pub(crate) fn state(of: RunState) -> &'static str {
    match of {
        RunState::Running => "running, or ready to",
        RunState::Sleeping => "asleep",
        RunState::Uninterruptible => "asleep, uninterruptible",
        RunState::Stopped => "stopped",
        RunState::Other => "other",
    }
}

/// What is missing, a sentence each.
pub(crate) fn troubles(of: &OffCpu) -> Vec<String> {
    of.troubles.iter().map(trouble).collect()
}

/// The same as far as it leaves a sentence of a tier without its point.
pub(crate) fn grave_troubles(of: &OffCpu) -> impl Iterator<Item = String> {
    of.troubles.iter().filter(|trouble| is_grave(trouble)).map(trouble)
}

fn is_grave(of: &OffCpuTrouble) -> bool {
    match of {
        OffCpuTrouble::CallsRefused { .. } => true,
        OffCpuTrouble::OnHost { trouble, .. } => is_grave(trouble),
        OffCpuTrouble::StacksRefused | OffCpuTrouble::Unknown => false,
    }
}

fn trouble(of: &OffCpuTrouble) -> String {
    match of {
        OffCpuTrouble::CallsRefused { ptrace_scope: Some(scope) } if *scope > 0 => format!(
            "In which system calls they sleep may not be read (kernel.yama.ptrace_scope is {scope}): run nstar as root, or, for \
             processes of your own, set it to 0."
        ),
        OffCpuTrouble::CallsRefused { .. } => {
            "In which system calls they sleep may not be read: run nstar as root, or as the user of these processes.".to_owned()
        }
        OffCpuTrouble::StacksRefused => {
            "The kernel’s stacks of sleeping threads may not be read: run nstar as root, with CAP_SYS_ADMIN and CAP_SYS_PTRACE."
                .to_owned()
        }
        OffCpuTrouble::OnHost { host, trouble } => format!("{host}: {}", self::trouble(trouble)),
        OffCpuTrouble::Unknown => "A newer version of nstar says more about where threads sleep.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::run::Processes;

    use super::*;

    fn wait(state: RunState, call: Option<&str>, wchan: Option<&str>, share: f64) -> Wait {
        Wait { state, call: call.map(str::to_owned), wchan: wchan.map(str::to_owned), samples: 1, share }
    }

    fn told(threads: f64, asleep_share: f64, waits: Vec<Wait>) -> String {
        let processes = Processes { name: "postgres".into(), ..Processes::default() };
        let tier = TierOffCpu { processes, threads, asleep_share, waits, ..TierOffCpu::default() };
        super::tier(&tier).replace('\u{202f}', " ")
    }

    #[test]
    fn what_was_seen_is_told_and_no_cause() {
        use RunState::{Running, Sleeping, Uninterruptible};
        let waits = vec![
            wait(Sleeping, Some("futex"), Some("futex_wait_queue"), 0.5),
            wait(Sleeping, Some("futex"), Some("futex_do_wait"), 0.21),
            wait(Uninterruptible, Some("fsync"), None, 0.12),
            wait(Running, None, None, 0.09),
            wait(Sleeping, Some("epoll_wait"), Some("ep_poll"), 0.07),
            wait(Sleeping, Some("connect"), None, 0.01),
        ];
        assert_eq!(
            told(12.2, 0.91, waits),
            "postgres’s 12 threads slept 91 % of their time: 71 % in `futex`, 12 % in `fsync` (uninterruptible: mostly a disk) \
             and 7 % in `epoll_wait`. Threads that have nothing to do sleep in `futex` and `epoll_wait` too."
        );
    }

    #[test]
    fn threads_on_another_host_are_told_with_it() {
        let processes = Processes { name: "postgres".into(), on: Some("db".into()), ..Processes::default() };
        let one = TierOffCpu { processes, threads: 1.0, asleep_share: 0.9, ..TierOffCpu::default() };
        let said = |of: &TierOffCpu| super::tier(of).replace('\u{202f}', " ");
        assert_eq!(said(&one), "The thread of postgres on db slept 90 % of its time.");
        let many = TierOffCpu { threads: 12.2, ..one };
        assert_eq!(said(&many), "The 12 threads of postgres on db slept 90 % of their time.");
        let refused = OffCpuTrouble::CallsRefused { ptrace_scope: Some(1) };
        let there = OffCpuTrouble::OnHost { host: "db".into(), trouble: Box::new(refused) };
        let seen = OffCpu { troubles: vec![there], ..OffCpu::default() };
        let told = grave_troubles(&seen).collect::<String>();
        assert!(told.starts_with("db: In which system calls"), "{told}");
    }

    #[test]
    fn what_may_not_be_read_is_not_made_up() {
        let waits = vec![wait(RunState::Sleeping, None, Some("ep_poll"), 0.9)];
        assert_eq!(
            told(1.0, 0.9, waits),
            "postgres’s thread slept 90 % of its time: 90 % in the kernel’s `ep_poll`. Threads that have nothing to do sleep in \
             the kernel’s `ep_poll` too."
        );
        assert_eq!(told(3.0, 0.01, Vec::new()), "postgres’s 3 threads slept 1 % of their time.");
        let rare = vec![wait(RunState::Sleeping, Some("451"), None, 0.9)];
        assert!(told(1.0, 0.9, rare).contains("in system call 451"));
    }
}
