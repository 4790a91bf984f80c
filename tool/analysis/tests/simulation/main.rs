//! The model against exact answers, by simulation in virtual time.
//!
//! Every seed is fixed, so a coverage found once is found always; a failure prints what it needs to be seen
//! again.

mod closed_network;
mod coverage;
mod curves;
mod exact;
mod hostile;
mod pace;
mod pacing_servers;
mod silences;
mod sweep;
mod tell_apart;
mod warm_up;
