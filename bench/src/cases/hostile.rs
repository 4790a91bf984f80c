//! What hostile clients take from others, on every concurrency model: the rate of ordinary clients beside each kind of
//! attack against their rate undisturbed, the memory that a hostile connection costs, and how the server gets rid of it.
//!
//! The server has its shipped limits and time-outs. A turn of each kind is taken in the order A B B A: undisturbed, twice
//! beside the attack, and undisturbed again once the server has let go of it.

mod alone;
mod attacks;
mod parties;

use std::{
    env, fs, thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use self::{
    attacks::{ATTACKS, Attack},
    parties::{Others, Party, Rates},
};
use super::{generator::self_signed, models::ALL_MODELS};
use crate::{
    programs::servers::KB,
    tools::{
        effort::{Effort, Result},
        kernel::{held_connections, resident_bytes},
        table::{Grid, median, short, spread, word},
        workspace::{ServerProcess, Workspace},
    },
};

/// The share of its rate that everybody else should keep.
const REACH: f64 = 0.9;
/// Bytes of the file that slow readers ask for: more than the buffers of a connection hold.
const LARGE: usize = 10_000 * KB;
/// How long an attack may take to grow, and to be let go of.
const GROWING_MAX: Duration = Duration::from_secs(20);
/// An attack that has not grown for so long has what the server gives.
const GROWN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Where servers find what they serve.
struct Site<'a> {
    workspace: &'a Workspace,
    root: String,
    key: String,
    certificate: String,
}

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    let site = Site::new(workspace)?;
    let models = models()?;
    eprintln!("bench: one hostile connection of each kind, for 75 s at most");
    let fates = alone::measure(&site, &models)?;
    let mut all: Vec<Beside> = Vec::new();
    for (model, fates) in models.into_iter().zip(fates) {
        let attacks = ATTACKS.iter().zip(fates).enumerate();
        all.extend(attacks.map(|(number, (attack, fate))| Beside::new(model, attack, number, fate)));
    }
    for round in 1..=effort.rounds {
        for beside in &mut all {
            let (model, attack) = (beside.model, beside.attack.name);
            eprintln!("bench: round {round}: {model}, {attack}");
            // A system may deny io_uring, or have no room; the others are measured all the same.
            if let Err(error) = beside.look(&site, effort) {
                eprintln!("bench: left out: {model}, {attack}: {error}");
            }
        }
    }
    let columns = vec![
        "model",
        "attack",
        "held by the server",
        "ended meanwhile",
        "one alone is kept",
        "service on kept connections",
        "service on new connections",
        "both >= 0.9",
        "resident bytes of a held one",
    ];
    Ok(Grid { columns, rows: all.iter().map(Beside::cells).collect() })
}

/// All models, or the one that the environment names.
fn models() -> Result<Vec<&'static str>> {
    let Ok(wanted) = env::var("NSTAR_MODEL") else { return Ok(ALL_MODELS.to_vec()) };
    let chosen: Vec<_> = ALL_MODELS.into_iter().filter(|model| *model == wanted).collect();
    if chosen.is_empty() {
        return Err(format!("NSTAR_MODEL: there is no model '{wanted}'").into());
    }
    Ok(chosen)
}

impl<'a> Site<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let root = workspace.path("site");
        fs::create_dir_all(&root)?;
        workspace.file("site/1k", KB)?;
        workspace.file("site/large", LARGE)?;
        let (key, certificate) = self_signed(workspace)?;
        Ok(Site { workspace, root: root.display().to_string(), key, certificate })
    }

    /// Starts the file server as it is shipped, open to all, also for uploads: slow bodies are to be taken.
    fn server(&self, model: &str, secure: bool) -> Result<ServerProcess> {
        let mut flags = vec!["files", "--root", &self.root, "--accounts", "none", "--open-uploads"];
        if secure {
            flags.extend(["--tls-cert", &self.certificate, "--tls-key", &self.key]);
        }
        self.workspace.serve_ours_as_shipped(model, &flags)
    }
}

/// Service beside an attack on a model, with an entry for each round.
struct Beside {
    model: &'static str,
    attack: &'static Attack,
    network: u8,
    /// What became of one hostile connection alone.
    fate: String,
    /// Rates on kept and on new connections against those undisturbed.
    ratios: [Vec<f64>; 2],
    held: Vec<f64>,
    /// Resident memory of a held connection.
    bytes: Vec<f64>,
    /// Connections at once, and what the attack saw, in the last round.
    seen: Option<(u64, Value)>,
}

impl Beside {
    fn new(model: &'static str, attack: &'static Attack, number: usize, fate: String) -> Self {
        let network = alone::network_of(number);
        let (ratios, held, bytes) = Default::default();
        Beside { model, attack, network, fate, ratios, held, bytes, seen: None }
    }

    /// One round, on a server of its own.
    fn look(&mut self, site: &Site<'_>, effort: Effort) -> Result<()> {
        let Attack { kind, secure, .. } = *self.attack;
        let connections = self.attack.fitting(self.model)?;
        let server = site.server(self.model, secure)?;
        let mut others = Others::of(&server, site.workspace, secure)?;
        let before = others.rates(effort.seconds)?;
        let bytes_before = resident_bytes(server.pid());
        let seconds = 2 * GROWING_MAX.as_secs() + 20 * u64::from(effort.seconds);
        let at = (kind, self.network);
        let mut party = Party::hostile(site.workspace, &server, at, connections, seconds)?;
        let held = grown(&server, connections)?;
        let bytes = resident_bytes(server.pid()) - bytes_before;
        let beside = [others.rates(effort.seconds)?, others.rates(effort.seconds)?];
        let seen: Value = serde_json::from_str(&party.ask()?)?;
        drop(party);
        gone(&server)?;
        let after = others.rates(effort.seconds)?;
        let ratios = ratios([before, after], beside).ok_or("nobody was served undisturbed")?;
        self.ratios.iter_mut().zip(ratios).for_each(|(all, ratio)| all.push(ratio));
        self.held.push(held as f64);
        if held > 0 {
            self.bytes.push(bytes.max(0.0) / held as f64);
        }
        self.seen = Some((connections, seen));
        Ok(())
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![format!("`{}`", self.model), self.attack.name.to_owned()];
        let Some((connections, seen)) = &self.seen else {
            cells.extend(["-", "-", &self.fate, "-", "-", "-", "-"].map(String::from));
            return cells;
        };
        let met = self.ratios.iter().all(|ratios| median(ratios) >= REACH);
        let bytes = if self.bytes.is_empty() { "-".to_owned() } else { short(median(&self.bytes)) };
        cells.extend([
            format!("{:.0} of {connections}", median(&self.held)),
            ended(seen),
            self.fate.clone(),
            spread(&self.ratios[0]),
            spread(&self.ratios[1]),
            word(met).to_owned(),
            bytes,
        ]);
        cells
    }
}

/// The rates beside an attack against those undisturbed; `None` unless there was service undisturbed.
fn ratios([before, after]: [Rates; 2], beside: [Rates; 2]) -> Option<Rates> {
    let sums = |rates: [Rates; 2]| [rates[0][0] + rates[1][0], rates[0][1] + rates[1][1]];
    let (undisturbed, beside) = (sums([before, after]), sums(beside));
    let served = undisturbed.iter().all(|rate| *rate > 0.0);
    served.then(|| [beside[0] / undisturbed[0], beside[1] / undisturbed[1]])
}

/// `812 (408: 800)`: how many connections the server ended, and what it told them.
fn ended(seen: &Value) -> String {
    let told: Vec<_> = statuses(seen).iter().map(|(status, count)| format!("{status}: {count}")).collect();
    let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
    format!("{}{told}", seen["ended"])
}

/// The statuses that hostile clients were told, and how often.
fn statuses(seen: &Value) -> Vec<(String, u64)> {
    let all = seen["statuses"].as_object().into_iter().flatten();
    all.filter_map(|(status, count)| Some((status.clone(), count.as_u64()?))).collect()
}

/// Waits until the server holds as many hostile connections as it will for now. Returns how many.
fn grown(server: &ServerProcess, wanted: u64) -> Result<usize> {
    let begun = Instant::now();
    let (mut most, mut since) = (0, begun);
    loop {
        thread::sleep(LOOK_EVERY);
        let held = hostile_held(server)?;
        if held > most {
            (most, since) = (held, Instant::now());
        }
        if held as u64 >= wanted || since.elapsed() > GROWN || begun.elapsed() > GROWING_MAX {
            return Ok(held);
        }
    }
}

/// Waits until the server holds none any more.
///
/// # Errors
/// Where it goes on holding some: what follows would not be undisturbed.
fn gone(server: &ServerProcess) -> Result<()> {
    let begun = Instant::now();
    while hostile_held(server)? > 0 {
        if begun.elapsed() > GROWING_MAX {
            return Err("the server still holds connections of clients that are gone".into());
        }
        thread::sleep(LOOK_EVERY);
    }
    // What ended with them is cleaned up.
    thread::sleep(GROWN);
    Ok(())
}

/// Connections that the server holds of others than ordinary clients, which are all at 127.0.0.1.
fn hostile_held(server: &ServerProcess) -> Result<usize> {
    let port = server.address.port();
    let is_hostile = |peer: [u8; 4]| peer[0] == 127 && peer[1] != 0;
    let held = held_connections()?;
    Ok(held.iter().filter(|held| held.port == port && is_hostile(held.peer.octets())).count())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ratios_are_of_both_turns_and_need_service() {
        let undisturbed = [[100.0, 80.0], [100.0, 120.0]];
        assert_eq!(ratios(undisturbed, [[90.0, 50.0], [100.0, 0.0]]), Some([0.95, 0.25]));
        assert_eq!(ratios([[100.0, 0.0], [100.0, 0.0]], undisturbed), None);
    }

    #[test]
    fn what_was_ended_is_told_with_its_statuses() {
        assert_eq!(ended(&json!({ "ended": 0, "statuses": {} })), "0");
        assert_eq!(ended(&json!({ "ended": 9, "statuses": { "408": 7 } })), "9 (408: 7)");
    }
}
