//! The load generators that are compared: the best flags of each, and how to read what it completed.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::compiler::{compiled, program};
use crate::tools::{
    cpu,
    effort::{Effort, Result},
    workspace::{CLIENTS, Workspace, installed},
};

/// The load that a generator is to make.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub url: String,
    pub users: u32,
    /// Whether each request has a connection of its own.
    pub reconnect: bool,
    /// How long to run, for programs that stop by time.
    pub seconds: u32,
    /// How many requests to make, for programs that stop by number.
    pub total: u64,
    /// Length of a response's body.
    pub body_bytes: usize,
}

type Words = fn(&Workspace, &Load) -> Vec<String>;
type Completed = fn(&str, &Load) -> Option<f64>;

/// A load generator.
pub(crate) struct Generator {
    pub name: &'static str,
    /// The program that must be installed; empty for our own.
    program: &'static str,
    words: Words,
    /// Reads the number of bodies received from what it printed; `None` if anything failed.
    completed: Completed,
    /// Reads the response times, where it prints them.
    response_times: Option<fn(&str) -> Option<ResponseTimes>>,
    /// Exit statuses that count as success.
    pub accepted: &'static [i32],
}

/// What a run of a generator came to.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Bodies received.
    pub bodies: f64,
    /// Its CPU time, seconds.
    pub cpu_s: f64,
    pub printed: String,
}

/// Response times of a run, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResponseTimes {
    pub mean_us: f64,
    pub median_us: f64,
}

pub(crate) const NSTAR: Generator = Generator {
    name: "nstar load",
    response_times: Some(nstar_response_times),
    // 4: the generator was the bottleneck or the run was short, and here it is meant to be.
    accepted: &[0, 4],
    ..ours(nstar, nstar_completed)
};
pub(crate) const BARE: Generator = Generator { name: "bare epoll client", ..ours(bare, bare_completed) };
const BARE_URING: Generator = Generator { name: "bare io_uring client", ..ours(bare_uring, bare_completed) };
pub(crate) const WRK: Generator =
    Generator { response_times: Some(wrk_response_times), ..installable("wrk", wrk, wrk_completed) };
pub(crate) const AB: Generator = installable("ab", ab, ab_completed);
pub(crate) const OHA: Generator = installable("oha", oha, oha_completed);
pub(crate) const HEY: Generator = installable("hey", hey, hey_completed);
pub(crate) const K6: Generator = installable("k6", k6, k6_completed);

const fn installable(name: &'static str, words: Words, completed: Completed) -> Generator {
    Generator { name, program: name, words, completed, response_times: None, accepted: &[0] }
}

const fn ours(words: Words, completed: Completed) -> Generator {
    installable("", words, completed)
}

/// Makes the barest client that uses io_uring.
///
/// # Errors
/// There is no C compiler, or the system denies io_uring.
pub(crate) fn bare_uring_client(workspace: &Workspace) -> Result<Generator> {
    let tried = Command::new(compiled(workspace, BARE_URING_PROGRAM)?).stdin(Stdio::null()).output()?;
    match tried.status.success() {
        true => Ok(BARE_URING),
        false => Err(String::from_utf8_lossy(&tried.stderr).trim().into()),
    }
}

const BARE_URING_PROGRAM: &str = "bare-uring-client";

impl Generator {
    pub(crate) fn is_installed(&self) -> bool {
        self.program.is_empty() || installed(self.program)
    }

    /// Whether it prints response times.
    pub(crate) const fn tells_response_times(&self) -> bool {
        self.response_times.is_some()
    }

    /// Runs the generator once.
    pub(crate) fn run(&self, workspace: &Workspace, load: &Load) -> Result<Finished> {
        let finished = cpu::run_on(CLIENTS, &(self.words)(workspace, load), self.accepted)?;
        let bodies = (self.completed)(&finished.stdout, load)
            .filter(|bodies| *bodies > 0.0)
            .ok_or_else(|| format!("{}: no count of requests in: {}", self.name, finished.stdout))?;
        Ok(Finished { bodies, cpu_s: finished.cpu_s, printed: finished.stdout })
    }

    /// Runs the generator once. Returns the bodies received per second of its CPU time.
    pub(crate) fn bodies_per_cpu_s(&self, workspace: &Workspace, load: &Load) -> Result<f64> {
        Ok(self.run(workspace, load)?.bodies_per_cpu_s())
    }

    /// Returns the response times of a run.
    pub(crate) fn response_times(&self, run: &Finished) -> Result<ResponseTimes> {
        let read = self.response_times.and_then(|read| read(&run.printed));
        read.ok_or_else(|| format!("{}: no response times in: {}", self.name, run.printed).into())
    }
}

impl Finished {
    /// Bodies received per second of CPU time.
    pub(crate) fn bodies_per_cpu_s(&self) -> f64 {
        self.bodies / self.cpu_s
    }
}

impl Load {
    /// A load that lasts as long as the effort says. A first run of nstar finds how many requests that is: a total is
    /// exact, while a program that stops by time drops what is under way.
    pub(crate) fn new(workspace: &Workspace, url: String, users: u32, effort: Effort) -> Result<Self> {
        let load = Load { url, users, reconnect: false, seconds: effort.seconds, total: 0, body_bytes: 0 };
        load.calibrated(workspace)
    }

    /// The same load with one connection per request.
    pub(crate) fn reconnecting(self, workspace: &Workspace) -> Result<Self> {
        Load { reconnect: true, ..self }.calibrated(workspace)
    }

    fn calibrated(mut self, workspace: &Workspace) -> Result<Self> {
        let flags = format!("-d {}s", self.seconds.min(2));
        let finished = cpu::run_on(CLIENTS, &nstar_words(workspace, &self, &flags), NSTAR.accepted)?;
        let run: serde_json::Value = serde_json::from_str(&finished.stdout)?;
        let per_s = run["steps"][0]["throughput_per_s"].as_f64().ok_or("nstar measured nothing")?;
        let bytes_per_s = run["steps"][0]["received_bytes_per_s"].as_f64().unwrap_or_default();
        self.total = (per_s * f64::from(self.seconds)).max(f64::from(self.users)) as u64;
        self.body_bytes = (bytes_per_s / per_s).round() as usize;
        Ok(self)
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn nstar(workspace: &Workspace, load: &Load) -> Vec<String> {
    nstar_words(workspace, load, &format!("--total {}", load.total))
}

/// The command line of `nstar load` with the stop condition `stop`.
pub(crate) fn nstar_words(workspace: &Workspace, load: &Load, stop: &str) -> Vec<String> {
    let connections = if load.reconnect { "per-request" } else { "kept" };
    let Load { url, users, .. } = load;
    let flags = format!("load {url} -k -c {users} {stop} -t 1 --connections {connections} -j --no-progress");
    workspace.nstar(&flags)
}

/// A run with a total ends when all requests are done; failed ones would be warned of.
fn nstar_completed(stdout: &str, load: &Load) -> Option<f64> {
    let run: serde_json::Value = serde_json::from_str(stdout).ok()?;
    let failed = run["warnings"].as_array()?.iter().any(|warning| warning["kind"] == "errors");
    (!failed).then_some(load.total as f64)
}

/// Mean and median in the run file.
fn nstar_response_times(stdout: &str) -> Option<ResponseTimes> {
    let run: Value = serde_json::from_str(stdout).ok()?;
    let times = &run["steps"][0]["response_time_us"];
    Some(ResponseTimes { mean_us: times["mean"].as_f64()?, median_us: times["p50"].as_f64()? })
}

fn bare(workspace: &Workspace, load: &Load) -> Vec<String> {
    bare_words(workspace.ours("bare-client"), load)
}

fn bare_uring(workspace: &Workspace, load: &Load) -> Vec<String> {
    bare_words(program(workspace, BARE_URING_PROGRAM), load)
}

fn bare_words(program: String, load: &Load) -> Vec<String> {
    let rest = load.url.trim_start_matches("http://");
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let flags = format!("{address} /{path} {} {}", load.users, load.seconds);
    [vec![program], words(&flags)].concat()
}

fn bare_completed(stdout: &str, load: &Load) -> Option<f64> {
    let (requests, bytes) = stdout.trim().split_once(' ')?;
    if is_large(load) { parts(bytes.parse().ok()?, load) } else { requests.parse().ok() }
}

fn wrk(_: &Workspace, load: &Load) -> Vec<String> {
    let mut flags = words(&format!("wrk -t1 -c{} -d{}s --latency {}", load.users, load.seconds, load.url));
    if load.reconnect {
        flags.extend(["-H".into(), "Connection: close".into()]);
    }
    flags
}

/// `  310238 requests in 1.10s, 3.05GB read`, and of errors a line of their own.
fn wrk_completed(stdout: &str, load: &Load) -> Option<f64> {
    if stdout.contains("Socket errors") || stdout.contains("Non-2xx") {
        return None;
    }
    let (requests, rest) = stdout.lines().find_map(|line| line.trim().split_once(" requests in "))?;
    if !is_large(load) {
        return requests.parse().ok();
    }
    let read = rest.split_once(", ")?.1.strip_suffix(" read")?;
    let units = [("TB", 1_u64 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((read.strip_suffix(name)?, unit)))?;
    parts(number.parse::<f64>().ok()? * *unit as f64, load)
}

/// `    Latency   635.91us  111.33us   5.34ms   87.48%`, the mean first, and `     50%  602.00us`.
fn wrk_response_times(stdout: &str) -> Option<ResponseTimes> {
    let time_us = |name: &str| {
        stdout.lines().find_map(|line| us(line.trim().strip_prefix(name)?.split_whitespace().next()?))
    };
    Some(ResponseTimes { mean_us: time_us("Latency")?, median_us: time_us("50%")? })
}

/// A time as wrk writes it, in microseconds.
fn us(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6)];
    units.iter().find_map(|(unit, us)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * us))
}

/// Whether bodies are so large that those under way at the end must count in part.
fn is_large(load: &Load) -> bool {
    load.body_bytes >= 1_000_000
}

fn parts(bytes: f64, load: &Load) -> Option<f64> {
    Some(bytes / load.body_bytes as f64)
}

fn ab(_: &Workspace, load: &Load) -> Vec<String> {
    let keep = if load.reconnect { "" } else { "-k" };
    // A time limit of ab's comes with a limit of 50 000 requests.
    words(&format!("ab -q {keep} -n {} -c {} {}", load.total, load.users, load.url))
}

fn ab_completed(stdout: &str, _: &Load) -> Option<f64> {
    let number = |name: &str| stdout.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    (number("Failed requests:") == Some(0.0)).then(|| number("Complete requests:"))?
}

fn oha(_: &Workspace, load: &Load) -> Vec<String> {
    let keep = if load.reconnect { "--disable-keepalive" } else { "" };
    let stop = if is_large(load) { format!("-n {}", load.total) } else { format!("-z {}s", load.seconds) };
    let flags = "oha --no-tui --insecure --output-format json";
    words(&format!("{flags} {keep} {stop} -c {} {}", load.users, load.url))
}

fn oha_completed(stdout: &str, _: &Load) -> Option<f64> {
    let result: serde_json::Value = serde_json::from_str(stdout).ok()?;
    result["statusCodeDistribution"]["200"].as_f64()
}

fn hey(_: &Workspace, load: &Load) -> Vec<String> {
    let keep = if load.reconnect { "-disable-keepalive" } else { "" };
    // hey's default is all processors of the host, and it has one.
    words(&format!("hey -cpus 1 {keep} -z {}s -c {} {}", load.seconds, load.users, load.url))
}

/// `  [200]\t31023 responses`
fn hey_completed(stdout: &str, _: &Load) -> Option<f64> {
    let counts = stdout.lines().find_map(|line| line.trim().strip_prefix("[200]"))?;
    counts.split_whitespace().next()?.parse().ok()
}

fn k6(workspace: &Workspace, load: &Load) -> Vec<String> {
    let script = workspace.path("k6.js");
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ vus: {}, duration: '{}s', discardResponseBodies: true, noConnectionReuse: {} }};
         export default function () {{ http.get('{}'); }}
         export function handleSummary(data) {{
           const failed = data.metrics.http_req_failed.values.passes;
           return {{ stdout: `${{data.metrics.http_reqs.values.count}} ${{failed}}\\n` }};
         }}",
        load.users, load.seconds, load.reconnect, load.url
    );
    // If this fails, k6 reports the missing script.
    let _ = fs::write(&script, text);
    words(&format!("k6 run --quiet --no-usage-report --log-output none {}", script.display()))
}

fn k6_completed(stdout: &str, _: &Load) -> Option<f64> {
    let (requests, failed) = stdout.trim().split_once(' ')?;
    (failed == "0").then(|| requests.parse().ok())?
}

/// Runs `nstar load` with these flags on these processors and returns its one step. A short turn need not be steady.
pub(crate) fn load_step(workspace: &Workspace, processors: &str, flags: &str) -> Result<Value> {
    let words = workspace.nstar(&format!("load --json --no-progress {flags}"));
    let finished = cpu::run_on(processors, &words, &[0, 4])?;
    let mut run: Value = serde_json::from_str(&finished.stdout)?;
    Ok(run["steps"][0].take())
}

/// Returns a number of a step by its name in the run file.
pub(crate) fn number(step: &Value, name: &str) -> Result<f64> {
    step[name].as_f64().ok_or_else(|| format!("the run file has no {name}").into())
}

/// Returns the requests completed per second.
///
/// # Errors
/// Requests failed. One may: the probe before the load can take what the first user then asks for.
pub(crate) fn per_s(step: &Value) -> Result<f64> {
    let count = |errors: &serde_json::Map<String, Value>| errors.values().filter_map(Value::as_u64).sum();
    let failed: u64 = step["errors"].as_object().map(count).ok_or("the run file has no errors")?;
    if failed > 1 {
        return Err(format!("requests failed: {}", step["errors"]).into());
    }
    number(step, "throughput_per_s")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(body_bytes: usize) -> Load {
        let url = "http://127.0.0.1:1/".into();
        Load { url, users: 1, reconnect: false, seconds: 1, total: 10, body_bytes }
    }

    #[test]
    fn wrk_counts_requests_or_where_bodies_are_large_their_bytes() {
        let said = "Running 1s test\n  40 requests in 1.10s, 4.00GB read\nRequests/sec: 36.4\n";
        assert_eq!(wrk_completed(said, &load(1_000)), Some(40.0));
        assert_eq!(wrk_completed(said, &load(1 << 30)), Some(4.0));
        let errors = "  40 requests in 1.10s, 4.00GB read\n  Socket errors: connect 0, read 1\n";
        assert_eq!(wrk_completed(errors, &load(1_000)), None);
    }

    #[test]
    fn counts_with_failures_among_them_are_none() {
        let load = load(1_000);
        let ab = |failed| format!("Complete requests:      123\nFailed requests:        {failed}\n");
        assert_eq!(ab_completed(&ab(0), &load), Some(123.0));
        assert_eq!(ab_completed(&ab(1), &load), None);
        assert_eq!(k6_completed("123 0\n", &load), Some(123.0));
        assert_eq!(k6_completed("123 4\n", &load), None);
        assert_eq!(nstar_completed(r#"{"warnings": []}"#, &load), Some(10.0));
        assert_eq!(nstar_completed(r#"{"warnings": [{"kind": "errors"}]}"#, &load), None);
    }

    #[test]
    fn wrk_tells_its_mean_before_the_median() {
        let said = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us  111.33us   5.34ms   87.48%
    Req/Sec    50.11k     1.20k   52.00k    80.00%
  Latency Distribution
     50%    1.20ms
     75%  650.00us
  50123 requests in 1.00s, 53.11MB read
";
        let expected = ResponseTimes { mean_us: 635.91, median_us: 1_200.0 };
        assert_eq!(wrk_response_times(said), Some(expected));
        assert_eq!(wrk_completed(said, &load(1_000)), Some(50_123.0));
        assert_eq!(wrk_response_times("  Latency Distribution\n     50%    1.20ms\n"), None);
        let all = ["1.50us", "2.00ms", "3.00s", "1.00m", "4"].map(us);
        assert_eq!(all, [Some(1.5), Some(2e3), Some(3e6), Some(60e6), None]);
    }

    #[test]
    fn nstar_tells_its_response_times_in_the_run_file() {
        let run = r#"{"steps": [{"response_time_us": {"mean": 640.5, "p50": 600.0}}]}"#;
        let expected = ResponseTimes { mean_us: 640.5, median_us: 600.0 };
        assert_eq!(nstar_response_times(run), Some(expected));
        assert_eq!(nstar_response_times(r#"{"steps": []}"#), None);
    }

    #[test]
    fn what_the_others_print() {
        let load = load(1_000);
        assert_eq!(bare_completed("12 345\n", &load), Some(12.0));
        assert_eq!(hey_completed("Status code distribution:\n  [200]\t123 responses\n", &load), Some(123.0));
        assert_eq!(oha_completed(r#"{"statusCodeDistribution": {"200": 123}}"#, &load), Some(123.0));
    }
}
