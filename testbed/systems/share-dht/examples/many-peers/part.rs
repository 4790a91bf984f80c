//! Some of the peers, in one process: each a part of the index as the product runs it. Commands come on standard input.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    process, slice,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use share::{
    Content,
    entry::{Entry, Query},
    interfaces::Index,
};
use share_dht::{Dht, Options};

use crate::Result;

/// How long a peer may take to reach another.
const PATIENCE: Duration = Duration::from_secs(60);

/// What peers take, in all.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Memory that no file backs: RssAnon of proc_pid_status(5). The kernel's own for their sockets comes on top.
    pub(crate) memory_bytes: f64,
    pub(crate) cpu_s: f64,
    /// Other peers in their routing tables.
    pub(crate) known: f64,
    pub(crate) descriptors: f64,
    /// Requests that they sent: for lookups, to learn of others, and about files.
    pub(crate) messages: f64,
}

impl Figures {
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes + other.memory_bytes,
            cpu_s: self.cpu_s + other.cpu_s,
            known: self.known + other.known,
            descriptors: self.descriptors + other.descriptors,
            messages: self.messages + other.messages,
        }
    }
}

/// Peers in this process.
struct Part {
    peers: Vec<Arc<Dht>>,
}

/// Runs peers until standard input is closed, which ends the process.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let [from, count, join @ ..] = words else { return Err("part FROM COUNT [ADDR]".into()) };
    let join = join.first().map(|at| at.parse::<SocketAddr>()).transpose()?;
    let commands = commands();
    let part = Part::start(from.parse()?, count.parse()?, join)?;
    println!("{}", part.peers.first().ok_or("no peer")?.listen());
    part.renew_for_ever();
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        match words.as_slice() {
            ["figures"] => {
                let Figures { memory_bytes, cpu_s, known, descriptors, messages } = part.figures()?;
                println!("{memory_bytes} {cpu_s} {known} {descriptors} {messages}");
            }
            ["search", seconds, peers] => {
                let span = Duration::from_secs(seconds.parse()?);
                let (made, found, taken) = part.search(span, peers.parse()?)?;
                println!("{made} {found} {}", taken.as_secs_f64());
            }
            _ => return Err(format!("no command {command:?}").into()),
        }
    }
    Ok(())
}

/// The lines of standard input. At its end the process ends, whatever it is doing.
fn commands() -> mpsc::Receiver<String> {
    let (sender, commands) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                // It is ending for another reason.
                return;
            }
        }
        process::exit(0);
    });
    commands
}

/// The file that a peer shares.
fn file(number: usize) -> Result<Entry> {
    let name = format!("song{number}");
    Ok(Entry { content: Content::of(name.as_bytes()), size: name.len() as u64, name: name.parse()? })
}

/// Where the file of a peer can be fetched.
fn address(number: usize) -> Result<SocketAddr> {
    let [high, low] = u16::try_from(number)?.to_be_bytes();
    Ok(SocketAddr::from((Ipv4Addr::new(127, 1, high, low), 80)))
}

impl Part {
    /// Starts peers one after the other, each once the one before has joined, and registers a file at each.
    fn start(from: usize, count: usize, mut join: Option<SocketAddr>) -> Result<Self> {
        let mut peers = Vec::new();
        for number in from..from + count {
            let peer = Arc::new(open(join)?);
            peer.start(address(number)?);
            if join.is_some() {
                wait_until_joined(&peer)?;
            }
            peer.register(slice::from_ref(&file(number)?))?;
            join.get_or_insert(peer.listen());
            peers.push(peer);
        }
        Ok(Self { peers })
    }

    /// Renews what its peers have registered, as often as the product does.
    fn renew_for_ever(&self) {
        let peers = self.peers.clone();
        thread::spawn(move || {
            loop {
                let begun = Instant::now();
                for peer in &peers {
                    if let Err(error) = peer.renew() {
                        eprintln!("many-peers: {error}");
                    }
                }
                let interval = peers.first().map(|peer| peer.renew_interval()).unwrap_or_default();
                thread::sleep(interval.saturating_sub(begun.elapsed()).max(Duration::from_secs(1)));
            }
        });
    }

    fn figures(&self) -> Result<Figures> {
        let counts = self.peers.iter().map(|peer| peer.metrics_text()).collect::<Result<Vec<_>, _>>()?;
        let sum = |name: &str| counts.iter().map(|counts| figure(counts, name)).sum::<f64>();
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Figures {
            memory_bytes: memory_bytes()?,
            cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            known: sum("dht_peers"),
            descriptors: fs::read_dir("/proc/self/fd")?.count() as f64,
            messages: ["dht_sent_total", "dht_lookup_messages_total", "dht_refresh_messages_total"]
                .map(sum)
                .iter()
                .sum(),
        })
    }

    /// Searches for files of any of `peers` peers by name, at one of its own after the other. Returns how many searches were
    /// made, how many found the peer that has the file, and how long they took.
    fn search(&self, span: Duration, peers: usize) -> Result<(usize, usize, Duration)> {
        let (begun, mut made, mut found) = (Instant::now(), 0, 0);
        for peer in self.peers.iter().cycle() {
            if begun.elapsed() >= span {
                break;
            }
            let number = fastrand::usize(..peers);
            let results = peer.search(&Query::Name(file(number)?.name))?;
            let owner = address(number)?;
            made += 1;
            found += usize::from(results.iter().any(|result| result.peers.contains(&owner)));
        }
        Ok((made, found, begun.elapsed()))
    }
}

/// Starts a peer that joins another. Its key is needed only for that, and leaves no file behind.
fn open(join: Option<SocketAddr>) -> Result<Dht> {
    let state = tempfile::tempdir()?;
    let mut options = Options::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    options.bootstrap = join.into_iter().collect();
    Ok(Dht::open(&options, state.path())?)
}

fn wait_until_joined(peer: &Arc<Dht>) -> Result<()> {
    let begun = Instant::now();
    while figure(&peer.metrics_text()?, "dht_peers") == 0.0 {
        if begun.elapsed() > PATIENCE {
            return Err(format!("a peer reached no other within {} s", PATIENCE.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A metric, summed over its labels.
fn figure(counts: &str, name: &str) -> f64 {
    let of = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let labelled = || rest.strip_prefix('{')?.split_once("} ").map(|(_, number)| number);
        rest.strip_prefix(' ').or_else(labelled)?.parse::<f64>().ok()
    };
    counts.lines().filter_map(of).sum()
}

fn memory_bytes() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    let kilobytes = kilobytes.ok_or("no RssAnon in /proc/self/status")?;
    Ok(kilobytes.parse::<f64>()? * 1_024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let text = "# HELP dht_sent x\ndht_sent_total{kind=\"find\"} 3\ndht_sent_total{kind=\"keep\"} 4\n\
                    dht_peers 2\ndht_peers_more 9\n";
        assert_eq!(figure(text, "dht_sent_total"), 7.0);
        assert_eq!(figure(text, "dht_peers"), 2.0);
        assert_eq!(figure(text, "dht_lookups_total"), 0.0);
    }

    #[test]
    fn peers_of_a_part_know_each_other_and_search() {
        let part = Part::start(0, 3, None).unwrap();
        let figures = part.figures().unwrap();
        assert!(figures.memory_bytes > 0.0 && figures.descriptors > 3.0, "{figures:?}");
        // Whoever joined another knows it at least.
        assert!(figures.known >= 2.0 && figures.messages > 0.0, "{figures:?}");
        let (made, found, taken) = part.search(Duration::from_millis(200), 3).unwrap();
        assert!(
            made > 0 && found > 0 && found <= made && taken >= Duration::from_millis(200),
            "{found} of {made}"
        );
    }
}
