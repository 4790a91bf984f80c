//! Namespaces of which less is known than of others, because the kernel does not tell all about their sockets.

use analysis::run::SocketsUnread;

use super::Topology;
use super::namespaces::{Namespace, read_id};
use crate::kernel_files::{KernelPaths, Pid, read};

impl Topology {
    /// The network namespaces of the servers and of the tiers behind them, and this process's own, of which the kernel does
    /// not tell all, with the reasons.
    #[must_use]
    pub fn sockets_unread(&self) -> Vec<SocketsUnread> {
        self.sockets_unread_in(&KernelPaths::default())
    }

    fn sockets_unread_in(&self, paths: &KernelPaths) -> Vec<SocketsUnread> {
        if self.is_unseen() {
            return Vec::new();
        }
        let own = Namespace::own(paths);
        let mut others: Vec<&Namespace> = self.namespaces.iter().chain(&self.namespace).collect();
        others.retain(|other| other.id != own.id);
        others.sort_by_key(|other| &other.id);
        others.dedup_by_key(|other| &other.id);
        let of_own = own.refusal().map(|error| SocketsUnread::NotAnswered {
            os_error: error.raw_os_error(),
            tables: own.has_tables(),
        });
        let closed = others.into_iter().filter_map(|namespace| self.closed(paths, namespace));
        of_own.into_iter().chain(closed).collect()
    }

    fn closed(&self, paths: &KernelPaths, namespace: &Namespace) -> Option<SocketsUnread> {
        let error = namespace.refusal()?;
        let pid = self.tier_in(paths, namespace)?;
        let name = read(&paths.process(pid).join("comm")).ok()?.trim_end().to_owned();
        let (os_error, tables) = (error.raw_os_error(), namespace.has_tables());
        Some(SocketsUnread::NamespaceClosed { name, pid, os_error, tables })
    }

    /// The first process of a tier that runs there, or else the one through which the namespace is seen.
    pub(crate) fn tier_in(&self, paths: &KernelPaths, namespace: &Namespace) -> Option<Pid> {
        let mut tiers = self.servers.iter().chain(&self.downstream).copied();
        let lives_there = |pid: &Pid| read_id(&paths.process(*pid)).is_some_and(|id| id == namespace.id);
        tiers.find(lives_there).or(namespace.through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_in_the_namespace_of_this_process() {
        let mut topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        topology.listeners.insert(7, None);
        assert_eq!(topology.sockets_unread(), []);
    }

    #[test]
    fn what_was_never_seen_is_not_asked_for() {
        assert_eq!(Topology::unseen(([127, 0, 0, 1], 80).into()).sockets_unread(), []);
    }
}
