//! The ceiling test: measures what the generator can do on this host, with the null server.

pub(crate) mod null_server;

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::LoadError;
use crate::generator::Generator;
use crate::plan::{Pacing, Plan, Think};
use crate::scenario::definition::Scenario;
use crate::scenario::single::RequestTemplate;
use crate::url::Url;
use null_server::NullServer;

/// Length of the bodies that the null server sends.
pub const CEILING_BODY_BYTES: usize = 1_000;

/// Users of the test: enough that events always come in batches.
pub const CEILING_USERS: u32 = 32;

/// What a generator can do on this host with the cheapest possible request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// Requests per second that its threads could make if they did nothing else: requests per second of CPU time, times
    /// the number of processors that they can occupy at once.
    pub requests_per_s: f64,
    /// CPU time per request, seconds.
    pub cpu_s: f64,
    /// Requests per second reached in the test, in which the null server shares the host.
    pub reached_per_s: f64,
    /// Number of generator threads.
    pub threads: usize,
}

impl Ceiling {
    /// Loads the null server for this time, with the threads, processors and connection policy of `plan`.
    ///
    /// # Errors
    /// The errors of [`Generator::start`] and [`NullServer::start`]; a kernel that does not report the CPU time of a
    /// thread; an interrupt before the first request.
    pub fn measure(plan: &Plan, time: Duration, interrupt: &AtomicBool) -> Result<Self, LoadError> {
        let server = NullServer::start(CEILING_BODY_BYTES, None)?;
        let mut generator = Generator::start(&test_plan(plan, &server)?)?;
        generator.set_users(CEILING_USERS)?;
        let spent =
            |generator: &Generator| generator.thread_ids().into_iter().map(cpu_s).sum::<Result<f64, _>>();
        let before = spent(&generator)?;
        let ticks = generator.collect(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), interrupt)?;
        let cpu_s = spent(&generator)? - before;
        let completed = ticks.iter().map(|tick| tick.completed).sum::<u64>() as f64;
        let elapsed_s = ticks.iter().map(|tick| tick.length_us).sum::<u64>() as f64 / 1e6;
        if completed == 0.0 || cpu_s <= 0.0 {
            return Err(LoadError::Plan("the null server was not reached because the test was too short"));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Ceiling {
            requests_per_s: completed / cpu_s * plan.threads.min(processors) as f64,
            cpu_s: cpu_s / completed,
            reached_per_s: completed / elapsed_s,
            threads: plan.threads,
        })
    }
}

/// The same generator, with users that do as little as possible.
fn test_plan(plan: &Plan, server: &NullServer) -> Result<Plan, LoadError> {
    let (host, port) = (server.address().ip(), server.address().port());
    let url: Url = format!("http://{host}:{port}/")
        .parse()
        .map_err(|_| LoadError::Plan("the null server has no address"))?;
    let scenario = Scenario::single(&url, RequestTemplate::default())
        .map_err(|_| LoadError::Plan("a plain GET request cannot be made"))?;
    Ok(Plan {
        threads: plan.threads,
        cpus: plan.cpus.clone(),
        connections: plan.connections,
        pacing: Pacing::Closed { think: Think::None },
        ..Plan::new(scenario)
    })
}

/// Returns the CPU time of a thread of this process, seconds, which the scheduler counts in nanoseconds
/// (Documentation/scheduler/sched-stats.rst).
fn cpu_s(thread: u32) -> Result<f64, LoadError> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let read = fs::read_to_string(path);
    let text = read.map_err(|source| LoadError::System { action: "read a thread's CPU time", source })?;
    let ns = text.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9).ok_or(LoadError::Plan("the kernel does not report the CPU time of a thread"))
}
