//! MariaDB on several nodes, each with all data: Galera.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    kind::Kind,
    server::{DatabaseServer, PATIENCE, Ready, free_port},
    settings::{DatabaseError, Host, Settings},
};

/// Where packages install Galera: Debian's, and those of other distributions.
const PROVIDERS: [&str; 3] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib/galera-4/libgalera_smm.so",
];
/// Bounds how long a silent node holds up the others: 5 s by default, which tests would wait for each time.
const GROUP_OPTIONS: &str = "gcache.size=16M;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;\
                             evs.inactive_check_period=PT0.2S;evs.keepalive_period=PT0.3S;\
                             evs.join_retrans_period=PT0.3S;pc.announce_timeout=PT1S";
/// A node that takes part, and has all data.
const SYNCED: Ready = Ready { statement: "SHOW STATUS LIKE 'wsrep_local_state_comment'", word: "Synced" };
const INTERVAL: Duration = Duration::from_millis(50);

/// A cluster of MariaDB servers that hold the same data, as ordinary processes on 127.0.0.1 or on hosts of their own. Each takes
/// changes. A node that joins, also after it was killed, gets its data from another by rsync.
#[derive(Debug)]
pub struct GaleraCluster {
    nodes: Vec<DatabaseServer>,
}

/// The ports of a node beside the one for clients.
struct Ports {
    group: u16,
    changes: u16,
    data: u16,
}

impl GaleraCluster {
    /// Whether all programs are installed.
    ///
    /// # Errors
    /// When one is not. The error says how to install it.
    pub fn installed() -> Result<(), DatabaseError> {
        provider().map(drop)
    }

    /// Starts a node for clients on each of these ports, and waits until all take part. `settings` are those of each node.
    ///
    /// # Errors
    /// When something is not installed or a node does not start. The error holds the last line that it printed.
    pub fn start(ports: &[u16], settings: Settings) -> Result<Self, DatabaseError> {
        let settings = with_password(settings)?;
        Self::start_all(ports.iter().map(|port| Settings { port: Some(*port), ..settings.clone() }).collect())
    }

    /// Starts a node on each of these hosts, and waits until all take part. `settings` are those of each node.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(hosts: &[Host], settings: Settings) -> Result<Self, DatabaseError> {
        let settings = Settings { network: true, port: None, ..with_password(settings)? };
        Self::start_all(hosts.iter().map(|host| Settings { host: Some(*host), ..settings.clone() }).collect())
    }

    fn start_all(all: Vec<Settings>) -> Result<Self, DatabaseError> {
        let provider = provider()?;
        let inner = all.iter().map(|_| Ports::free()).collect::<Result<Vec<_>, _>>();
        let inner = inner.map_err(|source| io("find a free port", source))?;
        let nodes = all.iter().zip(&inner);
        let addresses: Vec<String> =
            nodes.map(|(settings, ports)| format!("{}:{}", settings.among_servers(), ports.group)).collect();
        let cluster = addresses.join(",");
        let mut nodes = Vec::new();
        for (settings, inner) in all.into_iter().zip(&inner) {
            let arguments = arguments(&provider, &cluster, settings.among_servers(), inner);
            let mut node = DatabaseServer::prepare(Kind::Mariadb, settings)?;
            node.make_database()?;
            node.ready_when(SYNCED);
            let first = nodes.is_empty().then(|| "--wsrep-new-cluster".to_owned());
            node.replicate(arguments.iter().cloned().chain(first).collect());
            // One after the other: nodes that join at once wait for each other's time-outs.
            node.restart()?;
            node.replicate(arguments);
            nodes.push(node);
        }
        Ok(Self { nodes })
    }

    /// The nodes, in the order of the ports.
    pub fn nodes(&self) -> &[DatabaseServer] {
        &self.nodes
    }

    /// Creates an empty database, and waits until every node has it. Its name must begin with `nstar`.
    ///
    /// # Errors
    /// When a node refuses, or never has it.
    pub fn create(&self, name: &str) -> Result<(), DatabaseError> {
        let Some(first) = self.nodes.first() else { return Ok(()) };
        first.create(name)?;
        let deadline = Instant::now() + PATIENCE;
        for node in &self.nodes {
            while !node.run("SELECT 1", Some(name))?.status.success() {
                if Instant::now() >= deadline {
                    return Err(node.failed("see a new database", &node.log()));
                }
                thread::sleep(INTERVAL);
            }
        }
        Ok(())
    }

    /// The URL of a database, with all nodes and without the password.
    pub fn url(&self, name: &str) -> String {
        self.url_from(0, name)
    }

    /// The same for a program that prefers node `first`: it comes first.
    pub fn url_from(&self, first: usize, name: &str) -> String {
        let nodes = self.nodes.iter().cycle().skip(first).take(self.nodes.len());
        let host = |node: &DatabaseServer| format!("{}:{}", node.settings().for_clients(), node.port());
        let hosts: Vec<String> = nodes.map(host).collect();
        format!("mysql://nstar@{}/{name}", hosts.join(","))
    }
}

/// The data is not kept, so the nodes need not take leave of each other.
impl Drop for GaleraCluster {
    fn drop(&mut self) {
        self.nodes.iter().for_each(DatabaseServer::kill);
    }
}

impl Ports {
    fn free() -> std::io::Result<Self> {
        Ok(Self { group: free_port()?, changes: free_port()?, data: free_port()? })
    }
}

fn io(what: &'static str, source: std::io::Error) -> DatabaseError {
    DatabaseError::Io { kind: "Galera", what, source }
}

/// Nodes have one password.
fn with_password(settings: Settings) -> Result<Settings, DatabaseError> {
    let password = settings.password_or_random().map_err(|source| io("make a password", source))?;
    Ok(Settings { password: Some(password), ..settings })
}

fn provider() -> Result<PathBuf, DatabaseError> {
    Kind::Mariadb.program()?;
    let missing = |program, package| DatabaseError::NotInstalled { kind: "Galera", program, package };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("rsync").is_file()) {
        return Err(missing("rsync", "rsync"));
    }
    let provider = PROVIDERS.map(PathBuf::from).into_iter().find(|provider| provider.is_file());
    provider.ok_or(missing("libgalera_smm.so", "galera-4"))
}

fn arguments(provider: &Path, cluster: &str, address: Ipv4Addr, ports: &Ports) -> Vec<String> {
    let Ports { group, changes, data } = ports;
    vec![
        "--wsrep-on=ON".into(),
        format!("--wsrep-provider={}", provider.display()),
        format!("--wsrep-cluster-address=gcomm://{cluster}"),
        "--wsrep-cluster-name=nstar".into(),
        format!("--wsrep-node-address={address}"),
        "--wsrep-sst-method=rsync".into(),
        format!("--wsrep-sst-receive-address={address}:{data}"),
        format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://{address}:{group};ist.recv_addr={address}:{changes};\
             {GROUP_OPTIONS}"
        ),
        // What Galera requires.
        "--binlog-format=ROW".into(),
        "--default-storage-engine=InnoDB".into(),
        "--innodb-autoinc-lock-mode=2".into(),
    ]
}
