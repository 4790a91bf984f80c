//! How long a single hostile connection is kept by a server that has nothing else to do.

use std::{
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    Site,
    attacks::{ATTACKS, Attack},
    parties::Party,
    statuses,
};
use crate::tools::{
    effort::Result,
    kernel::{Held, held_connections},
    workspace::ServerProcess,
};

/// The longest that is waited for the end of a connection: longer than every time-out of the server.
const PATIENCE: Duration = Duration::from_secs(75);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What became of one connection of each attack, in words, for each of the models. All are looked at together.
pub(super) fn measure(site: &Site<'_>, models: &[&'static str]) -> Result<Vec<Vec<String>>> {
    // A model that cannot run here is told about when its turn comes.
    let servers: Vec<_> = models.iter().map(|model| Servers::start(site, model)).collect();
    let mut all = Vec::new();
    for servers in &servers {
        all.push(servers.as_ref().map_or_else(|_| Ok(Vec::new()), |servers| servers.attacked(site))?);
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && all.iter().flatten().any(|one| one.kept.is_none()) {
        thread::sleep(LOOK_EVERY);
        let held = held_connections()?;
        all.iter_mut().flatten().for_each(|one| one.look(&held));
    }
    Ok(all.iter_mut().map(|of_model| in_words(of_model)).collect())
}

fn in_words(of_model: &mut [Alone]) -> Vec<String> {
    let mut words = vec!["-".to_owned(); ATTACKS.len()];
    for one in of_model {
        words[one.attack] = one.fate();
    }
    words
}

/// The servers of a model, in the clear and over TLS.
struct Servers {
    plain: ServerProcess,
    secure: ServerProcess,
}

impl Servers {
    fn start(site: &Site<'_>, model: &str) -> Result<Self> {
        Ok(Servers { plain: site.server(model, false)?, secure: site.server(model, true)? })
    }

    /// Begins a connection of each attack that the server has to end.
    fn attacked(&self, site: &Site<'_>) -> Result<Vec<Alone>> {
        let holding = ATTACKS.iter().enumerate().filter(|(_, attack)| attack.holds);
        holding.map(|(number, attack)| self.attacked_by(site, number, attack)).collect()
    }

    fn attacked_by(&self, site: &Site<'_>, number: usize, attack: &Attack) -> Result<Alone> {
        let server = if attack.secure { &self.secure } else { &self.plain };
        let network = network_of(number);
        let seconds = PATIENCE.as_secs() + 15;
        let party = Party::hostile(site.workspace, server, (attack.kind, network), 1, seconds)?;
        // The first address that it uses; another connection in its place has another.
        let at = Held { port: server.address.port(), peer: Ipv4Addr::new(127, network, 0, 1) };
        Ok(Alone { attack: number, at, party, since: None, kept: None })
    }
}

/// The network of an attack: 127.NETWORK.0.0/16.
pub(super) fn network_of(attack: usize) -> u8 {
    16 + u8::try_from(attack).unwrap_or(0)
}

/// A hostile connection.
struct Alone {
    attack: usize,
    at: Held,
    party: Party,
    /// When the server was first seen to hold it.
    since: Option<Instant>,
    /// How long it was held.
    kept: Option<Duration>,
}

impl Alone {
    fn look(&mut self, held: &[Held]) {
        match (self.since, held.contains(&self.at)) {
            (None, true) => self.since = Some(Instant::now()),
            (Some(since), false) if self.kept.is_none() => self.kept = Some(since.elapsed()),
            _ => {}
        }
    }

    /// `10 s (408)`, with the status that it was told, if any.
    fn fate(&mut self) -> String {
        let Some(kept) = self.kept else {
            let seen = if self.since.is_some() { "kept" } else { "not seen" };
            return format!("{seen} for {} s", PATIENCE.as_secs());
        };
        let report: Value =
            self.party.ask().ok().and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default();
        let told = statuses(&report).into_iter().map(|(status, _)| status).collect::<Vec<_>>();
        let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
        format!("{:.0} s{told}", kept.as_secs_f64())
    }
}
