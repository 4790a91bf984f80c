//! `nstar-lab serve`: runs one of the systems until told to stop.

mod beneath;
mod concurrency;
mod sharing;
mod skeleton;
mod tiers;

use nstar::{
    exit::{Exit, Failure},
    output,
};

use self::skeleton::Skeleton;
use super::database;
use crate::flags::{Accounts, Booking, Files, FilesUploads, Serve, Sink, Verify};

pub(crate) fn run(flags: &Serve) -> Result<Exit, Failure> {
    match flags {
        Serve::Files(flags) => serve_files(flags),
        Serve::Accounts(flags) => serve_accounts(flags),
        Serve::Booking(flags) => serve_booking(flags),
        Serve::Sink(flags) => serve_sink(flags),
        Serve::Index(flags) => sharing::serve_index(flags),
        Serve::Peer(flags) => sharing::serve_peer(flags),
    }
}

fn serve_files(flags: &Files) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("files", flags.listen, &flags.server);
    system.secrets = (flags.accounts != "none").then_some("passwords");
    system.prepare(c"nstar-files")?;
    let mut options = files::Options::new(&flags.root, flags.accounts.parse().map_err(Failure::usage)?);
    beneath::check(flags, &options.accounts)?;
    options.auth_cache_ttl = flags.auth_cache;
    options.open_to_all = flags.open_to_all;
    options.uploads = uploads(&flags.uploads, &options.accounts)?;
    if let Some(path) = &flags.permissions {
        options.permissions = files::Permissions::load(path).map_err(Failure::usage)?;
    }
    options.audit = flags.audit.clone();
    options.encrypted = system.identity.is_some();
    options.proxies = flags.behind.proxies.iter().copied().collect();
    options.connections = system.counters.clone();
    tiers::link(flags, &mut options)?;
    files::check(flags.listen, &options).map_err(Failure::usage)?;
    system.serve(files::factory(options).map_err(tiers::failure)?)
}

fn uploads(flags: &FilesUploads, accounts: &files::AccountsBackend) -> Result<files::UploadOptions, Failure> {
    if flags.open_uploads && *accounts != files::AccountsBackend::Open {
        return Err(Failure::usage(
            "--open-uploads goes with --accounts none: users with accounts can upload anyway",
        ));
    }
    if flags.quota.is_some() && *accounts == files::AccountsBackend::Open {
        return Err(Failure::usage(
            "--quota limits each user, but --accounts none has no users; name an accounts server, or leave it out",
        ));
    }
    let mut uploads = files::UploadOptions::default();
    uploads.of = match flags {
        FilesUploads { read_only: true, .. } => files::Uploaders::Nobody,
        FilesUploads { open_uploads: true, .. } => files::Uploaders::Everybody,
        _ => files::Uploaders::Users,
    };
    uploads.max_bytes = flags.max_upload;
    uploads.life = flags.upload_life;
    uploads.quota_bytes = flags.quota;
    Ok(uploads)
}

fn serve_accounts(flags: &Accounts) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("accounts", flags.listen, &flags.server);
    system.secrets = Some("passwords");
    system.prepare(c"nstar-accounts")?;
    let mut options = accounts::Options::new(database::with_password(&flags.database, &flags.login)?);
    options.admin_token = flags.admin_token.clone().unwrap_or(options.admin_token);
    options.registration = flags.registration.into();
    tiers::door(flags, &mut options);
    options.server.proxies = flags.behind.proxies.iter().copied().collect();
    options.server.connections = system.counters.clone();
    system.serve(accounts::factory(options).map_err(Failure::failed)?)
}

fn serve_booking(flags: &Booking) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("booking", flags.listen, &flags.server);
    system.secrets = Some("identity numbers");
    system.prepare(c"nstar-booking")?;
    let mut options = booking::Options::new(database::with_password(&flags.database, &flags.login)?);
    options.key = flags.key.clone().unwrap_or(options.key);
    options.rooms = flags.rooms.unwrap_or(options.rooms);
    options.ids = booking::IdPolicy::allow_test(flags.allow_test_ids);
    options.server.proxies = flags.behind.proxies.iter().copied().collect();
    options.server.connections = system.counters.clone();
    system.serve(booking::factory(options).map_err(Failure::failed)?)
}

fn serve_sink(flags: &Sink) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("sink", flags.listen, &flags.server);
    if flags.raw {
        system.scheme = "tcp";
    }
    system.prepare(c"nstar-sink")?;
    let mut options = sink::Options::default();
    options.protocol = if flags.raw { sink::Protocol::Raw } else { sink::Protocol::Http };
    options.chunk = flags.chunk;
    options.verify = match flags.verify {
        Some(Verify::Blake3) => sink::Verify::Blake3,
        None => sink::Verify::Nothing,
    };
    options.max_body = flags.max_body.unwrap_or(u64::MAX);
    options.delay = flags.delay;
    options.connections = system.counters.clone();
    let factory = sink::factory(options);
    let totals = factory.totals();
    let exit = system.serve(factory)?;
    output::print(&format!("{totals}\n"))?;
    Ok(exit)
}
