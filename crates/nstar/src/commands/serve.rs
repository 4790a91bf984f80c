//! `nstar serve`: one of the systems, until it is told to stop.

use std::{
    io::{self, IsTerminal, Read},
    net::SocketAddr,
    sync::atomic::Ordering,
    thread,
};

use engine::service::Factory;
use tracing_subscriber::filter::LevelFilter;

use super::plan;
use crate::{
    exit::{Exit, Failure},
    flags::{Accounts, Files, Serve, Server},
    interrupt::Interrupt,
    output,
};

pub(crate) fn run(flags: &Serve) -> Result<Exit, Failure> {
    match flags {
        Serve::Files(flags) => serve_files(flags),
        Serve::Accounts(flags) => serve_accounts(flags),
    }
}

fn serve_files(flags: &Files) -> Result<Exit, Failure> {
    prepare(&flags.server, c"nstar-files")?;
    let mut options = files::Options::new(&flags.root, flags.accounts.parse().map_err(Failure::usage)?);
    options.auth_cache_ttl = flags.auth_cache;
    options.open_to_all = flags.open_to_all;
    files::check_exposure(flags.listen, &options).map_err(Failure::usage)?;
    let factory = files::factory(options).map_err(Failure::failed)?;
    serve("files", flags.listen, &flags.server, factory)
}

fn serve_accounts(flags: &Accounts) -> Result<Exit, Failure> {
    prepare(&flags.server, c"nstar-accounts")?;
    let factory = accounts::factory(accounts::Options::new(&flags.database)).map_err(Failure::failed)?;
    serve("accounts", flags.listen, &flags.server, factory)
}

/// Before any thread starts: what threads inherit.
fn prepare(server: &Server, name: &std::ffi::CStr) -> Result<(), Failure> {
    // A short name of its own tells the tiers apart wherever processes are listed.
    rustix::thread::set_name(name)
        .map_err(|error| Failure::failed(format!("cannot name the process: {error}")))?;
    plan::confine(server.cpus.as_ref())?;
    let level = if server.access_log { LevelFilter::INFO } else { LevelFilter::WARN };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}

/// Runs until a signal, or the closing of stdin where that was asked for; then finishes what is in flight.
fn serve<F: Factory>(name: &str, listen: SocketAddr, flags: &Server, factory: F) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let loops =
        flags.loops.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let options = engine::Options {
        loops,
        max_connections: flags.max_connections as usize,
        ..engine::Options::new(listen)
    };
    let server = engine::start(flags.engine, &options, factory).map_err(Failure::failed)?;
    output::print(&format!(
        "listening on http://{} ({name}, engine {})\n",
        server.local_addr(),
        flags.engine
    ))?;
    if flags.until_stdin_closes {
        stop_when_stdin_closes(&interrupt);
    }
    interrupt.wait();
    server.drain(flags.drain);
    server.join();
    Ok(Exit::Done)
}

fn stop_when_stdin_closes(interrupt: &Interrupt) {
    let asked = interrupt.asked.clone();
    thread::spawn(move || {
        let mut ignored = [0; 64];
        while matches!(io::stdin().read(&mut ignored), Ok(count) if count > 0) {}
        asked.store(true, Ordering::Relaxed);
    });
}
