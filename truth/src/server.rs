//! The suite's own server: a thread for each connection, and the stages of a request as a switch.

mod holding;
mod listening;
mod path;
mod upstream;

use std::{fs, sync::Arc, thread, time::Duration};

use clap::Args;

use self::{path::Path, upstream::Upstream};
use crate::{Trouble, stage::Stage, tier::Course};

/// `truth serve`: one tier of a case.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on
    #[arg(long)]
    listen: String,
    /// Address of the tier behind this one
    #[arg(long)]
    upstream: Option<String>,
    /// Most connections to the tier behind; without it, one for each connection from the front
    #[arg(long)]
    forward: Option<u32>,
    /// Name of the process
    #[arg(long, default_value = "server")]
    name: String,
    /// Bytes of each response
    #[arg(long, default_value_t = 2)]
    body: usize,
    /// Places in the listen queue
    #[arg(long, default_value_t = 4_096)]
    backlog: i32,
    /// Time between two connections that are accepted, microseconds
    #[arg(long, default_value_t = 0)]
    accept_us: u64,
    /// Threads that wait for work that never comes
    #[arg(long, default_value_t = 0)]
    idle: u32,
    /// How the times change, as in a case
    #[arg(long)]
    course: Option<Course>,
    /// How many times as long requests for /heavy take
    #[arg(long, default_value_t = 1.0)]
    heavy: f64,
    /// What a request does, one stage after another, as in a case
    stages: Vec<Stage>,
}

impl Serve {
    /// Serves until it is killed.
    pub(crate) fn run(self) -> Result<(), Trouble> {
        fs::write("/proc/self/comm", &self.name).map_err(Trouble::io("name this process"))?;
        let listener = listening::listen(&self.listen, self.backlog)?;
        let upstream = self.upstream.map(|address| Upstream::new(address, self.forward));
        let path = Path::new(&self.stages, self.course, upstream, self.body).with_heavy(self.heavy);
        let path = Arc::new(path);
        (0..self.idle).for_each(|_| drop(thread::spawn(thread::park)));
        listening::serve(&listener, Duration::from_micros(self.accept_us), &path)
    }
}
