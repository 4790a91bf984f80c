//! The ceiling test: what this host's generator can do, found on the null server.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::LoadError;
use crate::generator::Generator;
use crate::null::NullServer;
use crate::plan::{Pacing, Plan, Think};
use crate::scenario::{RequestTemplate, Scenario};
use crate::url::Url;

/// Length of the null server's bodies.
pub const CEILING_BODY_BYTES: usize = 1_000;

/// Users of the test: enough that a batch of events is always there.
pub const CEILING_USERS: u32 = 32;

/// What a generator can do on this host with the cheapest of requests: any other costs it more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// Requests per second that its threads could make if they did nothing else: requests per second
    /// of their CPU time, times the processors they can be on at one time.
    pub requests_per_s: f64,
    /// CPU time of one request, seconds.
    pub cpu_s: f64,
    /// Requests per second reached in the test, where the null server shares the host.
    pub reached_per_s: f64,
    /// Generator threads.
    pub threads: usize,
}

impl Ceiling {
    /// Drives the null server for so long, with the threads, processors and connection policy of `plan`.
    ///
    /// # Errors
    /// What [`Generator::start`] and [`NullServer::start`] say; a kernel that does not tell the CPU time of
    /// a thread; an interrupt before the first request.
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
            return Err(LoadError::Plan("the null server was not reached: the test was too short"));
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

/// The plan's generator, with users that do as little as users can.
fn test_plan(plan: &Plan, server: &NullServer) -> Result<Plan, LoadError> {
    let (host, port) = (server.address().ip(), server.address().port());
    let url: Url = format!("http://{host}:{port}/")
        .parse()
        .map_err(|_| LoadError::Plan("the null server has no address"))?;
    let scenario = Scenario::single(&url, RequestTemplate::default())
        .map_err(|_| LoadError::Plan("a plain GET is no request"))?;
    Ok(Plan {
        threads: plan.threads,
        cpus: plan.cpus.clone(),
        connections: plan.connections,
        pacing: Pacing::Closed { think: Think::None },
        ..Plan::new(scenario)
    })
}

/// Time a thread of this process has spent on a processor, seconds, as the scheduler accounts it to the
/// nanosecond (Documentation/scheduler/sched-stats.rst).
fn cpu_s(thread: u32) -> Result<f64, LoadError> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let read = fs::read_to_string(path);
    let text = read.map_err(|source| LoadError::System { action: "read a thread's CPU time", source })?;
    let ns = text.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9).ok_or(LoadError::Plan("the kernel does not tell the CPU time of a thread"))
}
