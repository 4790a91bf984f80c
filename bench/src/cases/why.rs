//! Whether the sentence of `nstar load --profile` names the right function: servers whose hot code is known, each sampled by
//! perf(1) while nstar drives it.

mod servers;

use std::fs;

use serde_json::Value;

use self::servers::{ALL, Hot};
use crate::tools::{
    cpu,
    effort::{Effort, Result},
    perf::{self, Place},
    table::{Grid, word},
    workspace::{CLIENTS, ServerProcess, Workspace},
};

/// Users of a server.
const USERS: u32 = 4;
/// How long a server is driven, and then as long again sampled, seconds, at least and at most. nstar samples for 10 s at most; in
/// less than 5 s there are too few samples to tell two functions apart that take about as much.
const SECONDS: [u32; 2] = [5, 10];
/// How long a server runs under load before, seconds: code that is compiled as it runs is compiled by then.
const WARM_UP_S: u32 = 2;
/// 4: the run was in doubt, as a short one is.
const ACCEPTED: [i32; 2] = [0, 4];

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    if let Some(why) = perf::cannot_sample() {
        return Err(why.into());
    }
    let seconds = effort.seconds.clamp(SECONDS[0], SECONDS[1]);
    let mut rows = Vec::new();
    for hot in &ALL {
        match look(workspace, hot, seconds) {
            Ok(found) => rows.push(found.cells(workspace, hot)),
            Err(error) => {
                eprintln!("bench: left out: {}: {error}", hot.name);
                rows.push(left_out(hot));
            }
        }
    }
    let columns = vec![
        "server",
        "what it spends its time in",
        "nstar: function",
        "called from",
        "share (95 % interval)",
        "perf: function",
        "share",
        "the same function",
    ];
    Ok(Grid { columns, rows })
}

/// What both say of one server.
#[derive(Debug)]
struct Found {
    ours: Sentence,
    theirs: Place,
    their_share: f64,
}

/// Has a server sampled by both.
fn look(workspace: &Workspace, hot: &Hot, seconds: u32) -> Result<Found> {
    let server = (hot.start)(workspace)?;
    let _names = NamesOf(server.pid());
    let output = workspace.path("why.json");
    cpu::run_on(CLIENTS, &load_words(workspace, &server, hot, WARM_UP_S), &ACCEPTED)?;
    let mut words = load_words(workspace, &server, hot, seconds);
    words.extend(["--profile".into(), "-o".into(), output.display().to_string()]);
    let (theirs, their_share) = perf::hottest(workspace, &server, &words, &ACCEPTED)?;
    let ours = Sentence::read(&fs::read_to_string(&output)?)?;
    Ok(Found { ours, theirs, their_share })
}

fn load_words(workspace: &Workspace, server: &ServerProcess, hot: &Hot, seconds: u32) -> Vec<String> {
    let url = format!("http://{}{}", server.address, hot.path);
    let mut words = workspace.nstar(&format!("load {url} -c {USERS} -d {seconds}s -t 1 --no-progress"));
    words.extend(["-H", "Accept-Encoding: gzip"].map(String::from));
    words
}

/// The names that a process wrote for the code that it made as it ran, and that nobody else removes.
struct NamesOf(u32);

impl Drop for NamesOf {
    fn drop(&mut self) {
        // Most servers write none.
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", self.0));
    }
}

/// What the sentence of a profile says.
#[derive(Debug, PartialEq)]
struct Sentence {
    function: Place,
    caller: Option<Place>,
    /// Of the samples, 0 to 1.
    share: f64,
    /// 95 % interval of it.
    interval: [f64; 2],
}

impl Sentence {
    /// Reads the run file of a load on a server that is a tier by itself.
    ///
    /// # Errors
    /// It names no function.
    fn read(run: &str) -> Result<Self> {
        let run: Value = serde_json::from_str(run)?;
        let hottest = &run["profile"]["tiers"][0]["hottest"];
        if hottest.is_null() {
            return Err(format!("nstar names no function: {}", run["profile"]["troubles"]).into());
        }
        let number = |value: &Value| value.as_f64().ok_or("the function has no share with an interval");
        Ok(Sentence {
            function: place(&hottest["function"]),
            caller: Some(&hottest["caller"]).filter(|caller| caller.is_object()).map(place),
            share: number(&hottest["share"])?,
            interval: [number(&hottest["share_ci"][0])?, number(&hottest["share_ci"][1])?],
        })
    }
}

fn place(function: &Value) -> Place {
    let text = |name: &str| function[name].as_str().unwrap_or_default().to_owned();
    Place { name: text("name"), module: text("module"), page: function["offset"].as_u64() }
}

impl Found {
    fn cells(&self, workspace: &Workspace, hot: &Hot) -> Vec<String> {
        // Names of functions of scripts hold the folder of the script.
        let folder = format!("{}/", workspace.path("").display().to_string().trim_end_matches('/'));
        let shown = |place: &Place| place.to_string().replace(&folder, "");
        let Sentence { function, caller, share, interval: [low, high] } = &self.ours;
        vec![
            hot.name.to_owned(),
            hot.code.to_owned(),
            shown(function),
            caller.as_ref().map_or_else(|| "-".to_owned(), shown),
            format!("{} ({} to {})", percent(*share), percent(*low), percent(*high)),
            shown(&self.theirs),
            percent(self.their_share),
            agreement(function, &self.theirs).to_owned(),
        ]
    }
}

fn left_out(hot: &Hot) -> Vec<String> {
    let said = [hot.name, hot.code, "left out", "", "", "", "", ""];
    said.map(String::from).into()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Whether both name the same function. One that only perf has no name for is neither right nor wrong.
fn agreement(ours: &Place, theirs: &Place) -> &'static str {
    match theirs.name.is_empty() && !ours.name.is_empty() {
        true => "perf has no name",
        false => word(ours.is_same(theirs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"profile": {"tiers": [{"hottest": {
        "function": {"name": "deflate_slow", "module": "libz.so.1"},
        "caller": {"name": "", "module": "nginx", "offset": 8192},
        "share": 0.41, "share_ci": [0.38, 0.45]
    }}], "troubles": [{"type": "idle"}]}}"#;

    fn function(name: &str, page: Option<u64>) -> Place {
        let module = if page.is_some() { "nginx" } else { "libz.so.1" };
        Place { name: name.into(), module: module.into(), page }
    }

    #[test]
    fn the_sentence_is_read_from_the_run_file() {
        let expected = Sentence {
            function: function("deflate_slow", None),
            caller: Some(function("", Some(8_192))),
            share: 0.41,
            interval: [0.38, 0.45],
        };
        assert_eq!(Sentence::read(RUN).unwrap(), expected);
        let error = Sentence::read(&RUN.replace("hottest", "coldest")).unwrap_err();
        assert!(error.to_string().contains("idle"), "{error}");
    }

    #[test]
    fn a_function_is_right_if_perf_names_it_too() {
        let (ours, unnamed) = (function("deflate_slow", None), function("", Some(4_096)));
        assert_eq!(agreement(&ours, &ours), "yes");
        assert_eq!(agreement(&ours, &function("longest_match", None)), "no");
        assert_eq!(agreement(&ours, &unnamed), "perf has no name");
        assert_eq!(agreement(&unnamed, &ours), "no");
        assert_eq!(agreement(&unnamed, &unnamed), "yes");
    }
}
