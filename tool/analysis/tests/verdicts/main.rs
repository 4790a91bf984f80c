//! Every kind of verdict and its near misses, on synthetic sweeps.

mod calibration;
mod database;
mod decoys;
mod explanations;
mod hops;
mod host_limits;
mod hostile;
mod hosts;
mod io_limits;
mod lab;
mod limits;
mod memory;
mod misjudged;
mod processors;
mod qualified;
mod queue;
mod replaced;
mod softirq;
mod stalls;
mod threads;
