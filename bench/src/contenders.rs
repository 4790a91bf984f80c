//! Load generators under comparison, each at its best flags, and how much each says it completed.

use std::fs;

use crate::{
    Effort, Outcome, cpu,
    place::{CLIENTS, Place, installed},
};

/// What a generator is to do.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub url: String,
    pub users: u32,
    /// One connection per request.
    pub reconnect: bool,
    /// When to stop, where a program goes by time.
    pub seconds: u32,
    /// When to stop, where a program goes by requests.
    pub total: u64,
    /// Length of a response's body.
    pub body_bytes: usize,
}

/// A load generator.
pub(crate) struct Contender {
    pub name: &'static str,
    /// The program that must be there; ours always are.
    program: &'static str,
    words: fn(&Place, &Work) -> Vec<String>,
    /// Bodies received, from what it printed.
    completed: fn(&str, &Work) -> Option<f64>,
    /// Exit statuses that are no failure.
    accepted: &'static [i32],
}

pub(crate) const NSTAR: Contender = Contender {
    name: "nstar load",
    program: "",
    words: nstar,
    completed: nstar_completed,
    // 4: the generator was the bottleneck, or the run was short. Both are meant here.
    accepted: &[0, 4],
};
pub(crate) const BARE: Contender = Contender {
    name: "bare epoll client",
    program: "",
    words: bare,
    completed: bare_completed,
    accepted: &[0],
};
pub(crate) const WRK: Contender =
    Contender { name: "wrk", program: "wrk", words: wrk, completed: wrk_completed, accepted: &[0] };
pub(crate) const AB: Contender =
    Contender { name: "ab", program: "ab", words: ab, completed: ab_completed, accepted: &[0] };
pub(crate) const OHA: Contender =
    Contender { name: "oha", program: "oha", words: oha, completed: oha_completed, accepted: &[0] };
pub(crate) const HEY: Contender =
    Contender { name: "hey", program: "hey", words: hey, completed: hey_completed, accepted: &[0] };
pub(crate) const K6: Contender =
    Contender { name: "k6", program: "k6", words: k6, completed: k6_completed, accepted: &[0] };

impl Contender {
    pub(crate) fn is_installed(&self) -> bool {
        self.program.is_empty() || installed(self.program)
    }

    /// Bodies received per CPU-second of the generator, once.
    pub(crate) fn bodies_per_cpu_s(&self, place: &Place, work: &Work) -> Outcome<f64> {
        let finished = cpu::run_on(CLIENTS, &(self.words)(place, work), self.accepted)?;
        let completed = (self.completed)(&finished.stdout, work)
            .filter(|bodies| *bodies > 0.0)
            .ok_or_else(|| format!("{}: no count of requests in: {}", self.name, finished.stdout))?;
        Ok(completed / finished.cpu_s)
    }
}

impl Work {
    /// Work that lasts as long as the effort says: how many requests that is, nstar finds out.
    ///
    /// Programs that go by time lose what is under way when it is over, and nstar reports what it measured after its
    /// warm-up; a total is exact.
    pub(crate) fn new(place: &Place, url: String, users: u32, effort: Effort) -> Outcome<Self> {
        let work = Work { url, users, reconnect: false, seconds: effort.seconds, total: 0, body_bytes: 0 };
        work.calibrated(place)
    }

    /// The same with one connection per request.
    pub(crate) fn reconnecting(self, place: &Place) -> Outcome<Self> {
        Work { reconnect: true, ..self }.calibrated(place)
    }

    fn calibrated(mut self, place: &Place) -> Outcome<Self> {
        let flags = format!("-d {}s", self.seconds.min(2));
        let finished = cpu::run_on(CLIENTS, &nstar_words(place, &self, &flags), NSTAR.accepted)?;
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

fn nstar(place: &Place, work: &Work) -> Vec<String> {
    nstar_words(place, work, &format!("--total {}", work.total))
}

/// The words of `nstar load` that stops as `stop` says.
pub(crate) fn nstar_words(place: &Place, work: &Work, stop: &str) -> Vec<String> {
    let connections = if work.reconnect { "per-request" } else { "kept" };
    let Work { url, users, .. } = work;
    let flags = format!("load {url} -k -c {users} {stop} -t 1 --connections {connections} -j --no-progress");
    [vec![place.ours("nstar")], words(&flags)].concat()
}

/// A run that was told how many to make ends when it has made them; failed ones would be named.
fn nstar_completed(stdout: &str, work: &Work) -> Option<f64> {
    let run: serde_json::Value = serde_json::from_str(stdout).ok()?;
    let failed = run["warnings"].as_array()?.iter().any(|warning| warning["kind"] == "errors");
    (!failed).then_some(work.total as f64)
}

fn bare(place: &Place, work: &Work) -> Vec<String> {
    let rest = work.url.trim_start_matches("http://");
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let flags = format!("{address} /{path} {} {}", work.users, work.seconds);
    [vec![place.ours("bare-client")], words(&flags)].concat()
}

fn bare_completed(stdout: &str, work: &Work) -> Option<f64> {
    let (requests, bytes) = stdout.trim().split_once(' ')?;
    if is_large(work) { parts(bytes.parse().ok()?, work) } else { requests.parse().ok() }
}

fn wrk(_: &Place, work: &Work) -> Vec<String> {
    let mut flags = words(&format!("wrk -t1 -c{} -d{}s {}", work.users, work.seconds, work.url));
    if work.reconnect {
        flags.extend(["-H".into(), "Connection: close".into()]);
    }
    flags
}

/// `  310238 requests in 1.10s, 3.05GB read`, and of errors a line of their own.
fn wrk_completed(stdout: &str, work: &Work) -> Option<f64> {
    if stdout.contains("Socket errors") || stdout.contains("Non-2xx") {
        return None;
    }
    let (requests, rest) = stdout.lines().find_map(|line| line.trim().split_once(" requests in "))?;
    if !is_large(work) {
        return requests.parse().ok();
    }
    let read = rest.split_once(", ")?.1.strip_suffix(" read")?;
    let units = [("TB", 1_u64 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((read.strip_suffix(name)?, unit)))?;
    parts(number.parse::<f64>().ok()? * *unit as f64, work)
}

/// Bodies so large that those under way when the time is over count in part.
fn is_large(work: &Work) -> bool {
    work.body_bytes >= 1_000_000
}

fn parts(bytes: f64, work: &Work) -> Option<f64> {
    Some(bytes / work.body_bytes as f64)
}

fn ab(_: &Place, work: &Work) -> Vec<String> {
    let keep = if work.reconnect { "" } else { "-k" };
    // Its own time limit would bring one of 50 000 requests.
    words(&format!("ab -q {keep} -n {} -c {} {}", work.total, work.users, work.url))
}

fn ab_completed(stdout: &str, _: &Work) -> Option<f64> {
    let number = |name: &str| stdout.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    (number("Failed requests:") == Some(0.0)).then(|| number("Complete requests:"))?
}

fn oha(_: &Place, work: &Work) -> Vec<String> {
    let keep = if work.reconnect { "--disable-keepalive" } else { "" };
    let stop = if is_large(work) { format!("-n {}", work.total) } else { format!("-z {}s", work.seconds) };
    let flags = "oha --no-tui --insecure --output-format json";
    words(&format!("{flags} {keep} {stop} -c {} {}", work.users, work.url))
}

fn oha_completed(stdout: &str, _: &Work) -> Option<f64> {
    let result: serde_json::Value = serde_json::from_str(stdout).ok()?;
    result["statusCodeDistribution"]["200"].as_f64()
}

fn hey(_: &Place, work: &Work) -> Vec<String> {
    let keep = if work.reconnect { "-disable-keepalive" } else { "" };
    // One processor, as it has: its own default counts those of the host.
    words(&format!("hey -cpus 1 {keep} -z {}s -c {} {}", work.seconds, work.users, work.url))
}

/// `  [200]\t31023 responses`
fn hey_completed(stdout: &str, _: &Work) -> Option<f64> {
    let counts = stdout.lines().find_map(|line| line.trim().strip_prefix("[200]"))?;
    counts.split_whitespace().next()?.parse().ok()
}

fn k6(place: &Place, work: &Work) -> Vec<String> {
    let script = place.path("k6.js");
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ vus: {}, duration: '{}s', discardResponseBodies: true, noConnectionReuse: {} }};
         export default function () {{ http.get('{}'); }}
         export function handleSummary(data) {{
           const failed = data.metrics.http_req_failed.values.passes;
           return {{ stdout: `${{data.metrics.http_reqs.values.count}} ${{failed}}\\n` }};
         }}",
        work.users, work.seconds, work.reconnect, work.url
    );
    // Should it fail, k6 says that there is no script.
    let _ = fs::write(&script, text);
    words(&format!("k6 run --quiet --no-usage-report --log-output none {}", script.display()))
}

fn k6_completed(stdout: &str, _: &Work) -> Option<f64> {
    let (requests, failed) = stdout.trim().split_once(' ')?;
    (failed == "0").then(|| requests.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(body_bytes: usize) -> Work {
        let url = "http://127.0.0.1:1/".into();
        Work { url, users: 1, reconnect: false, seconds: 1, total: 10, body_bytes }
    }

    #[test]
    fn wrk_counts_requests_or_where_bodies_are_large_their_bytes() {
        let said = "Running 1s test\n  40 requests in 1.10s, 4.00GB read\nRequests/sec: 36.4\n";
        assert_eq!(wrk_completed(said, &work(1_000)), Some(40.0));
        assert_eq!(wrk_completed(said, &work(1 << 30)), Some(4.0));
        let errors = "  40 requests in 1.10s, 4.00GB read\n  Socket errors: connect 0, read 1\n";
        assert_eq!(wrk_completed(errors, &work(1_000)), None);
    }

    #[test]
    fn counts_with_failures_among_them_are_none() {
        let work = work(1_000);
        let ab = |failed| format!("Complete requests:      123\nFailed requests:        {failed}\n");
        assert_eq!(ab_completed(&ab(0), &work), Some(123.0));
        assert_eq!(ab_completed(&ab(1), &work), None);
        assert_eq!(k6_completed("123 0\n", &work), Some(123.0));
        assert_eq!(k6_completed("123 4\n", &work), None);
        assert_eq!(nstar_completed(r#"{"warnings": []}"#, &work), Some(10.0));
        assert_eq!(nstar_completed(r#"{"warnings": [{"kind": "errors"}]}"#, &work), None);
    }

    #[test]
    fn what_the_others_print() {
        let work = work(1_000);
        assert_eq!(bare_completed("12 345\n", &work), Some(12.0));
        assert_eq!(hey_completed("Status code distribution:\n  [200]\t123 responses\n", &work), Some(123.0));
        assert_eq!(oha_completed(r#"{"statusCodeDistribution": {"200": 123}}"#, &work), Some(123.0));
    }
}
