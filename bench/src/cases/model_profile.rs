//! Where the file server's processor time goes on the leading concurrency models.

use crate::{
    Effort, Result,
    programs::servers::{KB, files_on},
    tools::{
        perf::{self, Symbol},
        table::Grid,
        turns::Candidate,
        workspace::Workspace,
    },
};

const MODELS: [&str; 3] = ["threads", "epoll", "uring"];
const USERS: u32 = 32;
/// Prefixes of the kernel's functions that begin a system call on this architecture. One may call another.
const SYSTEM_CALL: [&str; 2] = ["__x64_sys_", "__do_sys_"];
/// Below this share, in percent, a system call is not named.
const NAMED_MIN: f64 = 1.0;
/// Functions named for each model.
const HOTTEST: usize = 5;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    if let Some(why) = perf::unavailable() {
        return Err(why.into());
    }
    workspace.file("1k", KB)?;
    let mut rows = Vec::new();
    for model in MODELS {
        match files_on(workspace, model) {
            Ok(server) => rows.push(profile(workspace, model, server, effort)?),
            // A system may deny io_uring.
            Err(error) => eprintln!("bench: left out: {error}"),
        }
    }
    let columns =
        vec!["model", "outside the kernel", "system calls, with all that they call", "hottest functions"];
    Ok(Grid { columns, rows })
}

fn profile(
    workspace: &Workspace,
    name: &'static str,
    server: crate::tools::workspace::ServerProcess,
    effort: Effort,
) -> Result<Vec<String>> {
    let candidate = Candidate {
        name,
        servers: vec![server],
        path: "/files/1k".into(),
        header: String::new(),
        reach: None,
    };
    let server = candidate.servers.first().ok_or("no server")?;
    let (with_callees, alone) =
        perf::profile(workspace, server, &candidate.client(workspace, USERS, effort)?)?;
    let outside: f64 = alone.iter().filter(|symbol| !symbol.in_kernel).map(|symbol| symbol.percent).sum();
    Ok(vec![format!("`{name}`"), format!("{outside:.0} %"), system_calls(&with_callees), hottest(&alone)])
}

/// `recvfrom 42 %, sendto 31 %`, the most expensive first.
fn system_calls(symbols: &[Symbol]) -> String {
    let mut named: Vec<(&str, f64)> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.percent >= NAMED_MIN) {
        let call = SYSTEM_CALL.iter().find_map(|prefix| symbol.name.strip_prefix(prefix));
        if let Some(call) = call.filter(|call| named.iter().all(|(known, _)| known != call)) {
            named.push((call, symbol.percent));
        }
    }
    named.iter().map(|(call, percent)| format!("{call} {percent:.0} %")).collect::<Vec<_>>().join(", ")
}

fn hottest(symbols: &[Symbol]) -> String {
    let one = |symbol: &Symbol| format!("{} {:.0} %", symbol.name, symbol.percent);
    symbols.iter().take(HOTTEST).map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_named_with_what_they_call() {
        let symbol = |percent, name: &str| Symbol { percent, in_kernel: true, name: name.into() };
        let seen = [
            symbol(83.0, "do_syscall_64"),
            symbol(42.4, "__x64_sys_recvfrom"),
            symbol(31.0, "__x64_sys_sendto"),
            symbol(5.1, "__do_sys_io_uring_enter"),
            symbol(5.0, "__do_sys_sendto"),
            symbol(0.4, "__x64_sys_close"),
        ];
        assert_eq!(system_calls(&seen), "recvfrom 42 %, sendto 31 %, io_uring_enter 5 %");
    }
}
