//! Why a server, or its database, could not be watched, and what to do about it: parts of sentences.

use std::io;
use std::net::SocketAddr;

use analysis::counters::ServerAddress;
use analysis::run::{
    AgentTrouble, DatabaseClient, DatabaseTrouble, HiddenFromUser, HostName, ServerUnwatched, SocketsUnread,
};

use super::holders::{named_on, server_address};
use crate::number::{count, time};
use crate::words::users;

/// The reason why the server's processes could not be watched, as a part of a sentence.
pub(crate) fn server(reason: &ServerUnwatched) -> String {
    match reason {
        ServerUnwatched::NotLocal { address } => format!(
            "{address} is not an address of this host, so only the generator can be watched from here (a server in a \
             container of this host is found when nstar runs as root)"
        ),
        ServerUnwatched::NotListening { address } => {
            format!("no process listens on {address}: start the server first, or check the port")
        }
        ServerUnwatched::TranslationUnread { address } => format!(
            "no process listens on {address}: start the server first, or check the port; if address translation leads on from \
             there, run nstar as root (CAP_NET_ADMIN is what it takes), so that it may read connection tracking, which tells \
             where to"
        ),
        ServerUnwatched::PermissionDenied { address } => format!(
            "the process that listens on {address} belongs to another user: run nstar as root, or as that user, to see \
             what it does"
        ),
        ServerUnwatched::NoOwner { address } => format!(
            "something listens on {address}, but no process of this host holds the socket: it belongs to the kernel, to \
             another container, or has just ended"
        ),
        ServerUnwatched::OwnProcess { address } => {
            format!("{address} is served by the generator's own process: serve it from a process of its own")
        }
        ServerUnwatched::Unreadable { path, os_error } => format!(
            "{path} cannot be listed ({}); nstar watches through /proc, which has to be mounted",
            error(*os_error)
        ),
        ServerUnwatched::NoProcess => "no process was found to serve the target".to_owned(),
    }
}

/// Of which namespace less is known than of others, what that is, and what to do: sentences.
pub(crate) fn sockets(on: &HostName, reason: &SocketsUnread, others: u64) -> String {
    let more = match others {
        0 => String::new(),
        1 => " The same holds for 1 more namespace.".to_owned(),
        many => format!(" The same holds for {} more namespaces.", count(many)),
    };
    match reason {
        SocketsUnread::NamespaceClosed { name, pid, os_error, tables } => format!(
            "The network namespace of {} (pid {pid}) may not be entered ({}), so {}. {}.{more}",
            named_on(name, on),
            error(*os_error),
            less(*tables),
            as_root(on)
        ),
        SocketsUnread::NotAnswered { os_error, tables } => format!(
            "The kernel answers no questions about sockets {} ({}), so {}. A sandbox or a filter of system calls denies \
             netlink (sock_diag): run {} outside it.{more}",
            on.as_ref().map_or_else(|| "here".to_owned(), |host| format!("on {host}")),
            error(*os_error),
            less(*tables),
            observer(on)
        ),
    }
}

/// What to do where a namespace may not be entered.
fn as_root(on: &HostName) -> String {
    let elsewhere = if on.is_none() { ", or have an agent observe there (--observe)" } else { "" };
    format!(
        "Run {} as root (CAP_SYS_ADMIN and CAP_SYS_PTRACE are what it takes), or inside that namespace{elsewhere}",
        observer(on)
    )
}

/// What observes a host: nstar itself, or an agent, which is root by a flag where ssh starts it.
pub(super) fn observer(on: &HostName) -> String {
    on.as_ref().map_or_else(|| "nstar".to_owned(), |host| format!("the agent on {host}"))
}

/// What is not known without asking the kernel.
fn less(tables: bool) -> &'static str {
    if tables {
        "its connections are known by its tables alone: not which requests are held and which are answered, how long its \
         listen queues may be, or anything of unix sockets"
    } else {
        "nothing is known of its connections and listen queues"
    }
}

/// Tiers behind the server that may not be looked into, and what to do: a sentence.
pub(crate) fn tiers(on: &HostName, addresses: &[ServerAddress]) -> String {
    let host = on.as_ref().map_or_else(|| "this host".to_owned(), |host| format!("the host {host}"));
    let flag = if on.is_some() { " (--sudo with ssh://)" } else { "" };
    format!(
        "The server calls {}, served by processes of {host} that may not be watched: they belong to another user, or to a \
         container. Run {} as root{flag} to see what they do.",
        listed(addresses),
        observer(on)
    )
}

/// How many addresses of tiers are more than can be watched at a time: a sentence.
pub(crate) fn addresses(on: &HostName, number: u32, left_out: u64, of: u64) -> String {
    let whose = on.as_ref().map_or_else(
        || "the server and the tiers behind it".to_owned(),
        |host| format!("the watched processes on {host}"),
    );
    let which = match left_out {
        1 => "the least used one was".to_owned(),
        many => format!("the {} least used were", count(many)),
    };
    format!(
        "Of the {} addresses that {whose} serve or call, {which} not watched at {}: whether requests wait there is not \
         known.",
        count(of),
        users(number)
    )
}

/// Most addresses that are named.
const ADDRESSES: usize = 4;

fn listed(addresses: &[ServerAddress]) -> String {
    let named: Vec<_> = addresses.iter().take(ADDRESSES).map(server_address).collect();
    let others = addresses.len().saturating_sub(ADDRESSES);
    let rest = if others > 0 { format!(" and {} more", count(others as u64)) } else { String::new() };
    named.join(", ") + &rest
}

/// What an agent on another host did not tell, and what to do: a sentence.
pub(crate) fn agent(host: &str, trouble: &AgentTrouble) -> String {
    match trouble {
        AgentTrouble::Ended { code, stderr } => {
            let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
            let said = if stderr.is_empty() { String::new() } else { format!(" (it said: {stderr})") };
            format!(
                "The agent on {host} ended during the run{code}{said}, so what happened there later is not known."
            )
        }
        AgentTrouble::Disconnected { reason } => format!(
            "The stream from the agent on {host} broke during the run ({reason}), so what happened there later is not known."
        ),
        AgentTrouble::Malformed => format!(
            "The agent on {host} sent what no agent sends, and was not listened to after that: another program wrote to its \
             output, or it is not to be trusted."
        ),
        AgentTrouble::Flooded => format!(
            "The agent on {host} sent more than an agent may, and was not listened to after that: it is not to be trusted."
        ),
        AgentTrouble::Silent { longest_s } => format!(
            "For {} nothing came from the agent on {host}: it, or the way there, stalled.",
            time(longest_s * 1e6)
        ),
        AgentTrouble::LeftOut { count: left_out } => format!(
            "The stream from {host} did not take {} of the samples there: it is too slow for them.",
            count(*left_out)
        ),
        AgentTrouble::Clock { error_us } => format!(
            "The clock of {host} is known to {} only, because no answer came back sooner: what was seen there may lie that \
             far beside what was seen here.",
            time(*error_us)
        ),
        AgentTrouble::ServerNotFound { reason } => format!(
            "The agent on {host} did not find the server: {}. Of that host, only processors, disks, memory and links were watched.",
            server_there(reason)
        ),
        AgentTrouble::NothingCalled { addresses } => format!(
            "The agent on {host} found neither the server nor who serves {}, which a tier on another host calls: it has no such \
             address. If address translation leads there from a service address, nstar sees that where it is done: run \
             it, or an agent, there as root, where connection tracking may be read. Of {host}, only processors, disks, memory \
             and links were watched.",
            listed(
                &addresses.iter().map(|address| ServerAddress::Tcp { address: *address }).collect::<Vec<_>>()
            )
        ),
        AgentTrouble::Redundant => format!(
            "The agent on {host} sees the same processes as another observer, so they were counted once."
        ),
        AgentTrouble::ByPort { address, at } => format!(
            "On {host}, {}. If no address translation or tunnel leads the load there, it is another program, and what was seen of \
             it says nothing about the server.",
            by_port(*address, *at)
        ),
    }
}

/// What was taken for the server by its port alone, as a part of a sentence.
pub(super) fn by_port(address: SocketAddr, at: SocketAddr) -> String {
    let why = if address.ip().to_canonical().is_loopback() {
        format!("every host has its own {address}")
    } else {
        format!("nothing there listens at {address}")
    };
    format!("what listens at {at} was taken for the server by its port alone: {why}")
}

/// The reason why an agent did not find the server, as a part of a sentence.
pub(super) fn server_there(reason: &ServerUnwatched) -> String {
    match reason {
        ServerUnwatched::NotLocal { address } => format!(
            "{address} is not an address there, and nothing listens on port {} at any other (behind address translation that \
             changes the port, observe where it leads, and sweep that port)",
            address.port()
        ),
        ServerUnwatched::PermissionDenied { address } => format!(
            "the process that listens on {address} belongs to another user (run the agent as root: --sudo with ssh://)"
        ),
        ServerUnwatched::TranslationUnread { address } => format!(
            "no process listens on {address}: start the server first, or check the port; if address translation leads on from \
             there, run the agent as root (--sudo with ssh://), so that it may read connection tracking, which tells where to"
        ),
        other => server(other),
    }
}

/// The reason why a database did not report all of its locks, as a part of a sentence.
pub(crate) fn database(reason: &DatabaseTrouble) -> String {
    match reason {
        DatabaseTrouble::NotInstalled { client } => {
            format!("{} is not installed; it comes with the package {}", client.program(), packages(*client))
        }
        DatabaseTrouble::NotStarted { client, os_error } => {
            format!("{} cannot be run: {}", client.program(), error(*os_error))
        }
        DatabaseTrouble::Ended { client, stderr } if stderr.is_empty() => {
            format!("{} ended without a message", client.program())
        }
        DatabaseTrouble::Ended { client, stderr } => format!("{} says: {stderr}", client.program()),
        DatabaseTrouble::TimedOut { limit_s } => format!("no answer within {} s", count(*limit_s)),
        DatabaseTrouble::Unparsable { client } => {
            format!("{} gave an answer that cannot be read", client.program())
        }
        DatabaseTrouble::Hidden { what } => hidden(*what).to_owned(),
        DatabaseTrouble::NoThread { os_error } => {
            format!("no thread could be started: {}", error(*os_error))
        }
    }
}

fn hidden(what: HiddenFromUser) -> &'static str {
    match what {
        HiddenFromUser::Transactions => {
            "this user may not see transactions, so that every connection counts as at work; `GRANT PROCESS ON *.* TO` it"
        }
        HiddenFromUser::Sessions => {
            "this user may not see what other users' sessions do; `GRANT pg_read_all_stats TO` it, or ask as the server's \
             own user"
        }
    }
}

/// The packages that bring a client.
fn packages(client: DatabaseClient) -> &'static str {
    match client {
        DatabaseClient::Psql => "postgresql-client (Debian, Ubuntu) or postgresql (Fedora, Arch)",
        DatabaseClient::Mariadb | DatabaseClient::Mysql => {
            "mariadb-client (Debian, Ubuntu) or mariadb (Fedora, Arch)"
        }
    }
}

pub(super) fn error(number: Option<i32>) -> String {
    number.map_or_else(
        || "the system gave no reason".to_owned(),
        |number| io::Error::from_raw_os_error(number).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_translation_elsewhere_is_told_what_lets_an_agent_read_it() {
        let reason = ServerUnwatched::TranslationUnread { address: ([10, 0, 0, 1], 80).into() };
        let told = agent("web", &AgentTrouble::ServerNotFound { reason });
        assert!(told.contains("10.0.0.1:80") && told.contains("--sudo with ssh://"), "{told}");
    }

    #[test]
    fn loopback_is_told_as_what_every_host_has_however_it_is_written() {
        for text in ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert!(by_port(address, address).contains(": every host has its own "), "{text}");
        }
    }
}
