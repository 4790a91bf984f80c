//! Chooses the concurrency model, and turns flags into the engine's options.

use std::{sync::Arc, thread};

use engine::{EngineError, Model, Options, Overload, service::Factory};

use nstar::exit::Failure;

use crate::flags::Concurrency;

/// Refuses flags that none of the chosen models uses.
pub(super) fn check(flags: &Concurrency) -> Result<(), Failure> {
    let given = [
        ("--loops", flags.loops.is_some(), Model::has_loops as fn(Model) -> bool),
        ("--workers", flags.workers.is_some(), Model::has_workers),
        ("--queue", flags.queue.is_some(), Model::has_queue),
        ("--overload", flags.overload.is_some(), Model::has_queue),
        ("--queue-deadline", flags.queue_deadline.is_some(), Model::has_queue),
    ];
    for (flag, _, of) in given.into_iter().filter(|(_, given, _)| *given) {
        if !flags.engine.iter().copied().any(of) {
            let takers = names(Model::ALL.iter().copied().filter(|&model| of(model)));
            let asked = names(flags.engine.iter().copied());
            return Err(Failure::usage(format!("{flag} goes with --engine {takers}; not with {asked}")));
        }
    }
    Ok(())
}

/// Refuses more workers than there may be open files, as each holds a connection.
pub(super) fn check_descriptors(flags: &Concurrency, allowed: u64) -> Result<(), Failure> {
    let workers = u64::from(flags.workers.unwrap_or(0));
    if flags.engine.contains(&Model::Pool) && workers >= allowed {
        return Err(Failure::usage(format!(
            "--workers {workers}: this process may have {allowed} open files, and each worker needs one; \
             ask for fewer, or raise the limit with `ulimit -n`"
        )));
    }
    Ok(())
}

/// The engine's options that depend on the concurrency model.
pub(super) fn options(flags: &Concurrency, base: Options) -> Options {
    let usable = || thread::available_parallelism().map_or(1, usize::from);
    Options {
        loops: flags.loops.map_or_else(usable, usize::from),
        workers: flags.workers.map_or(base.workers, usize::from),
        queue: flags.queue.map_or(base.queue, |queue| queue as usize),
        overload: flags.overload.unwrap_or(base.overload),
        queue_deadline: flags.queue_deadline,
        ..base
    }
}

/// Starts the first of the models that can run here, and returns which one. Warns why those before it cannot.
pub(super) fn start<F: Factory>(
    flags: &Concurrency,
    options: &Options,
    factory: F,
) -> Result<(Model, engine::Server), Failure> {
    let factory = Arc::new(factory);
    let mut models = flags.engine.iter().copied().peekable();
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

/// Says in words what the model runs.
pub(super) fn describe(model: Model, options: &Options) -> String {
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
