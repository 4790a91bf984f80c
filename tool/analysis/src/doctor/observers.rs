//! Facts from several observers: what each has to tell that no other has, so that nothing is found twice.

use std::collections::BTreeSet;

use super::checks::Scope;
use super::{Facts, Processor, Sockets, Subject, SubjectFacts};

/// What others tell who observe the same machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Whether any tells of the machine.
    pub machine: bool,
    /// Whether any tells of the same processes of the server.
    pub servers: bool,
    /// The network namespaces that they tell of.
    pub networks: BTreeSet<String>,
}

impl Facts {
    /// The names of the network namespaces that they tell of.
    pub fn networks(&self) -> impl Iterator<Item = &String> {
        let of_server = self.server_network.iter().map(|network| &network.sockets);
        let all = std::iter::once(&self.sockets).chain(of_server);
        all.map(|sockets| &sockets.network).filter(|name| !name.is_empty())
    }

    /// The same where these processes are part of the measurement too.
    #[must_use]
    pub fn with_ours(mut self, pids: &[u32]) -> Self {
        for process in &mut self.processes {
            process.is_ours |= pids.contains(&process.pid);
        }
        self
    }

    /// The same without what others tell.
    #[must_use]
    pub fn beyond(mut self, known: &Known) -> Self {
        if known.machine {
            self = self.without_machine();
        }
        if known.servers {
            self.subjects.clear();
            self.listeners.clear();
        }
        let is_known = |sockets: &Sockets| known.networks.contains(&sockets.network);
        let own_is_known = is_known(&self.sockets);
        if own_is_known {
            let Sockets { packet_queue, packets_dropped, packets_handled, .. } = self.sockets;
            self.sockets = Sockets { packet_queue, packets_dropped, packets_handled, ..Sockets::default() };
            self.links.clear();
            self.offloads.clear();
        }
        self.server_network = self.server_network.filter(|network| !is_known(&network.sockets));
        let knows_networks = own_is_known && self.server_network.is_none();
        self.unmade.retain(|unmade| match unmade.check.scope() {
            Scope::Machine => !known.machine,
            Scope::Network => !knows_networks,
            Scope::Processes => !known.servers,
        });
        self
    }

    fn without_machine(self) -> Self {
        Self {
            cpus: Vec::new(),
            // Which of them share a core or a node is asked of the server's processes.
            processors: self.processors.iter().map(Processor::place).collect(),
            clock: None,
            clocks: Vec::new(),
            huge_pages: None,
            swapped_in_pages: 0,
            processes: Vec::new(),
            sockets: Sockets { packets_dropped: 0, packets_handled: 0, ..self.sockets },
            ..self
        }
    }

    /// The same beside the generator, which runs on the same machine, so that processors are found that both may use.
    #[must_use]
    pub fn beside(mut self, generator: &Self) -> Self {
        let of = generator.subjects.iter().filter(|(subject, _)| *subject == Subject::Generator);
        let placed = of.map(|(subject, limits)| {
            let allowed = limits.allowed.clone();
            (subject.clone(), SubjectFacts { allowed, ..SubjectFacts::default() })
        });
        self.subjects.extend(placed);
        self.processors = generator.processors.iter().map(Processor::place).collect();
        self
    }
}

impl Processor {
    /// Where it is, without how it is set.
    fn place(&self) -> Self {
        Self { governor: None, wake_us: None, ..self.clone() }
    }
}
