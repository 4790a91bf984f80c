//! Every kind of verdict and its near misses, on synthetic sweeps.

mod hostile;
mod lab;
mod limits;
mod processors;
mod qualified;
