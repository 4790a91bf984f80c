//! Names of resources and of whoever holds them.

use std::borrow::Cow;

use analysis::counters::{Container, IoRate, ServerAddress};
use analysis::run::{Database, DiskLimit, HostName, Identity, Processes, Resource, ResourceKind, Slowable};

use crate::{number, words};

/// `nginx (pid 812)`, `nginx (2 processes)`, `nginx on web (pid 812)`.
pub(crate) fn processes(of: &Processes) -> String {
    let name = named_on(&of.name, &of.on);
    match of.pid {
        Some(pid) => format!("{name} (pid {pid})"),
        None => format!("{name} ({} processes)", number::count(of.processes.into())),
    }
}

/// What may be slowed: `nginx (pid 812)`, `the link eth0`.
pub(crate) fn slowable(of: &Slowable) -> String {
    match &of.link {
        Some(link) => format!("the link {}", named_on(&link.name, &link.on)),
        None => processes(&of.processes),
    }
}

/// `vda`, `vda on web`.
pub(crate) fn named_on<'a>(name: &'a str, host: &HostName) -> Cow<'a, str> {
    match host {
        Some(host) => format!("{name} on {host}").into(),
        None => name.into(),
    }
}

/// `the host`, `the host web`.
pub(super) fn the_host(host: &HostName) -> String {
    host.as_ref().map_or_else(|| "the host".to_owned(), |name| format!("the host {name}"))
}

/// The holder of a resource: `nginx (pid 812)`, `vda`.
pub(crate) fn name(identity: &Identity) -> Cow<'_, str> {
    match identity {
        Identity::Processes(of) | Identity::Thread(of) | Identity::Quota(of) => processes(of).into(),
        Identity::IoLimit(limit) => processes(&limit.of).into(),
        Identity::Disk { name, on: host } | Identity::Link { name, on: host } => named_on(name, host),
        Identity::Named { name } => name.into(),
        Identity::Processor { number, on: host } => {
            named_on(&format!("processor {number}"), host).into_owned().into()
        }
        Identity::Host { on: None } => "host".into(),
        Identity::Host { on: Some(host) } => format!("host {host}").into(),
        Identity::Generator => "generator".into(),
        Identity::DatabaseLocks(of) => database(of).into(),
        Identity::ListenQueue { port } => format!("port {port}").into(),
        Identity::Upstream { address, .. } => server_address(address),
        Identity::OtherProcesses { on: host } => named_on("other processes", host).into_owned().into(),
    }
}

/// An address as people write it: `10.0.0.7:5432`, `/run/php.sock`.
pub(crate) fn server_address(of: &ServerAddress) -> Cow<'_, str> {
    match of {
        ServerAddress::Tcp { address } => address.to_string().into(),
        ServerAddress::Unix { path } => path.into(),
    }
}

/// The containers or services that processes run in: `container shop-web-1`, `pod web-5d9c/nginx`, `nginx.service`; nothing
/// where they are in none.
pub(crate) fn runs_in(containers: &[Container], units: &[String]) -> Option<String> {
    match (containers, units) {
        ([], []) => None,
        ([one], []) => Some(container(one)),
        ([], [unit]) => Some(unit.clone()),
        ([], several) => Some(format!("{} services", number::count(several.len() as u64))),
        (several, _) => Some(format!("{} containers", number::count(several.len() as u64))),
    }
}

fn container(of: &Container) -> String {
    let name = of.name.as_ref().unwrap_or(&of.id);
    match (&of.pod, of.engine.as_str()) {
        (Some(pod), _) => format!("pod {pod}/{name}"),
        (None, "") => format!("container {name}"),
        (None, _) if of.name.is_some() => format!("container {name}"),
        (None, engine) => format!("{engine} {name}"),
    }
}

/// The same without numbers of processes: `nginx`.
pub(crate) fn short_name(identity: &Identity) -> Cow<'_, str> {
    identity.processes().map_or_else(|| name(identity), |of| Cow::Borrowed(&of.name))
}

/// The holder's name, or nothing where there is no holder.
pub(crate) fn name_or_nothing(identity: Option<&Identity>) -> Cow<'_, str> {
    identity.map_or(Cow::Borrowed(""), name)
}

/// A resource by its holder, or by its kind where it has none.
pub(crate) fn resource_name(resource: &Resource) -> Cow<'_, str> {
    holder_or_kind(resource.kind, resource.identity.as_ref())
}

/// The holder of a resource, or its kind where nobody holds it.
pub(crate) fn holder_or_kind(of: ResourceKind, identity: Option<&Identity>) -> Cow<'_, str> {
    identity.map_or(Cow::Borrowed(words::kind(of)), name)
}

/// A database: its processes, or its address.
pub(super) fn database(of: &Database) -> String {
    match of {
        Database::Processes(of) => processes(of),
        Database::Address { name } => name.clone(),
    }
}

/// A resource within a sentence: `the CPU of nginx (pid 812)`.
pub(super) fn resource(identity: &Identity) -> String {
    let holder = name(identity);
    match identity {
        Identity::Processes(_) => format!("the CPU of {holder}"),
        Identity::Thread(_) => format!("a single thread of {holder}"),
        Identity::Quota(_) => format!("the CPU quota of {holder}"),
        Identity::IoLimit(limit) => format!("the limit of {holder} on {}", limited(limit)),
        Identity::Disk { .. } => format!("the disk {holder}"),
        Identity::Link { .. } => format!("the link {holder}"),
        Identity::Processor { .. } => format!("the soft interrupts of {holder}"),
        Identity::Host { on } => format!("the processors of {}", the_host(on)),
        Identity::Generator => "the generator".to_owned(),
        Identity::DatabaseLocks(_) => format!("the locks of {holder}"),
        Identity::ListenQueue { .. } => format!("the listen queue of {holder}"),
        Identity::Upstream { .. } => format!("the upstream {holder}"),
        Identity::OtherProcesses { .. } | Identity::Named { .. } => holder.into_owned(),
    }
}

/// A resource as the subject of a sentence: `The busiest thread of nginx (pid 812)`.
pub(super) fn subject(identity: &Identity) -> String {
    let holder = name(identity);
    match identity {
        Identity::Processes(_) => format!("{holder} on all the processors it may use"),
        Identity::Thread(_) => format!("The busiest thread of {holder}"),
        Identity::Quota(_) => format!("The CPU quota of {holder}"),
        Identity::IoLimit(limit) => format!("The limit of {holder} on {}", limited(limit)),
        Identity::Disk { .. } => format!("The disk {holder}"),
        Identity::Link { .. } => format!("The link {holder}"),
        Identity::Processor { .. } => format!("The soft interrupts of {holder}"),
        Identity::Host { on } => {
            format!("{}, all its processors together,", words::capitalised(&the_host(on)))
        }
        Identity::Generator => "The load generator".to_owned(),
        Identity::DatabaseLocks(_) => format!("The locks of {holder}"),
        Identity::ListenQueue { .. } => format!("The listen queue of {holder}"),
        Identity::Upstream { .. } => format!("The upstream {holder}"),
        Identity::OtherProcesses { .. } => words::capitalised(&holder),
        Identity::Named { .. } => holder.into_owned(),
    }
}

/// The use that a limit on a disk limits: `writes a second on vda`.
fn limited(limit: &DiskLimit) -> String {
    format!("{} a second on {}", rate(limit.rate), limit.device)
}

/// The noun for what is counted: `writes`, `bytes read`.
fn rate(of: IoRate) -> &'static str {
    match of {
        IoRate::Reads => "reads",
        IoRate::Writes => "writes",
        IoRate::ReadBytes => "bytes read",
        IoRate::WrittenBytes => "bytes written",
    }
}

/// A number of what is counted: `1 write`, `2.5 bytes read`.
pub(super) fn counted(number: f64, of: IoRate) -> String {
    let number = number::quantity(number);
    let one = match of {
        IoRate::Reads => "read",
        IoRate::Writes => "write",
        IoRate::ReadBytes => "byte read",
        IoRate::WrittenBytes => "byte written",
    };
    let noun = if number == "1" { one } else { rate(of) };
    format!("{number} {noun}")
}
