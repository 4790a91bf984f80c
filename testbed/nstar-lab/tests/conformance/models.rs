//! The concurrency models to test, and what some of them cannot do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::Model;

/// How many connections a model can hold.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    /// How many are open at once for a while.
    pub(crate) connections: usize,
    /// How many a load may open. Fewer may be served at a time, but all are served in the end.
    pub(crate) most: usize,
    /// Whether the descriptor limit of a process limits all connections.
    pub(crate) run_out_of_descriptors: bool,
    /// The flags with which the server can hold them.
    pub(crate) flags: &'static str,
}

/// What every model holds unless it is in [`SPECIAL`].
const USUAL: Crowd = Crowd { connections: 1_050, most: 10_000, run_out_of_descriptors: true, flags: "" };

/// The models that hold fewer connections than the others, or hold them differently, and why.
const SPECIAL: [(&str, Crowd, &str); 4] = [
    (
        "pool",
        Crowd { flags: "--workers 1100", ..USUAL },
        "a connection holds one of its workers until it has been answered for the first time",
    ),
    (
        "processes",
        Crowd { connections: 500, most: 1_000, run_out_of_descriptors: false, ..USUAL },
        "each connection is a process, with memory to match, and with descriptors of its own",
    ),
    (
        "prefork",
        Crowd { connections: 60, most: 60, run_out_of_descriptors: false, ..USUAL },
        "a kept connection holds one of its 64 processes, which have descriptors of their own",
    ),
    (
        "select",
        Crowd { connections: 1_000, most: 1_000, ..USUAL },
        "select(2) takes descriptors below 1 024, and a server has some beside its connections",
    ),
];

impl Crowd {
    /// As many as `model` can hold.
    pub(crate) fn of(model: Model) -> Self {
        SPECIAL.iter().find(|(name, ..)| *name == model.name()).map_or(USUAL, |(_, crowd, _)| *crowd)
    }
}

/// Tests a behaviour on each model. Fails with the names of the models that failed.
pub(crate) fn every_model(behaviour: impl Fn(Model)) {
    let chosen = std::env::var("NSTAR_MODEL").ok();
    let mut failed = Vec::new();
    for &model in Model::ALL.iter().filter(|model| chosen.as_deref().is_none_or(|name| name == model.name()))
    {
        // A behaviour shares nothing between models.
        if catch_unwind(AssertUnwindSafe(|| behaviour(model))).is_err() {
            eprintln!("the panic above was with engine {model}");
            failed.push(model);
        }
    }
    assert!(failed.is_empty(), "failed with {failed:?}: see above");
}
