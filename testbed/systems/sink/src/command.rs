//! `nstar-lab serve sink`.

use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};

use clap::{Parser, ValueEnum};
use serve::{
    Exit, Failure, HostNames, ServerFlags, ServerProcess, System,
    values::{duration_or_zero, listen, size},
};

use crate::{
    options::{self, Options, Protocol},
    service::factory,
};

/// The most bytes a server reads at a time: with Linux's defaults a socket holds no more at once.
const CHUNK_MAX: u64 = 4 << 20;

/// The upload sink: accepts everything and keeps nothing
#[derive(Debug, Parser)]
#[command(name = "sink")]
pub struct SinkFlags {
    /// No HTTP: accept bytes until the client closes its side, so that `nc` can be a client
    #[arg(long, conflicts_with_all = ["verify", "delay", "max_body"])]
    raw: bool,
    /// Bytes read at a time
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = chunk)]
    chunk: NonZeroUsize,
    /// Hash the body and return the hash
    #[arg(long, value_enum)]
    verify: Option<Verify>,
    /// Largest body accepted [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_body: Option<u64>,
    /// Wait this long before each response, as if for another service
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration_or_zero)]
    delay: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8082", value_parser = listen)]
    listen: SocketAddr,
    #[command(flatten)]
    names: HostNames,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Verify {
    Blake3,
}

impl System for SinkFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("sink", self.listen, &self.server);
        if self.raw {
            process.scheme = "tcp";
        }
        process.prepare()?;
        let factory = factory(Options {
            connections: process.counters(),
            open_metrics: process.open_metrics(),
            hosts: self.names.hosts(self.listen, process.is_encrypted()),
            ..self.options()
        });
        let totals = factory.totals();
        let exit = process.serve(factory)?;
        serve::print(&format!("{totals}\n"))?;
        Ok(exit)
    }
}

impl SinkFlags {
    fn options(&self) -> Options {
        Options {
            protocol: if self.raw { Protocol::Raw } else { Protocol::Http },
            chunk: self.chunk,
            verify: match self.verify {
                Some(Verify::Blake3) => options::Verify::Blake3,
                None => options::Verify::Nothing,
            },
            max_body: self.max_body.unwrap_or(u64::MAX),
            delay: self.delay,
            ..Options::default()
        }
    }
}

/// Parses how many bytes a server is to read at a time.
fn chunk(text: &str) -> Result<NonZeroUsize, String> {
    let bytes = size(text)?;
    if bytes > CHUNK_MAX {
        return Err(format!("at most {CHUNK_MAX} bytes are read at a time"));
    }
    let chunk = usize::try_from(bytes).ok().and_then(NonZeroUsize::new);
    chunk.ok_or_else(|| "a read of 0 bytes gets nothing; the least is 1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_a_size_from_1_byte_to_4_mib() {
        assert_eq!(chunk("1024").map(NonZeroUsize::get), Ok(1024));
        assert!(chunk("0").expect_err("nothing").contains("least is 1"));
        assert!(chunk("1GB").expect_err("too much").contains("at most"));
    }
}
