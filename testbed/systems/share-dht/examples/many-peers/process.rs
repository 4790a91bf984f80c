//! A process with some of the peers, as the measuring process sees it.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::{Result, part::Figures};

/// A process, killed when it is dropped. It also ends by itself once its standard input is closed.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What searches came to.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    pub(crate) made: f64,
    pub(crate) found: f64,
    /// Seconds that they took, one after the other in each process.
    pub(crate) taken_s: f64,
}

impl Searches {
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            made: self.made + other.made,
            found: self.found + other.found,
            taken_s: self.taken_s + other.taken_s,
        }
    }
}

impl Process {
    /// Starts a process with `count` peers, and waits until all have joined. Returns where the first of them listens.
    pub(crate) fn start(from: usize, count: usize, join: Option<SocketAddr>) -> Result<(Self, SocketAddr)> {
        let mut child = Command::new(env::current_exe()?)
            .args(["part", &from.to_string(), &count.to_string()])
            .args(join.map(|at| at.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut process = Self { child, input, output };
        let at = process.line()?.parse()?;
        Ok((process, at))
    }

    pub(crate) fn figures(&mut self) -> Result<Figures> {
        writeln!(self.input, "figures")?;
        let [memory_bytes, cpu_s, known, descriptors, messages] = self.numbers()?;
        Ok(Figures { memory_bytes, cpu_s, known, descriptors, messages })
    }

    /// Lets its peers search for the files of all peers, one after the other.
    pub(crate) fn begin_searches(&mut self, seconds: u64, peers: usize) -> Result<()> {
        Ok(writeln!(self.input, "search {seconds} {peers}")?)
    }

    /// Waits for the end of the searches.
    pub(crate) fn searches(&mut self) -> Result<Searches> {
        let [made, found, taken_s] = self.numbers()?;
        Ok(Searches { made, found, taken_s })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("a process with peers has ended".into()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    fn numbers<const COUNT: usize>(&mut self) -> Result<[f64; COUNT]> {
        let line = self.line()?;
        let numbers = line.split(' ').map(str::parse::<f64>).collect::<Result<Vec<_>, _>>()?;
        numbers.try_into().map_err(|_| format!("a process with peers answered {line:?}").into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
