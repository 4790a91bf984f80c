//! Whether a comparison finds a build that is 3 % slower, by how often each build was measured, and whether it claims a change
//! between a build and itself.
//!
//! The builds are the bare responder with more and less to compute. They are swept in turns as docs/compare.md says, one build,
//! the other, the first again, then the other way round, so that a drift of the machine meets all alike; the server is started
//! anew before each sweep. Fewer repeats are parts of the same sweeps, so that there are several comparisons of few. A last line
//! has the fewest repeats, from the first on, that found the slower build; whoever looks until something is found finds it too
//! often, so that only the numbers that were fixed beforehand count.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    programs::servers::KB,
    tools::{
        cpu,
        effort::{Effort, Result},
        table::{Grid, median},
        workspace::{CLIENTS, SERVERS, Workspace},
    },
};

/// What a request of the faster build takes, microseconds.
const WORK_US: f64 = 300.0;
/// How much longer one of the slower build takes.
const SLOWER: f64 = 1.03;
/// Repeats of each side; each divides the last.
const REPEATS: [usize; 5] = [1, 2, 4, 8, 16];
const REPEATS_MAX: usize = REPEATS[REPEATS.len() - 1];
/// One user leaves gaps, two do not, and four show that throughput no longer grows.
const USERS: &str = "1,2,4";
/// Seconds of a step at least.
const STEP_S_MIN: u32 = 2;
const GATE: &str = "throughput>-1%";

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    let place = Place::new(workspace, effort)?;
    let steps = bench::steps_per_us() * WORK_US;
    let builds = [("before", steps), ("slower", steps * SLOWER), ("same", steps)];
    let [before, slower, same] = place.in_turns(builds)?;
    let mut rows = Vec::new();
    for repeats in REPEATS {
        let [slower, same] = [&slower, &same].map(|after| place.changes(&before, after, repeats));
        rows.push(cells(&repeats.to_string(), &slower?, &same?));
    }
    rows.extend(place.first_that_found_it([&before, &slower, &same])?);
    let columns = vec![
        "repeats of each",
        "3 % more work: change of throughput",
        "its 95 % interval",
        "found",
        "`throughput>-1%` breached",
        "the same again: change of throughput",
        "its 95 % interval",
        "a change is claimed",
    ];
    Ok(Grid { columns, rows })
}

/// Where builds are served, one after the other, and how they are swept.
struct Place<'a> {
    workspace: &'a Workspace,
    address: SocketAddr,
    step_s: u32,
    /// Holds the process id of the server that runs.
    pid_file: PathBuf,
}

impl<'a> Place<'a> {
    fn new(workspace: &'a Workspace, effort: Effort) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let pid_file = workspace.path("build.pid");
        Ok(Place { workspace, address, step_s: effort.seconds.max(STEP_S_MIN), pid_file })
    }

    /// Sweeps builds in turns, each of which computes for so many steps before a response. Returns the run files of each.
    fn in_turns<const N: usize>(&self, builds: [(&str, f64); N]) -> Result<[Vec<PathBuf>; N]> {
        let mut files = [const { Vec::new() }; N];
        for turn in 1..=REPEATS_MAX {
            eprintln!("bench: turn {turn} of {REPEATS_MAX}");
            for place in in_order(turn, N) {
                let (name, steps) = builds[place];
                files[place].push(self.sweep(&format!("{name}-{turn}"), steps)?);
            }
        }
        Ok(files)
    }

    /// Starts a build that computes for so many steps before each response, and sweeps it. Returns the run file.
    fn sweep(&self, name: &str, steps: f64) -> Result<PathBuf> {
        let script = self.workspace.path("restart.sh");
        fs::write(&script, self.restart(steps as u64))?;
        let (at, output) = (self.address, self.workspace.path(name));
        let flags =
            format!("sweep http://{at}/ -c {USERS} -d {}s -t 1 --repeats 1 --no-progress", self.step_s);
        let mut words = self.workspace.nstar(&flags);
        words.extend(["--restart".into(), format!("sh '{}'", script.display())]);
        words.extend(["-o".into(), output.with_extension("json").display().to_string()]);
        // 4: a run that is doubted is compared all the same, as it is by a user.
        cpu::run_on(CLIENTS, &words, &[0, 4])?;
        Ok(self.workspace.path(&format!("{name}-1.json")))
    }

    /// A script that ends the server and starts another.
    fn restart(&self, steps: u64) -> String {
        let (pid, program) = (self.pid_file.display(), self.workspace.ours("bare-responder"));
        let address = self.address;
        // Nothing is left open, or whoever reads what the sweep says would wait for the server to end.
        format!(
            "if old=$(cat '{pid}' 2>/dev/null); then
               kill \"$old\" 2>/dev/null
               for try in $(seq 100); do kill -0 \"$old\" 2>/dev/null || break; sleep 0.1; done
               ! kill -0 \"$old\" 2>/dev/null || exit 1
             fi
             taskset -c {SERVERS} '{program}' {address} {KB} {steps} </dev/null >/dev/null 2>&1 &
             echo $! >'{pid}'"
        )
    }

    /// Compares the first so many runs of each side, the next, and so on.
    fn changes(&self, before: &[PathBuf], after: &[PathBuf], repeats: usize) -> Result<Vec<Change>> {
        let pairs = before.chunks(repeats).zip(after.chunks(repeats));
        pairs.map(|(before, after)| self.change(before, after)).collect()
    }

    /// The line of the fewest repeats, from the first on, that found the slower build; of two at least, since single runs do not tell
    /// how starts scatter. `None` where no number of them did.
    fn first_that_found_it(&self, [before, slower, same]: [&[PathBuf]; 3]) -> Result<Option<Vec<String>>> {
        for repeats in 2..=REPEATS_MAX {
            let change = self.change(&before[..repeats], &slower[..repeats])?;
            if change.is_fall() {
                eprintln!("bench: {repeats} repeats were looked for: only numbers fixed beforehand count");
                let same = self.change(&before[..repeats], &same[..repeats])?;
                let name = format!("the first {repeats}, which were looked for and do not count");
                return Ok(Some(cells(&name, &[change], &[same])));
            }
        }
        eprintln!("bench: up to {REPEATS_MAX} repeats of each, no number of them found the slower build");
        Ok(None)
    }

    fn change(&self, before: &[PathBuf], after: &[PathBuf]) -> Result<Change> {
        let mut words = vec![self.workspace.ours("nstar"), "compare".into()];
        words.extend(before.iter().map(|file| file.display().to_string()));
        words.push("--after".into());
        words.extend(after.iter().map(|file| file.display().to_string()));
        words.extend(["--gate", GATE, "-j"].map(String::from));
        Change::read(&cpu::run_on(CLIENTS, &words, &[0, 3, 4])?.stdout)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let pid = fs::read_to_string(&self.pid_file).ok().and_then(|text| text.trim().parse::<i32>().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // Fails only if the process has ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// What a comparison said.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Change {
    /// Throughput after over before.
    ratio: f64,
    /// 95 % interval of it.
    interval: [f64; 2],
    /// Whether the gate was breached.
    breached: bool,
    /// Whether any figure was claimed to have changed.
    claimed: bool,
}

impl Change {
    /// Reads the JSON of `nstar compare`.
    ///
    /// # Errors
    /// It has no throughput, or none with an interval.
    fn read(text: &str) -> Result<Self> {
        let found: Value = serde_json::from_str(text)?;
        let figures = found["cases"][0]["figures"].as_array().ok_or("the comparison has no figures")?;
        let throughput = figures.iter().find(|one| one["figure"]["name"] == "throughput");
        let throughput = throughput.ok_or("the comparison has no throughput")?;
        let number = |value: &Value| value.as_f64().ok_or("the change of throughput has no interval");
        let interval = &throughput["ci"];
        Ok(Change {
            ratio: number(&throughput["ratio"])?,
            interval: [number(&interval[0])?, number(&interval[1])?],
            breached: found["gates"][0]["verdict"] == "breached",
            claimed: figures.iter().any(|one| one["changed"] == true),
        })
    }

    /// Whether throughput surely fell.
    fn is_fall(&self) -> bool {
        self.interval[1] < 1.0
    }
}

/// The order in which so many builds have a turn: every second time the other way round.
fn in_order(turn: usize, builds: usize) -> Vec<usize> {
    if turn.is_multiple_of(2) { (0..builds).rev().collect() } else { (0..builds).collect() }
}

fn cells(repeats: &str, slower: &[Change], same: &[Change]) -> Vec<String> {
    let [change, interval] = change_and_interval(slower);
    let [change_of_same, interval_of_same] = change_and_interval(same);
    vec![
        repeats.to_owned(),
        change,
        interval,
        how_many(slower, Change::is_fall),
        how_many(slower, |change| change.breached),
        change_of_same,
        interval_of_same,
        how_many(same, |change| change.claimed),
    ]
}

/// The median change of throughput, and the medians of the ends of its interval.
fn change_and_interval(all: &[Change]) -> [String; 2] {
    let percent =
        |read: &dyn Fn(&Change) -> f64| 100.0 * (median(&all.iter().map(read).collect::<Vec<f64>>()) - 1.0);
    let [low, high] = [0, 1].map(|end| percent(&|change: &Change| change.interval[end]));
    [format!("{:+.1} %", percent(&|change: &Change| change.ratio)), format!("{low:+.1} % to {high:+.1} %")]
}

fn how_many(all: &[Change], is_so: impl Fn(&Change) -> bool) -> String {
    format!("{} of {}", all.iter().filter(|change| is_so(change)).count(), all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_follows_the_one_before_the_other_way_round() {
        assert_eq!((in_order(1, 3), in_order(2, 3)), (vec![0, 1, 2], vec![2, 1, 0]));
    }

    const COMPARISON: &str = r#"{
        "cases": [{"figures": [
            {"figure": {"name": "throughput"}, "ratio": 0.97, "ci": [0.96, 0.98], "changed": true},
            {"figure": {"name": "users"}, "ratio": 1.0, "ci": null, "changed": false}
        ]}],
        "gates": [{"verdict": "breached"}]
    }"#;

    #[test]
    fn a_comparison_is_read_from_its_json() {
        let read = Change::read(COMPARISON).unwrap();
        assert_eq!(read, Change { ratio: 0.97, interval: [0.96, 0.98], breached: true, claimed: true });
        assert!(read.is_fall());
        let same = COMPARISON.replace("true", "false").replace("0.98", "1.01");
        let same = Change::read(&same.replace("breached", "not-decided")).unwrap();
        assert!(!same.is_fall() && !same.breached && !same.claimed);
        assert!(Change::read(&COMPARISON.replace("[0.96, 0.98]", "null")).is_err());
    }

    #[test]
    fn a_line_tells_the_middle_of_the_changes_and_how_many_were_found() {
        let change = |ratio: f64| Change {
            ratio,
            interval: [ratio - 0.01, ratio + 0.01],
            breached: ratio < 0.98,
            claimed: (ratio - 1.0).abs() > 0.01,
        };
        let slower = [0.96, 0.97, 0.995].map(change);
        let expected =
            ["4", "-3.0 %", "-4.0 % to -2.0 %", "2 of 3", "2 of 3", "+0.0 %", "-1.0 % to +1.0 %", "0 of 1"];
        assert_eq!(cells("4", &slower, &[change(1.0)]), expected);
    }

    #[test]
    fn fewer_repeats_are_parts_of_the_most() {
        assert!(REPEATS.iter().all(|repeats| REPEATS_MAX.is_multiple_of(*repeats)));
    }
}
