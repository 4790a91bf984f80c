//! Chooses the concurrency model, and turns flags into the engine's options.

use std::{net::SocketAddr, sync::Arc, thread, time::Duration};

use clap::Args;
use engine::{EngineError, Listeners, Model, Options, Overload, service::Factory};
use nstar::{exit::Failure, values::duration};

/// The concurrency model and its settings.
#[derive(Debug, Args)]
pub struct ConcurrencyFlags {
    /// Concurrency model, or several of which the first that can run here is used
    #[arg(long, value_name = "MODEL[,MODEL]", default_value = "epoll", value_delimiter = ',')]
    pub engine: Vec<Model>,
    /// Event loops, for the models that have them [default: one per processor it may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub loops: Option<u16>,
    /// Threads of pool, or processes of prefork [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub workers: Option<u16>,
    /// Connections that may wait for a worker of pool [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub queue: Option<u32>,
    /// What to do with connections when the queue is full: backlog (they wait in the kernel), 503, or reset
    /// [default: backlog]
    #[arg(long, value_name = "POLICY")]
    pub overload: Option<Overload>,
    /// Drop connections that have waited longer for a worker, or whose client has gone [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub queue_deadline: Option<Duration>,
}

impl ConcurrencyFlags {
    /// Refuses flags that none of the chosen models uses.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let given = [
            ("--loops", self.loops.is_some(), Model::has_loops as fn(Model) -> bool),
            ("--workers", self.workers.is_some(), Model::has_workers),
            ("--queue", self.queue.is_some(), Model::has_queue),
            ("--overload", self.overload.is_some(), Model::has_queue),
            ("--queue-deadline", self.queue_deadline.is_some(), Model::has_queue),
        ];
        for (flag, _, of) in given.into_iter().filter(|(_, given, _)| *given) {
            if !self.engine.iter().copied().any(of) {
                let takers = names(Model::ALL.iter().copied().filter(|&model| of(model)));
                let asked = names(self.engine.iter().copied());
                return Err(Failure::usage(format!("{flag} goes with --engine {takers}; not with {asked}")));
            }
        }
        Ok(())
    }

    /// Refuses more workers than there may be open files, as each holds a connection.
    pub(crate) fn check_descriptors(&self, allowed: u64) -> Result<(), Failure> {
        let workers = u64::from(self.workers.unwrap_or(0));
        if self.engine.contains(&Model::Pool) && workers >= allowed {
            return Err(Failure::usage(format!(
                "--workers {workers}: this process may have {allowed} open files, and each worker needs one; \
                 ask for fewer, or raise the limit with `ulimit -n`"
            )));
        }
        Ok(())
    }

    /// Refuses models that fork, for a system whose state is in the memory of one process. `system` and `reason` are the
    /// beginning and the middle of the message.
    ///
    /// # Errors
    /// When one of the chosen models forks.
    pub fn check_one_process(&self, system: &str, reason: &str) -> Result<(), Failure> {
        match self.engine.iter().find(|model| model.forks()) {
            None => Ok(()),
            Some(model) => Err(Failure::usage(format!(
                "{system} cannot run as {model}: {reason}; choose another --engine, such as epoll or threads"
            ))),
        }
    }

    /// Binds as many sockets as the models may want, or takes those that the process was started with.
    ///
    /// # Errors
    /// When the address cannot be bound, or other sockets were passed than these flags describe.
    pub(crate) fn listeners(&self, listen: SocketAddr) -> Result<Listeners, Failure> {
        let loops = self.options(Options::new(listen)).loops;
        let count = if self.engine.iter().copied().any(Model::has_loops) { loops.max(1) } else { 1 };
        match engine::inherited().map_err(Failure::usage)? {
            None => Listeners::bind(listen, count).map_err(Failure::failed),
            Some(passed) => check_passed(&passed, listen, count).map(|()| passed),
        }
    }

    /// The engine's options that depend on the concurrency model.
    pub(crate) fn options(&self, base: Options) -> Options {
        let usable = || thread::available_parallelism().map_or(1, usize::from);
        Options {
            loops: self.loops.map_or_else(usable, usize::from),
            workers: self.workers.map_or(base.workers, usize::from),
            queue: self.queue.map_or(base.queue, |queue| queue as usize),
            overload: self.overload.unwrap_or(base.overload),
            queue_deadline: self.queue_deadline,
            ..base
        }
    }

    /// Starts the first of the models that can run here, and returns which one. Warns why those before it cannot.
    pub(crate) fn start<F: Factory>(
        &self,
        options: &Options,
        factory: F,
    ) -> Result<(Model, engine::Server), Failure> {
        let factory = Arc::new(factory);
        let mut models = self.engine.iter().copied().peekable();
        while let Some(model) = models.next() {
            match engine::start(model, options, Arc::clone(&factory)) {
                Ok(server) => return Ok((model, server)),
                Err(error @ EngineError::ModelUnavailable { .. }) if models.peek().is_some() => {
                    nstar::exit::warn(format_args!("{error}; trying the next one"));
                }
                Err(error) => return Err(Failure::failed(error)),
            }
        }
        Err(Failure::usage(format!(
            "--engine needs a model; choose one of: {}",
            names(Model::ALL.iter().copied())
        )))
    }
}

/// Refuses sockets that listen elsewhere than the flags say, which is where the server thinks that it can be reached, and
/// sockets that nobody would accept from.
fn check_passed(passed: &Listeners, listen: SocketAddr, count: usize) -> Result<(), Failure> {
    let at = passed.address();
    let is_there =
        at.ip().to_canonical() == listen.ip().to_canonical() && [0, at.port()].contains(&listen.port());
    if !is_there {
        return Err(Failure::usage(format!(
            "the socket passed to this process listens on {at}, and --listen says {listen}: give --listen {at}"
        )));
    }
    if passed.count() > count {
        return Err(Failure::usage(format!(
            "{} sockets were passed to this process, of which it would use {count}: pass as many, or choose an --engine \
             and --loops that use all",
            passed.count()
        )));
    }
    Ok(())
}

/// Says in words what the model runs.
pub(crate) fn describe(model: Model, options: &Options) -> String {
    match model {
        Model::Threads => "a thread per connection".to_owned(),
        Model::Processes => "a process per connection".to_owned(),
        Model::Prefork => count(options.workers, "process"),
        Model::Pool => {
            let (workers, queue) = (count(options.workers, "worker"), options.queue);
            let overload = match options.overload {
                Overload::Backlog => "the backlog",
                Overload::Unavailable => "503",
                Overload::Reset => "a reset",
            };
            format!("{workers}, {queue} may wait, then {overload}")
        }
        _ => count(options.loops, "loop"),
    }
}

fn count(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        _ if of.ends_with('s') => format!("{number} {of}es"),
        _ => format!("{number} {of}s"),
    }
}

fn names(models: impl Iterator<Item = Model>) -> String {
    models.map(Model::name).collect::<Vec<_>>().join(", ")
}
