//! Loads one URL with a fixed number of users and prints the requests per second of the generator's own CPU time.
//!
//! `cargo run --release -p load --example hammer -- URL USERS SECONDS [THREADS [close]]`

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use load::{Generator, Plan, RequestTemplate, Scenario, Stop, Url};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, users, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: hammer URL USERS SECONDS [THREADS [close]]".into());
    };
    let url: Url = url.parse()?;
    let mut plan = Plan::new(Scenario::single(&url, RequestTemplate::default())?);
    plan.insecure = true;
    plan.threads = rest.first().map_or(Ok(1), |threads| threads.parse())?;
    if rest.get(1).is_some_and(|word| word == "close") {
        plan.connections = load::Connections::PerRequest;
    }
    let mut generator = Generator::start(&plan)?;
    generator.set_users(users.parse()?)?;
    let (began, cpu_began) = (Instant::now(), cpu_seconds()?);
    let ticks = generator.run(Stop::Time(Duration::from_secs(seconds.parse()?)), &AtomicBool::new(false))?;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu_began);
    let completed: u64 = ticks.iter().map(|tick| tick.completed).sum();
    let bytes: u64 = ticks.iter().map(|tick| tick.bytes_received).sum();
    let busy: u64 = ticks.iter().map(|tick| tick.generator.busy_us).sum();
    let lag = ticks.iter().map(|tick| tick.generator.lag_us_max).max().unwrap_or_default();
    let errors: u64 = ticks.iter().flat_map(|tick| tick.errors.values()).sum();
    println!(
        "{completed} requests, {errors} errors, {:.0}/s, {:.0} per CPU-second, {:.2} GB per CPU-second, busy {:.0} %, \
         largest lag {lag} us, {} connections",
        completed as f64 / elapsed,
        completed as f64 / cpu,
        bytes as f64 / cpu / 1e9,
        busy as f64 / elapsed / 1e4 / plan.threads as f64,
        generator.connects(),
    );
    Ok(())
}

/// Returns the CPU time of this process so far, seconds.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let times = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(times.tv_sec as f64 + times.tv_nsec as f64 / 1e9)
}
